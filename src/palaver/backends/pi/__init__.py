"""Pi, driven through its RPC mode, with an extension of ours that asks before each tool."""

from palaver.backends.pi.backend import PiBackend, readiness

__all__ = ["PiBackend", "readiness"]
