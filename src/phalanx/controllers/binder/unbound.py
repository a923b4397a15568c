"""Requests that have succeeded and whose pods have no node: etcd was restored to a state before the bind, and nobody else sees it.

Who carries out requests is through with them, and sessions take their pods for bound. Watches of two kinds may be apart, so a
request is first marked; if its pod has no node a while later, it is carried out once more. A pod that has its node after all is not
harmed: the server says so then.
"""

from collections.abc import Iterator

from phalanx.controllers.binder.pending import UNBOUND, read_request
from phalanx.controllers.controller import NOTHING, Key, Patch, Result, View
from phalanx.controllers.objects import annotations_of, inside, is_leaving, meta_of
from phalanx.errors import SnapshotError
from phalanx.model.bind_request import PENDING, SUCCEEDED
from phalanx.model.kinds import BIND_REQUEST, POD, Document, split_key
from phalanx.model.moment import moment_of, moment_text

UNBOUND_SINCE = "phalanx.dev/unbound-since"
UNBOUND_SECONDS = 30.0


def unbound(view: View, request: Document | None) -> Iterator[Key]:
    """Yield the key of a request that has succeeded without effect."""
    if request is not None and _is_unbound(view, request):
        meta = meta_of(request)
        yield Key(str(meta.get("namespace") or "default"), f"{UNBOUND}{meta['name']}")


def _is_unbound(view: View, document: Document) -> bool:
    if inside(document, "status", "phase") != SUCCEEDED:
        return False
    try:
        request = read_request(document)
    except SnapshotError:
        return False
    pod = view.find(POD, *split_key(request.task))
    if pod is None or is_leaving(pod) or request.owner_uid not in ("", meta_of(pod).get("uid")):
        return False
    return not inside(pod, "spec", "nodeName")


def carried_out_again(view: View, key: Key) -> Result:
    """Mark a request whose pod has no node, or open it again after a while."""
    name = key.name.removeprefix(UNBOUND)
    document = view.find(BIND_REQUEST, key.namespace, name)
    if document is None or not _is_unbound(view, document):
        return NOTHING
    since = moment_of(annotations_of(document).get(UNBOUND_SINCE, ""))
    if since is None:
        return Result([_marked(key.namespace, name, moment_text(view.now))], view.now + UNBOUND_SECONDS)
    if view.now < since + UNBOUND_SECONDS:
        return Result((), since + UNBOUND_SECONDS)
    status = {"phase": PENDING, "reason": "it had succeeded, and the pod has no node", "failedAttempts": 0}
    return Result(
        [_marked(key.namespace, name, None), Patch(BIND_REQUEST, key.namespace, name, {"status": status}, is_status=True)]
    )


def _marked(namespace: str, name: str, since: str | None) -> Patch:
    return Patch(BIND_REQUEST, namespace, name, {"metadata": {"annotations": {UNBOUND_SINCE: since}}})
