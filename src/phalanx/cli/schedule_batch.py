"""`phalanx schedule --batch`: one JSON request per line, one JSON answer per line, until the input ends. No line ends the batch."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from phalanx.config.policies import policy_of
from phalanx.dialects.cluster import ObjectCluster, describe
from phalanx.dialects.field_values import seconds
from phalanx.dialects.queue_usage import history
from phalanx.errors import PhalanxError, SnapshotError
from phalanx.explain.answer import whole_answer
from phalanx.live.catalogue import connected
from phalanx.scheduling.shards import decide
from phalanx.store.completion import ManifestObjects


def answers(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Answer every line."""
    for line in lines:
        if line.strip():
            yield msgspec.json.encode(answer_line(line)) + b"\n"


def answer_line(line: bytes) -> dict[str, Any]:
    """Answer one request; anything wrong with it becomes an `error` sentence."""
    identity: object = None
    try:
        request = msgspec.json.decode(line)
        if not isinstance(request, dict):
            raise SnapshotError(f"request: expected an object with id, config and objects, got {type(request).__name__}")
        identity = request.get("id")
        return {"id": identity, "error": None, **_decide(request)}
    except (PhalanxError, msgspec.MsgspecError) as problem:
        return {"id": identity, "error": str(problem)}
    except (UnicodeDecodeError, RecursionError) as problem:
        return {"id": identity, "error": f"request: not JSON that can be read: {problem}"}
    except Exception as problem:
        return {"id": identity, "error": f"internal error, please report it: {type(problem).__name__}: {problem}"}


def _decide(request: dict[str, Any]) -> dict[str, Any]:
    policy = policy_of(request.get("config"))
    cluster = ObjectCluster(attach=policy.attach_rules)
    objects = request.get("objects") or []
    if not isinstance(objects, list):
        raise SnapshotError(f"objects: expected a list, got {type(objects).__name__}")
    defaults = ManifestObjects(objects)
    for number, item in enumerate(objects):
        if not isinstance(item, dict):
            raise SnapshotError(f"objects[{number}]: expected an object, got {type(item).__name__}")
        try:
            cluster.put(defaults.complete(item))
        except (TypeError, AttributeError) as problem:
            raise SnapshotError(f"objects[{number}], {describe(item)}: {problem}") from problem
    cluster.put_history(None if request.get("usage") is None else history(request["usage"]))
    return whole_answer(decide(cluster.snapshot(_now(request)), connected(policy)))


def _now(request: dict[str, Any]) -> float:
    now = request.get("now")
    if now is not None and not isinstance(now, str):
        raise SnapshotError(f"now: expected a time such as '2026-01-01T12:00:00Z', got {type(now).__name__}")
    return seconds(now, where="now")
