"""The tree of errors."""

import pickle

from phalanx.errors import ClusterError, ConfigError, Conflict, Gone, PhalanxError, SnapshotError


def test_every_error_is_a_phalanx_error() -> None:
    assert all(issubclass(error, PhalanxError) for error in (ConfigError, SnapshotError, ClusterError))
    assert all(issubclass(error, ClusterError) for error in (Conflict, Gone))


def test_an_error_keeps_its_message_across_processes() -> None:
    error = pickle.loads(pickle.dumps(SnapshotError("Pod a/b: spec.nodeName: not a text")))
    assert str(error) == "Pod a/b: spec.nodeName: not a text"
