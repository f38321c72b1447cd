"""Every exception Palaver raises, as one tree.

```
PalaverError
├── CallerError            the caller can fix it; answered 4xx
│   ├── Invalid            400
│   ├── Unauthorized       401
│   ├── Forbidden          403
│   ├── NotFound           404
│   ├── Conflict           409
│   ├── Gone               410
│   ├── TooLarge           413
│   └── Busy               429
├── LogError               the log could not do it; nothing was written
│   ├── StorageFull        507
│   ├── LogUnavailable     503
│   ├── LogCorrupt         one conversation's chain does not hold; the others are untouched
│   └── HeadMoved          another writer was faster (a stale owner)
├── AgentError             a backend failed; ends the turn as an event, never an HTTP status
│   ├── NotInstalled · NotLoggedIn · NotTrusted · ProtocolBroken · TimedOut · Exited
│   ├── ProviderRefused · ProviderUnavailable · StreamCut
│   └── LimitReached       the turn ends as `limited`; it wrote more than it may
└── ConfigurationError     said at start, in a sentence
```

A failed tool is a result; interruption and denial are outcomes. None of these is an exception.
"""

from typing import Any, ClassVar

from palaver.schema.errors import ErrorCode, WireError


class PalaverError(Exception):
    code: ClassVar[ErrorCode] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def wire(self) -> WireError:
        return WireError(code=self.code, message=self.message, retryable=self.retryable, details=self.details)


class CallerError(PalaverError):
    code: ClassVar[ErrorCode] = "invalid"
    status = 400


class Invalid(CallerError):
    pass


class Unauthorized(CallerError):
    code = "unauthorized"
    status = 401


class Forbidden(CallerError):
    code = "forbidden"
    status = 403


class NotFound(CallerError):
    code = "not_found"
    status = 404


class Conflict(CallerError):
    code = "conflict"
    status = 409


class Gone(CallerError):
    code = "gone"
    status = 410


class TooLarge(CallerError):
    code = "too_large"
    status = 413


class Busy(CallerError):
    code = "busy"
    status = 429
    retryable = True


class LogError(PalaverError):
    code: ClassVar[ErrorCode] = "unavailable"
    status = 503
    retryable = True


class StorageFull(LogError):
    code = "storage_full"
    status = 507


class LogUnavailable(LogError):
    pass


class LogCorrupt(LogError):
    retryable = False


class HeadMoved(LogError):
    code = "conflict"


class AgentError(PalaverError):
    code: ClassVar[ErrorCode] = "provider_unavailable"


class NotInstalled(AgentError):
    code = "not_installed"


class NotLoggedIn(AgentError):
    code = "not_logged_in"


class NotTrusted(AgentError):
    """A program would run what the folder holds, and no person has trusted that."""

    code = "forbidden"


class ProtocolBroken(AgentError):
    code = "protocol_broken"


class TimedOut(AgentError):
    code = "timed_out"
    retryable = True


class Exited(AgentError):
    code = "exited"


class ProviderRefused(AgentError):
    code = "provider_refused"


class ProviderUnavailable(AgentError):
    retryable = True


class StreamCut(AgentError):
    code = "stream_cut"
    retryable = True


class LimitReached(AgentError):
    code = "limit_reached"


class ConfigurationError(PalaverError):
    code = "invalid"


REFUSALS: dict[str, type[CallerError]] = {
    kind.code: kind for kind in (Invalid, Unauthorized, Forbidden, NotFound, Conflict, Gone, TooLarge, Busy)
}
"""What a refusal of the core becomes at the edge."""
