"""The embedded cluster's objects: what the API server does with them, in memory and at once.

Documents that go in or come out are never changed afterwards, neither here nor by those who read them; a change makes a new one.
Time comes from the clock that is handed in, names of objects from a counter: the same calls give the same objects.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from phalanx.errors import Busy, ClusterError, Conflict, Exists, Forbidden, Invalid, Missing, ServerError
from phalanx.store import disruption, patches
from phalanx.store.history import ADDED, DELETED, MODIFIED, Event, History, Watch
from phalanx.store.kinds import Document, Kind, kind_of
from phalanx.store.selection import EVERYTHING, Selection

DEFAULT_GRACE = 30
ALWAYS_THERE = ("default", "kube-system", "kube-public", "kube-node-lease")
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
WAITS_FOR_DEPENDENTS = "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, the version it shows, and how to go on."""

    items: list[Document]
    version: str
    goes_on: str = ""


class MemoryStore:
    """Objects by kind, with everything that happens when one changes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with the namespaces and priority classes that every cluster has; the clock tells seconds since 1970."""
        self._clock = clock
        self._objects: dict[Kind, dict[str, Document]] = {}
        self._place_by_uid: dict[str, tuple[Kind, str]] = {}
        self._dependents: dict[str, dict[tuple[Kind, str], None]] = {}
        self._listeners: list[Callable[[Event], None]] = []
        self._numbers = 0
        self.history = History()
        for name in ALWAYS_THERE:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value})

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, kind: Kind, namespace: str, name: str) -> Document:
        """Return one object."""
        found = self._objects.get(kind, {}).get(_key(kind, namespace, name))
        if found is None:
            raise Missing(f'{kind.resource} "{name}" not found', kind=kind.plural, name=name)
        return found

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """Return one object, or None."""
        return self._objects.get(kind, {}).get(_key(kind, namespace, name))

    def items(self, kind: Kind, chosen: Selection = EVERYTHING) -> list[Document]:
        """Return the objects of a kind, in the order of their keys."""
        found = self._objects.get(kind, {})
        return [found[key] for key in sorted(found) if chosen is EVERYTHING or chosen.wants(found[key])]

    def page(self, kind: Kind, chosen: Selection = EVERYTHING, *, limit: int = 0, goes_on: str = "") -> Page:
        """Return a list, or a part of it; the part that follows begins after the key that `goes_on` names."""
        version, _, after = goes_on.partition(":") if goes_on else (str(self.history.version), "", "")
        if not version.isdigit():
            raise ClusterError(f"continue key is not valid: {goes_on!r}")
        self.history.check(int(version))
        found = [item for item in self.items(kind, chosen) if not after or _key_of(kind, item) > after]
        more = found[limit:] if limit else []
        items = found[:limit] if limit else found
        return Page(items, version, f"{version}:{_key_of(kind, items[-1])}" if more else "")

    def watch(self, kind: Kind, chosen: Selection = EVERYTHING, *, since: str = "") -> Watch:
        """Follow the changes of a kind after a version; from now on if none is given."""
        start = int(since) if since else self.history.version
        return self.history.watch(lambda event: event.kind is kind and chosen.wants(event.object), start)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Tell someone of every change from now on, at once."""
        self._listeners.append(listener)

    def everything(self) -> Iterable[Document]:
        """Yield every object, kinds in the order in which they were first used."""
        for objects in self._objects.values():
            yield from objects.values()

    # --- writing -----------------------------------------------------------------------------------------------------

    def create(self, document: Document) -> Document:
        """Add an object; its status is left to those who write statuses, except of nodes."""
        kind = kind_of(document)
        spec = {name: value for name, value in document.items() if name != "status" or not kind.has_status or kind.kind == "Node"}
        meta = {**document.get("metadata", {}), "uid": self._next_uid(), "creationTimestamp": self._stamp()}
        meta.pop("deletionTimestamp", None)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName']}{self._numbers:05x}"
        if kind.kind == "Pod":
            spec = self._admitted(spec)
        return self._add(kind, {**spec, "metadata": {**meta, "generation": 1}})

    def load(self, document: Document) -> Document:
        """Add an object as it was in another cluster, with its status, times and uid."""
        kind = kind_of(document)
        meta = {"uid": "", "creationTimestamp": self._stamp(), **document.get("metadata", {})}
        meta["uid"] = meta["uid"] or self._next_uid()
        namespace = meta.get("namespace", "") or ("default" if kind.is_namespaced else "")
        if kind.is_namespaced and self.find(NAMESPACE, "", namespace) is None:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        return self._add(kind, {**document, "metadata": meta})

    def replace(self, document: Document) -> Document:
        """Write an object anew; its version must be the one that was read, if it names one."""
        kind = kind_of(document)
        old = self.get(kind, *_place(kind, document))
        self._check_version(kind, old, document)
        return self._write(kind, old, {**document, **({"status": old["status"]} if kind.has_status and "status" in old else {})})

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, *, form: str = patches.MERGE, is_status: bool = False
    ) -> Document:
        """Change parts of an object: its status, or everything but that."""
        old = self.get(kind, namespace, name)
        new = patches.patched(old, patch, form)
        self._check_version(kind, old, new)
        if not kind.has_status:
            return self._write(kind, old, new)
        own, other = (new, old) if is_status else (old, new)
        kept = {key: value for key, value in other.items() if key != "status"}
        return self._write(kind, old, {**kept, **({"status": own["status"]} if "status" in own else {})})

    def delete(
        self, kind: Kind, namespace: str, name: str, *, grace: int | None = None, uid: str = "", spread: str = BACKGROUND
    ) -> Document:
        """Remove an object, or mark it as leaving if it has finalizers or a grace period; dependents follow as `spread` says."""
        old = self.get(kind, namespace, name)
        if uid and old["metadata"]["uid"] != uid:
            text = f"the UID in the precondition ({uid}) does not match the UID in record ({old['metadata']['uid']})"
            hint = "The object might have been deleted and then recreated"
            message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {text}. {hint}'
            raise Conflict(message, kind=kind.plural, name=name)
        if spread == ORPHAN:
            self._let_go(old["metadata"]["uid"])
        if spread == FOREGROUND and self._dependents.get(old["metadata"]["uid"]):
            finalizers = [*old["metadata"].get("finalizers", ()), WAITS_FOR_DEPENDENTS]
            old = {**old, "metadata": {**old["metadata"], "finalizers": list(dict.fromkeys(finalizers))}}
        seconds = _grace(kind, old, grace)
        if not seconds and not old["metadata"].get("finalizers"):
            return self._remove(kind, old)
        return self._mark_leaving(kind, old, seconds)

    def _mark_leaving(self, kind: Kind, old: Document, seconds: int) -> Document:
        meta = old["metadata"]
        known = meta.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in meta and known is not None and known <= seconds:
            return old
        leaving = {"deletionTimestamp": self._stamp(seconds), "deletionGracePeriodSeconds": seconds}
        marked = self._put(kind, MODIFIED, {**old, "metadata": {**meta, **leaving}})
        if WAITS_FOR_DEPENDENTS in meta.get("finalizers", ()):
            self._remove_dependents(meta["uid"])
            return self.find(kind, meta.get("namespace", ""), meta["name"]) or marked
        return marked

    # --- what pods have besides --------------------------------------------------------------------------------------

    def bind(self, namespace: str, name: str, node: str, *, uid: str = "") -> None:
        """Give a pod a node, once."""
        pod = self.get(POD, namespace, name)
        if uid and pod["metadata"]["uid"] != uid:
            found = pod["metadata"]["uid"]
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
            raise Conflict(f'Operation cannot be fulfilled on pods "{name}": {text}', kind="pods", name=name)
        if problem := _why_not_bound(pod, name):
            raise Conflict(f'Operation cannot be fulfilled on pods/binding "{name}": {problem}', kind="pods/binding", name=name)
        if not node:
            raise Invalid("target.name: Required value")
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._stamp()}
        others = [condition for condition in _conditions(pod) if condition.get("type") != "PodScheduled"]
        status = {**pod.get("status", {}), "conditions": [*others, scheduled]}
        status.pop("nominatedNodeName", None)
        self._put(POD, MODIFIED, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})

    def evict(self, namespace: str, name: str, *, uid: str = "", grace: int | None = None) -> None:
        """Delete a pod as far as disruption budgets allow."""
        pod = self.get(POD, namespace, name)
        budgets = [budget for budget in self.items(BUDGET) if disruption.covers(budget, pod)]
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ServerError(text, kind="pods", name=name)
        for budget in budgets:
            healthy, needed = disruption.count(budget, self._objects.get(POD, {}).values())
            if disruption.is_healthy(pod) and healthy - 1 < needed:
                text = f"The disruption budget {budget['metadata']['name']} needs {needed} healthy pods and has {healthy} currently"
                raise Busy(f"Cannot evict pod as it would violate the pod's disruption budget. {text}", kind="pods", name=name)
        self.delete(POD, namespace, name, uid=uid, grace=grace)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _add(self, kind: Kind, document: Document) -> Document:
        meta = document["metadata"]
        if not meta.get("name"):
            raise Invalid(f"{kind.kind}: metadata.name: Required value: name or generateName is required")
        namespace, name = _place(kind, document)
        if kind.is_namespaced:
            if self.find(NAMESPACE, "", namespace) is None:
                raise Missing(f'namespaces "{namespace}" not found', kind="namespaces", name=namespace)
            document = {**document, "metadata": {**meta, "namespace": namespace}}
        old = self.find(kind, namespace, name)
        if old is not None:
            is_leaving = "object is being deleted: " if "deletionTimestamp" in old["metadata"] else ""
            raise Exists(f'{is_leaving}{kind.resource} "{name}" already exists', kind=kind.plural, name=name)
        return self._put(kind, ADDED, document)

    def _admitted(self, pod: Document) -> dict[str, Any]:
        """Return a pod as admission leaves it: with the number of its priority class, and waiting."""
        spec = pod.get("spec", {})
        name = spec.get("priorityClassName", "")
        if name:
            found = self.find(PRIORITY, "", name)
            if found is None:
                raise Forbidden(
                    f'pods "{pod["metadata"].get("name", "")}" is forbidden: no PriorityClass with name {name} was found'
                )
            spec = {**spec, "priority": found["value"]}
            if "preemptionPolicy" in found:
                spec = {"preemptionPolicy": found["preemptionPolicy"], **spec}
        return {**pod, "spec": spec, "status": {"phase": "Pending"}}

    def _write(self, kind: Kind, old: Document, new: Document) -> Document:
        """Put a changed object in place of the old one; nothing happens if nothing changed."""
        meta = {**new["metadata"], **{key: old["metadata"][key] for key in _LASTING if key in old["metadata"]}}
        if (named := new["metadata"].get("uid", meta["uid"])) != meta["uid"]:
            raise Invalid(f'{kind.kind} "{meta["name"]}" is invalid: metadata.uid: Invalid value: "{named}": field is immutable')
        new = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": meta}
        if new == old:
            return old
        self._refuse_fixed(kind, old, new)
        if kind.has_status and any(new.get(key) != old.get(key) for key in {*new, *old} - {"metadata", "status"}):
            meta["generation"] = meta.get("generation", 1) + 1
        if "deletionTimestamp" in meta and not meta.get("finalizers") and not _grace(kind, new, None):
            return self._remove(kind, new)
        return self._put(kind, MODIFIED, new)

    def _refuse_fixed(self, kind: Kind, old: Document, new: Document) -> None:
        if kind.kind == "Pod" and new["spec"].get("nodeName") != old["spec"].get("nodeName"):
            name = old["metadata"]["name"]
            raise Invalid(f'Pod "{name}" is invalid: spec: Forbidden: pod updates may not change fields other than a few; use bind')

    def _check_version(self, kind: Kind, old: Document, new: Document) -> None:
        named = new.get("metadata", {}).get("resourceVersion")
        if named and named != old["metadata"]["resourceVersion"]:
            name = old["metadata"]["name"]
            text = "the object has been modified; please apply your changes to the latest version and try again"
            raise Conflict(f'Operation cannot be fulfilled on {kind.resource} "{name}": {text}', kind=kind.plural, name=name)

    def _put(self, kind: Kind, change: str, document: Document) -> Document:
        version = self.history.next_version()
        document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(version)}}
        key = _key_of(kind, document)
        self._objects.setdefault(kind, {})[key] = document
        self._place_by_uid[document["metadata"]["uid"]] = (kind, key)
        for owner in document["metadata"].get("ownerReferences", ()):
            self._dependents.setdefault(str(owner.get("uid", "")), {})[(kind, key)] = None
        self._tell(Event(version, change, kind, document))
        return document

    def _remove(self, kind: Kind, document: Document) -> Document:
        version = self.history.next_version()
        last = {**document, "metadata": {**document["metadata"], "resourceVersion": str(version)}}
        self._objects[kind].pop(_key_of(kind, document), None)
        self._place_by_uid.pop(document["metadata"]["uid"], None)
        self._tell(Event(version, DELETED, kind, last))
        self._remove_dependents(document["metadata"]["uid"])
        for owner in document["metadata"].get("ownerReferences", ()):
            self._forget_dependent(str(owner.get("uid", "")), kind, _key_of(kind, document))
        return last

    def _tell(self, event: Event) -> None:
        self.history.add(event)
        for listener in self._listeners:
            listener(event)

    # --- owners ------------------------------------------------------------------------------------------------------

    def _remove_dependents(self, uid: str) -> None:
        """Delete what was owned by an object and by nobody else who is there."""
        for kind, key in list(self._dependents.get(uid, ())):
            document = self._objects.get(kind, {}).get(key)
            if document is None:
                self._forget_dependent(uid, kind, key)
                continue
            others = [owner for owner in document["metadata"].get("ownerReferences", ()) if owner.get("uid") != uid]
            if not any(str(owner.get("uid", "")) in self._place_by_uid for owner in others):
                namespace, name = _place(kind, document)
                self.delete(kind, namespace, name)

    def _forget_dependent(self, uid: str, kind: Kind, key: str) -> None:
        left = self._dependents.get(uid)
        if left is None:
            return
        left.pop((kind, key), None)
        if not left:
            del self._dependents[uid]
            self._end_wait(uid)

    def _end_wait(self, uid: str) -> None:
        """Remove an owner that waited for its last dependent to go."""
        kind, key = self._place_by_uid.get(uid, (POD, ""))
        document = self._objects.get(kind, {}).get(key)
        if document is not None and WAITS_FOR_DEPENDENTS in document["metadata"].get("finalizers", ()):
            left = [name for name in document["metadata"]["finalizers"] if name != WAITS_FOR_DEPENDENTS]
            self._write(kind, document, {**document, "metadata": {**document["metadata"], "finalizers": left}})

    def _let_go(self, uid: str) -> None:
        """Take an owner out of its dependents, so that they stay when it goes."""
        for kind, key in list(self._dependents.pop(uid, ())):
            document = self._objects.get(kind, {}).get(key)
            if document is not None:
                left = [owner for owner in document["metadata"].get("ownerReferences", ()) if owner.get("uid") != uid]
                self._write(kind, document, {**document, "metadata": {**document["metadata"], "ownerReferences": left}})

    def _next_uid(self) -> str:
        self._numbers += 1
        return f"00000000-0000-4000-8000-{self._numbers:012x}"

    def _stamp(self, later: float = 0.0) -> str:
        return stamp(int(self._clock() + later))


_LASTING = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace", "name")
POD = kind_of({"apiVersion": "v1", "kind": "Pod"})
NAMESPACE = kind_of({"apiVersion": "v1", "kind": "Namespace"})
PRIORITY = kind_of({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"})
BUDGET = kind_of({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"})


@lru_cache(maxsize=1024)
def stamp(moment: int) -> str:
    """Return seconds since 1970 as Kubernetes writes times."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _key(kind: Kind, namespace: str, name: str) -> str:
    return f"{namespace or 'default'}/{name}" if kind.is_namespaced else name


def _key_of(kind: Kind, document: Document) -> str:
    return _key(kind, *_place(kind, document))


def _place(kind: Kind, document: Document) -> tuple[str, str]:
    meta = document.get("metadata", {})
    return (str(meta.get("namespace") or "default") if kind.is_namespaced else "", str(meta.get("name", "")))


def _conditions(document: Document) -> list[Document]:
    return list(document.get("status", {}).get("conditions") or ())


def _grace(kind: Kind, document: Document, asked: int | None) -> int:
    """Return how long an object may take to leave: pods on a node that still run, and no others."""
    if kind is not POD or not document["spec"].get("nodeName"):
        return 0
    if document.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return asked if asked is not None else int(document["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE))


def _why_not_bound(pod: Document, name: str) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if pod["spec"].get("schedulingGates") else ""
