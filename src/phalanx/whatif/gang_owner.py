"""Who makes the pods of a gang: the controller of its group object, or else that of its pods."""

from collections.abc import Callable, Iterator

from phalanx.controllers.objects import controller_of
from phalanx.controllers.pod_makers import is_suspended, pods_wanted
from phalanx.explain.reading import Owner
from phalanx.model.kinds import GROUP_BY_DIALECT, Document
from phalanx.state.gang_state import GangState

Find = Callable[[str, str, str], Document | None]
"""Returns the object of an API group, a kind and a key, if there is one."""
MAKERS_OF_MAKERS = ("ReplicaSet",)
"""Kinds behind which there is another one that people know."""


def owner_of(gang: GangState, find: Find) -> Owner | None:
    """Return who makes the pods of a gang; None where no object says so."""
    for document in _documents(gang, find):
        reference = controller_of(document)
        if reference is not None:
            return _owner(reference, gang.gang.namespace, find)
    return None


def _documents(gang: GangState, find: Find) -> Iterator[Document]:
    """Yield the group object and the pods, as far as they are there."""
    kind = GROUP_BY_DIALECT.get(gang.gang.dialect)
    names = [] if kind is None else [(kind.group, kind.kind, f"{gang.gang.namespace}/{gang.gang.name}")]
    names += [("", "Pod", str(task.task.key)) for task in gang.tasks]
    yield from (document for name in names if (document := find(*name)) is not None)


def _owner(reference: Document, namespace: str, find: Find) -> Owner:
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    kind, key = str(reference.get("kind", "")), f"{namespace}/{reference.get('name', '')}"
    document = find(group, kind, key)
    if document is None:
        return Owner(kind, key, is_known=False)
    above = controller_of(document) if kind in MAKERS_OF_MAKERS else None
    if above is not None:
        return _owner(above, namespace, find)
    return Owner(kind, key, pods_wanted(document), is_suspended(document))
