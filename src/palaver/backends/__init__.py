"""Backends: each turns an agent into canonical events, and knows nothing of logs, conversations or clients."""
