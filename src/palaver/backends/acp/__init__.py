"""Any agent that speaks the Agent Client Protocol, named by its command in an agent record. Needs the extra `[acp]`."""

from palaver.backends.acp.backend import AcpBackend
from palaver.backends.acp.installation import readiness

__all__ = ["AcpBackend", "readiness"]
