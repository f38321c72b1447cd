"""HTTP parts that all faces share: the listener, the gate, bodies, errors, event streams, WebSocket frames."""
