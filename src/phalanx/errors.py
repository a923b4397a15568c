"""Every exception that Phalanx raises on purpose.

    PhalanxError
    ├── ConfigError        a configuration file, profile or option is wrong
    ├── SnapshotError      an object of the cluster cannot be understood
    ├── TraceError         a file or a row of a recorded workload cannot be understood
    ├── RecordingError     a recording of a scheduler cannot be read or written
    ├── StuckError         everybody waits in virtual time, and nothing is planned that could wake somebody
    ├── SimulationFault    a simulation ran into a fault of ours for which no gang is to blame
    └── ClusterError       the API server refused or did not answer
        ├── Missing        there is no such object
        ├── Conflict       the object has changed since it was read: read it again
        ├── Exists         there is an object of that name already
        ├── Invalid        the object is wrong, or changes what may not change
        ├── Unauthorized   the server does not know who asks: credentials are missing, wrong or over
        ├── Forbidden      a rule of the cluster says no
        ├── NotAllowed     this cannot be done to that, whatever the object
        ├── WrongForm      the body of a request is in a form that the server does not read
        ├── TooLarge       the body of a request is larger than the server reads
        ├── Busy           not now: a disruption budget, or the server, asks to wait
        ├── ServerError    the server failed at that; asking again may help for a while
        ├── Unreachable    nobody answers at the address of the server, or only somebody who stands before it
        └── Gone           the point a watch or a list started from is no longer known

A message says where, what, and what to write instead; it starts in lower case and has no full stop. The command line
prints it after "error: " and exits with 1. A task that does not fit is no error: it is a verdict.
"""

from collections.abc import Iterable


class PhalanxError(Exception):
    """Anything that Phalanx raises on purpose; the message is one line, and details have lines of their own below it."""

    def __init__(self, message: str = "", *, details: Iterable[str] = ()) -> None:
        """Say what is wrong."""
        super().__init__(message)
        self.message, self.details = message, tuple(details)

    def __str__(self) -> str:
        return "\n  ".join((self.message, *self.details))


class ConfigError(PhalanxError):
    """A configuration file, a profile or an option is wrong."""


class SnapshotError(PhalanxError):
    """An object of the cluster cannot be understood; the message begins with its place, like "PodGroup research/train"."""


class TraceError(PhalanxError):
    """A file or a row of a recorded workload cannot be understood; the message begins with its place, like "jobs.csv, line 17"."""


class RecordingError(PhalanxError):
    """A recording of a scheduler cannot be read or written."""


class StuckError(PhalanxError):
    """Everybody waits in virtual time, and nothing is planned that could wake somebody."""


class SimulationFault(PhalanxError):
    """A simulation ran into a fault of ours for which no gang is to blame; the message says when, and what it was."""


class ClusterError(PhalanxError):
    """The API server refused a request or did not answer it; `code` and `reason` are those of HTTP and of its Status object."""

    code, reason = 400, "BadRequest"

    def __init__(self, message: str, *, kind: str = "", name: str = "", cause: tuple[str, str] | None = None) -> None:
        """Say what was refused; `kind`, `name` and `cause` (a reason and a message) are the details that clients look at."""
        super().__init__(message)
        self.kind, self.name, self.cause = kind, name, cause
        self.retry_after = 0.0
        """After so many seconds the server wants to be asked again; it did not say if that is 0."""


class Missing(ClusterError):
    """There is no such object."""

    code, reason = 404, "NotFound"


class Conflict(ClusterError):
    """The object has changed since it was read, or is in a state that does not allow this."""

    code, reason = 409, "Conflict"


class Exists(ClusterError):
    """There is an object of that name already."""

    code, reason = 409, "AlreadyExists"


class Invalid(ClusterError):
    """The object is wrong, or changes what may not change."""

    code, reason = 422, "Invalid"
    faults: tuple[str, ...] = ()
    """What is wrong, each with its field before the first colon: kubectl shows these and not the message."""

    @classmethod
    def because(cls, kind: str, name: str, *faults: str, group: str = "") -> "Invalid":
        """Return the error of an object that has these faults."""
        text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        problem = cls(f'{kind}{group and f".{group}"} "{name}" is invalid: {text}', kind=kind, name=name)
        problem.faults = faults
        return problem


class Unauthorized(ClusterError):
    """The server does not know who asks: credentials are missing, wrong or over."""

    code, reason = 401, "Unauthorized"


class Forbidden(ClusterError):
    """A rule of the cluster says no."""

    code, reason = 403, "Forbidden"


class NotAllowed(ClusterError):
    """This cannot be done to that, whatever the object."""

    code, reason = 405, "MethodNotAllowed"


class WrongForm(ClusterError):
    """The body of a request is in a form that the server does not read."""

    code, reason = 415, "UnsupportedMediaType"


class TooLarge(ClusterError):
    """The body of a request is larger than the server reads."""

    code, reason = 413, "RequestEntityTooLarge"


class Busy(ClusterError):
    """Not now: a disruption budget, or the server, asks to wait."""

    code, reason = 429, "TooManyRequests"


class ServerError(ClusterError):
    """The server failed at that; asking again may help for a while."""

    code, reason = 500, "InternalError"


class Unreachable(ClusterError):
    """Nobody answers at the address of the server, or it is not one, or only somebody who stands before it answers."""

    code, reason = 503, "ServiceUnavailable"


class Gone(ClusterError):
    """The point that a watch or a list started from is no longer known: list again."""

    code, reason = 410, "Expired"
