"""The tree of errors."""

import pickle

from phalanx.errors import ClusterError, ConfigError, Conflict, Gone, PhalanxError, SnapshotError


def test_every_error_is_a_phalanx_error() -> None:
    assert all(issubclass(error, PhalanxError) for error in (ConfigError, SnapshotError, ClusterError))
    assert all(issubclass(error, ClusterError) for error in (Conflict, Gone))


def test_a_snapshot_error_keeps_where_it_happened_also_across_processes() -> None:
    error = pickle.loads(pickle.dumps(SnapshotError("Pod a/b", "spec.nodeName: not a text")))
    assert error.where == "Pod a/b"
    assert str(error) == "Pod a/b: spec.nodeName: not a text"
