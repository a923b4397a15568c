"""Every exception that Phalanx raises on purpose.

    PhalanxError
    ├── ConfigError        a configuration file, profile or option is wrong
    ├── SnapshotError      an object of the cluster cannot be understood
    └── ClusterError       the API server refused or did not answer
        ├── Conflict       the object has changed since it was read: read it again
        └── Gone           the object, or the point a watch started from, no longer exists

A message says where, what, and what to write instead; it starts in lower case and has no full stop. The command line
prints it after "error: " and exits with 1. A task that does not fit is no error: it is a verdict.
"""


class PhalanxError(Exception):
    """Anything that Phalanx raises on purpose."""


class ConfigError(PhalanxError):
    """A configuration file, a profile or an option is wrong."""


class SnapshotError(PhalanxError):
    """An object of the cluster cannot be understood; the message begins with its place, like "PodGroup research/train"."""


class ClusterError(PhalanxError):
    """The API server refused a request or did not answer it."""


class Conflict(ClusterError):
    """The object has changed since it was read."""


class Gone(ClusterError):
    """The object, or the point a watch started from, no longer exists."""
