"""The embedded cluster's objects: what the API server does with them, in memory and at once.

Documents that go in or come out are never changed afterwards, neither here nor by those who read them; a change makes a new one.
Time comes from the clock that is handed in, names of objects from a counter: the same calls give the same objects.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from phalanx.dialects.pod_defaults import SYSTEM_CLASSES
from phalanx.errors import ClusterError, Conflict, Exists, Forbidden, Gone, Invalid, Missing
from phalanx.model.kinds import BUDGET, NAMESPACE, NODE, POD, Document, Kind, kind_of
from phalanx.model.moment import moment_text
from phalanx.model.task_status import ENDED
from phalanx.model.watch_event import ADDED, DELETED, MODIFIED, WatchEvent
from phalanx.store import admission, patches
from phalanx.store import budgets as disruption
from phalanx.store import pod_rules as pods
from phalanx.store.completion import completed
from phalanx.store.list_page import ListPage
from phalanx.store.object_place import key_at, key_of, place_of
from phalanx.store.selection import EVERYTHING, Selection
from phalanx.store.value_rules import refuse_values
from phalanx.store.watch_history import History, Watch

ALWAYS_THERE = ("default", "kube-system", "kube-public", "kube-node-lease")
BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
UID_START = "00000000-0000-4000-8000-"
WAITS_FOR_DEPENDENTS = "foregroundDeletion"


def _refuse_incomplete(document: Document) -> None:
    """Refuse an object that this store cannot have written."""
    meta = document.get("metadata")
    texts = [meta.get(key) for key in ("name", "uid", "resourceVersion")] if isinstance(meta, dict) else [None]
    if not all(isinstance(text, str) and text for text in texts):
        raise Invalid(f"{document.get('kind')}: metadata: a name, uid or resourceVersion is missing")


def _raise(_: WatchEvent, problem: Exception) -> None:
    raise problem


class MemoryStore:
    """Objects by kind, with everything that the API server and the garbage collector do when one changes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with the namespaces and priority classes that every cluster has; the clock returns seconds since 1970."""
        self._clock = clock
        self._objects: dict[Kind, dict[str, Document]] = {}
        self._place_by_uid: dict[str, tuple[Kind, str]] = {}
        self._dependents: dict[str, dict[tuple[Kind, str], None]] = {}
        self._listeners: list[Callable[[WatchEvent], None]] = []
        self.on_failure: Callable[[WatchEvent, Exception], None] = _raise
        """Called with the first listener's failure over a change, after all have heard of it."""
        self.binding: list[Callable[[Document, str], None]] = []
        """Called before a pod is bound to a node; a listener refuses the binding by raising."""
        self.without_status: set[Kind] = set()
        """Kinds whose definition has no status subresource: their status is written with the object."""
        self.numbers = 0
        """How many uids were given out; the next one follows from it."""
        self.history = History()
        for name in ALWAYS_THERE:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value})

    @property
    def now(self) -> float:
        """Seconds since 1970, by the clock of the cluster."""
        return self._clock()

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, kind: Kind, namespace: str, name: str) -> Document:
        """Return one object."""
        found = self._objects.get(kind, {}).get(key_at(kind, namespace, name))
        if found is None:
            raise Missing(f'{kind.resource} "{name}" not found', kind=kind.plural, name=name)
        return found

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """Return one object, or None."""
        return self._objects.get(kind, {}).get(key_at(kind, namespace, name))

    def items(self, kind: Kind, chosen: Selection = EVERYTHING) -> list[Document]:
        """Return the objects of a kind, in the order of their keys."""
        found = self._objects.get(kind, {})
        return [found[key] for key in sorted(found) if chosen is EVERYTHING or chosen.wants(found[key])]

    def has_any(self, kind: Kind) -> bool:
        """Tell whether there are objects of a kind."""
        return bool(self._objects.get(kind))

    def within(self, kind: Kind, namespace: str = "") -> list[Document]:
        """Return the objects of a kind in a namespace, or everywhere, in the order of their keys."""
        return self.items(kind, Selection(namespace) if namespace else EVERYTHING)

    def owned(self, uid: str, kind: Kind) -> list[Document]:
        """Return the objects of a kind that name this owner, in the order of their keys."""
        keys = sorted(key for found, key in self._dependents.get(uid, ()) if found is kind)
        return [self._objects[kind][key] for key in keys if key in self._objects.get(kind, {})]

    def is_hidden(self, kind: Kind) -> bool:
        """Tell whether a kind may not be read; here every kind may."""
        return False

    def is_served(self, kind: Kind) -> bool:
        """Tell whether there can be objects of a kind; here of every kind."""
        return True

    def page(self, kind: Kind, chosen: Selection = EVERYTHING, *, limit: int = 0, continue_token: str = "") -> ListPage:
        """Return a list, or a page of it; all pages show the version of the first: `continue_token` has it, and the last key."""
        version, _, after = continue_token.partition(":") if continue_token else (str(self.history.version), "", "")
        if not version.isdigit():
            raise ClusterError(f"continue key is not valid: {continue_token!r}; leave it out to list from the start")
        found = self._as_of(kind, int(version))
        keys = [key for key in sorted(found) if key > after and chosen.wants(found[key])]
        shown = keys[:limit] if limit else keys
        left = len(keys) - len(shown)
        return ListPage([found[key] for key in shown], version, f"{version}:{shown[-1]}" if left else "", left)

    def _as_of(self, kind: Kind, version: int) -> dict[str, Document]:
        """Return the objects of a kind by key as they were at a version: the present ones with all later changes undone."""
        try:
            since = self.history.since(version)
        except Gone:
            text = "The provided continue parameter is too old to display a consistent list result."
            raise Gone(f"{text} You can start a new list without the continue parameter.") from None
        found = dict(self._objects.get(kind, {}))
        for event in reversed([event for event in since if event.kind is kind]):
            found.pop(key_of(kind, event.object), None)
            if event.before is not None:
                found[key_of(kind, event.before)] = event.before
        return found

    def watch(self, kind: Kind, chosen: Selection = EVERYTHING, *, since: str = "") -> Watch:
        """Follow the changes of a kind after a version; from now on if none is given."""
        if since and not since.isdigit():
            raise ClusterError(f"invalid resource version {since!r}: write the one that a list or an object shows")
        return self.history.watch(Watch(kind, chosen), int(since) if since else self.history.version)

    def listen(self, listener: Callable[[WatchEvent], None]) -> None:
        """Call a listener with every change from now on, before the write returns."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[WatchEvent], None]) -> None:
        """Call a listener no more."""
        self._listeners.remove(listener)

    def everything(self) -> Iterable[Document]:
        """Yield every object, kinds in the order in which they were first used."""
        for objects in self._objects.values():
            yield from objects.values()

    # --- writing -----------------------------------------------------------------------------------------------------

    def trial(self) -> "MemoryStore":
        """Return a copy for a dry run: it has no watches or listeners, and changes to it do not happen here."""
        copy = MemoryStore(self._clock)
        copy._objects = {kind: dict(objects) for kind, objects in self._objects.items()}
        copy._place_by_uid = dict(self._place_by_uid)
        copy._dependents = {uid: dict(places) for uid, places in self._dependents.items()}
        copy.numbers, copy.history.version = self.numbers, self.history.version
        return copy

    def set_back(self, backup: "MemoryStore") -> None:
        """Hold what a copy of this store holds, at its version, as etcd restored from a backup; watches miss what is undone."""
        earlier = backup.trial()
        self._objects, self._place_by_uid, self._dependents = earlier._objects, earlier._place_by_uid, earlier._dependents
        self.history.go_back(earlier.history.version)

    def create(self, document: Document) -> Document:
        """Add an object; its status is left to those who write statuses, except of nodes."""
        kind = kind_of(document)
        made = {name: value for name, value in document.items() if name != "status" or not kind.has_status or kind.kind == "Node"}
        meta = {**(document.get("metadata") or {}), "uid": self._next_uid(), "creationTimestamp": self.stamp()}
        meta.pop("deletionTimestamp", None)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName']}{self.numbers:05x}"
        made["metadata"] = {**meta, "generation": 1}
        if kind.is_namespaced:
            self._check_namespace(kind, *place_of(kind, made))
        made = dict(completed(kind, made, self))
        refuse_values(kind, made)
        if admission.has_rules(kind, is_new=True):
            admission.refuse_invalid(kind, made, self._namespace_of(kind, made))
        if kind is POD:
            made = pods.waiting(made)
        if kind is NAMESPACE:
            made["status"] = {"phase": "Active"}
        return self._add(kind, made)

    def load(self, document: Document) -> Document:
        """Add an object as it was in another cluster, with its status, times and uid."""
        kind = kind_of(document)
        meta = {"uid": "", "creationTimestamp": self.stamp(), **document.get("metadata", {})}
        meta["uid"] = meta["uid"] or self._next_uid()
        self._count_past(meta["uid"])
        namespace = meta.get("namespace", "") or ("default" if kind.is_namespaced else "")
        if kind.is_namespaced and self.find(NAMESPACE, "", namespace) is None:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        return self._add(kind, {**document, "metadata": meta})

    def restore(self, documents: Iterable[Document], *, version: int, numbers: int) -> None:
        """Go on from the objects, the version and the number of uids of another run; listeners get every object."""
        self.history.version, self.numbers = max(version, self.history.version), max(numbers, self.numbers)
        for document in documents:
            kind = kind_of(document)
            _refuse_incomplete(document)
            old = self.find(kind, *place_of(kind, document))
            if old is not None:
                self._place_by_uid.pop(old["metadata"]["uid"], None)
            self._put(kind, ADDED if old is None else MODIFIED, document)
        self.history.compact(self.history.version)

    def replace(self, document: Document, *, is_status: bool = False) -> Document:
        """Write an object anew: its status, or everything but that; its version must be the one that was read, if it names one."""
        kind = kind_of(document)
        return self._change(kind, self.get(kind, *place_of(kind, document)), document, is_status=is_status)

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, *, form: str = patches.MERGE, is_status: bool = False
    ) -> Document:
        """Change parts of an object: its status, or everything but that."""
        return self.change(kind, namespace, name, lambda old: patches.patched(old, patch, form), is_status=is_status)

    def change(
        self, kind: Kind, namespace: str, name: str, change: Callable[[Document], Document], *, is_status: bool = False
    ) -> Document:
        """Put what somebody makes of an object in its place: its status, or everything but that."""
        old = self.get(kind, namespace, name)
        return self._change(kind, old, change(old), is_status=is_status)

    def _change(self, kind: Kind, old: Document, new: Document, *, is_status: bool) -> Document:
        """Replace the status of an object, or everything but the status.

        As on a real server the other half is ignored: who writes a spec from an old copy does not undo a newer status.
        """
        self._check_version(kind, old, new)
        self._check_uid(kind, old, new)
        if not is_status or kind is NODE:
            refuse_values(kind, new)
        if not is_status and admission.has_rules(kind, is_new=False):
            new = admission.admitted_change(kind, old, new, self._namespace_of(kind, old))
        if is_status and kind in self.without_status:
            raise Missing("the server could not find the requested resource")
        if not kind.has_status or kind in self.without_status:
            return self._write(kind, old, new)
        own, other = (new, old) if is_status else (old, new)
        kept = {key: value for key, value in other.items() if key != "status"}
        return self._write(kind, old, {**kept, **({"status": own["status"]} if "status" in own else {})})

    def delete(
        self, kind: Kind, namespace: str, name: str, *, grace: int | None = None, uid: str = "", propagation: str = BACKGROUND
    ) -> Document:
        """Delete an object; dependents follow as `propagation` says.

        Where somebody has to act first, deletion has two steps: the object is only marked with a deletionTimestamp, and removed by
        the write that takes the last finalizer off, or, a pod on a node, by the kubelet's deletion without grace period.
        """
        old = self.get(kind, namespace, name)
        if uid and old["metadata"]["uid"] != uid:
            text = f"the UID in the precondition ({uid}) does not match the UID in record ({old['metadata']['uid']})"
            hint = "The object might have been deleted and then recreated"
            message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {text}. {hint}'
            raise Conflict(message, kind=kind.plural, name=name)
        admission.refuse_deletion(kind, old)
        if propagation == ORPHAN:
            self._orphan_dependents(old["metadata"]["uid"])
        # Foreground deletion is a finalizer like any other: the owner stays, marked, until its last dependent is removed.
        if propagation == FOREGROUND and self._dependents.get(old["metadata"]["uid"]):
            finalizers = [*old["metadata"].get("finalizers", ()), WAITS_FOR_DEPENDENTS]
            old = {**old, "metadata": {**old["metadata"], "finalizers": list(dict.fromkeys(finalizers))}}
        if kind is NAMESPACE:
            return self._terminate_namespace(old)
        seconds = _grace(kind, old, grace)
        if seconds or old["metadata"].get("finalizers"):
            return self._mark_leaving(kind, old, seconds)
        # A pod that goes at once is marked first too: watches of a real server show both events.
        return self._remove(kind, self._mark_leaving(kind, old, 0) if kind is POD else old)

    def _mark_leaving(self, kind: Kind, old: Document, seconds: int) -> Document:
        meta = old["metadata"]
        known = meta.get("deletionGracePeriodSeconds")
        if "deletionTimestamp" in meta and known is not None and known <= seconds:
            return old  # a second deletion may shorten the grace period, never lengthen it
        leaving = {"deletionTimestamp": self.stamp(seconds), "deletionGracePeriodSeconds": seconds}
        if "deletionTimestamp" not in meta and "generation" in meta:
            leaving["generation"] = meta["generation"] + 1
        marked = self._put(kind, MODIFIED, {**old, "metadata": {**meta, **leaving}})
        if WAITS_FOR_DEPENDENTS in meta.get("finalizers", ()):
            self._remove_dependents(meta["uid"])
            # Without grace period the dependents are gone by now, and the owner with them.
            return self.find(kind, meta.get("namespace", ""), meta["name"]) or marked
        return marked

    # --- what pods have besides --------------------------------------------------------------------------------------

    def bind(self, namespace: str, name: str, node: str, *, uid: str = "", annotations: Mapping[str, str] | None = None) -> None:
        """Give a pod a node, once, and annotations with it."""
        self.bind_as(namespace, name, {"metadata": {"uid": uid, "annotations": annotations}, "target": {"name": node}})

    def bind_as(self, namespace: str, name: str, binding: Document) -> None:
        """Give a pod the node that a Binding names, and its labels and annotations."""
        pod = self.get(POD, namespace, name)
        pods.refuse_binding(pod, binding)
        for listener in self.binding:
            listener(pod, binding["target"]["name"])
        self._put(POD, MODIFIED, pods.bound(pod, binding, self.stamp()))

    def evict(self, namespace: str, name: str, *, uid: str = "", grace: int | None = None) -> None:
        """Delete a pod as far as disruption budgets allow."""
        pod = self.get(POD, namespace, name)
        disruption.refuse(pod, self.items(BUDGET), self._objects.get(POD, {}).values())
        is_running = not pod["metadata"].get("deletionTimestamp") and pod.get("status", {}).get("phase") not in ENDED
        if is_running and uid in ("", pod["metadata"]["uid"]):
            self._put(POD, MODIFIED, pods.disrupted(pod, self.stamp()))
        self.delete(POD, namespace, name, uid=uid, grace=grace)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _add(self, kind: Kind, document: Document) -> Document:
        meta = document["metadata"]
        if not meta.get("name"):
            raise Invalid.because(kind.kind, "", "metadata.name: Required value: name or generateName is required")
        namespace, name = place_of(kind, document)
        if kind.is_namespaced:
            document = {**document, "metadata": {**meta, "namespace": namespace}}
        old = self.find(kind, namespace, name)
        if old is not None:
            is_leaving = "object is being deleted: " if "deletionTimestamp" in old["metadata"] else ""
            raise Exists(f'{is_leaving}{kind.resource} "{name}" already exists', kind=kind.plural, name=name)
        return self._put(kind, ADDED, document)

    def _namespace_of(self, kind: Kind, document: Document) -> Document | None:
        return self.find(NAMESPACE, "", place_of(kind, document)[0]) if kind.is_namespaced else None

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse a namespace that does not exist, or nothing new is made in."""
        found = self.find(NAMESPACE, "", namespace)
        if found is None:
            raise Missing(f'namespaces "{namespace}" not found', kind="namespaces", name=namespace)
        if "deletionTimestamp" in found["metadata"]:
            text = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise Forbidden(f'{kind.resource} "{name}" is forbidden: {text}', kind=kind.plural, name=name)

    def _write(self, kind: Kind, old: Document, new: Document) -> Document:
        """Put a changed object in place of the old one; nothing happens if nothing changed."""
        meta = {**new["metadata"], **{key: old["metadata"][key] for key in _LASTING if key in old["metadata"]}}
        new = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": meta}
        if new == old:
            return old
        if kind is POD:
            pods.refuse_change(old, new)
        if kind.has_status and any(new.get(key) != old.get(key) for key in {*new, *old} - {"metadata", "status"}):
            meta["generation"] = meta.get("generation", 1) + 1
        # The second step of a deletion: no finalizer is left, and the grace period is over or, of a pod that has ended, pointless.
        is_due = not meta.get("deletionGracePeriodSeconds") or not _grace(kind, new, None)
        if "deletionTimestamp" in meta and not meta.get("finalizers") and is_due:
            return self._remove(kind, new)
        return self._put(kind, MODIFIED, new)

    def _check_uid(self, kind: Kind, old: Document, new: Document) -> None:
        meta, named = old["metadata"], new.get("metadata", {}).get("uid")
        if named and named != meta["uid"]:
            fault = f'metadata.uid: Invalid value: "{named}": field is immutable'
            raise Invalid.because(kind.kind, meta["name"], fault)

    def _check_version(self, kind: Kind, old: Document, new: Document) -> None:
        named = new.get("metadata", {}).get("resourceVersion")
        if named and named != old["metadata"]["resourceVersion"]:
            name = old["metadata"]["name"]
            text = "the object has been modified; please apply your changes to the latest version and try again"
            raise Conflict(f'Operation cannot be fulfilled on {kind.resource} "{name}": {text}', kind=kind.plural, name=name)

    def _put(self, kind: Kind, change: str, document: Document) -> Document:
        version = self.history.next_version()
        document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(version)}}
        key = key_of(kind, document)
        before = self._objects.setdefault(kind, {}).get(key)
        self._objects[kind][key] = document
        self._place_by_uid[document["metadata"]["uid"]] = (kind, key)
        for owner in document["metadata"].get("ownerReferences", ()):
            self._dependents.setdefault(str(owner.get("uid", "")), {})[(kind, key)] = None
        self._notify(WatchEvent(version, change, kind, document, before))
        return document

    def _remove(self, kind: Kind, document: Document) -> Document:
        version = self.history.next_version()
        last = {**document, "metadata": {**document["metadata"], "resourceVersion": str(version)}}
        before = self._objects[kind].pop(key_of(kind, document), None)
        self._place_by_uid.pop(document["metadata"]["uid"], None)
        self._notify(WatchEvent(version, DELETED, kind, last, before))
        self._remove_dependents(document["metadata"]["uid"])
        for owner in document["metadata"].get("ownerReferences", ()):
            self._forget_dependent(str(owner.get("uid", "")), kind, key_of(kind, document))
        if kind.is_namespaced:
            self._end_namespace(last["metadata"]["namespace"])
        return last

    def _notify(self, event: WatchEvent) -> None:
        """Tell all listeners; one that fails keeps no other from hearing it."""
        self.history.add(event)
        failure: Exception | None = None
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as problem:
                failure = failure or problem
        if failure is not None:
            self.on_failure(event, failure)

    # --- namespaces --------------------------------------------------------------------------------------------------

    def _terminate_namespace(self, namespace: Document) -> Document:
        """Delete what is in a namespace; the namespace itself is Terminating until its last object is removed."""
        name = namespace["metadata"]["name"]
        meta = {"deletionTimestamp": self.stamp(), **namespace["metadata"]}
        marked = self._put(NAMESPACE, MODIFIED, {**namespace, "metadata": meta, "status": {"phase": "Terminating"}})
        for kind, objects in self._objects.items():
            for key in [key for key in objects if kind.is_namespaced and key.startswith(f"{name}/")]:
                if key in objects:  # it may have been removed with its owner by an earlier turn of this loop
                    self.delete(kind, name, key.partition("/")[2])
        return self._end_namespace(name) or marked

    def _end_namespace(self, name: str) -> Document | None:
        """Remove a terminating namespace that is empty now."""
        found = self.find(NAMESPACE, "", name)
        if found is None or "deletionTimestamp" not in found["metadata"] or found["metadata"].get("finalizers"):
            return None
        namespaced = (objects for kind, objects in self._objects.items() if kind.is_namespaced)
        if any(key.startswith(f"{name}/") for objects in namespaced for key in objects):
            return None
        return self._remove(NAMESPACE, found)

    # --- owners ------------------------------------------------------------------------------------------------------

    def _remove_dependents(self, uid: str) -> None:
        """Delete the objects whose last owner is gone, as the garbage collector does: one with another living owner stays."""
        for kind, key in list(self._dependents.get(uid, ())):
            document = self._objects.get(kind, {}).get(key)
            if document is None:
                self._forget_dependent(uid, kind, key)
                continue
            others = [owner for owner in document["metadata"].get("ownerReferences", ()) if owner.get("uid") != uid]
            if not any(str(owner.get("uid", "")) in self._place_by_uid for owner in others):
                namespace, name = place_of(kind, document)
                self.delete(kind, namespace, name)

    def _forget_dependent(self, uid: str, kind: Kind, key: str) -> None:
        left = self._dependents.get(uid)
        if left is None:
            return
        left.pop((kind, key), None)
        if not left:
            del self._dependents[uid]
            self._end_foreground_deletion(uid)

    def _end_foreground_deletion(self, uid: str) -> None:
        """Take the finalizer off an owner whose last dependent is gone."""
        kind, key = self._place_by_uid.get(uid, (POD, ""))
        document = self._objects.get(kind, {}).get(key)
        if document is not None and WAITS_FOR_DEPENDENTS in document["metadata"].get("finalizers", ()):
            left = [name for name in document["metadata"]["finalizers"] if name != WAITS_FOR_DEPENDENTS]
            self._write(kind, document, {**document, "metadata": {**document["metadata"], "finalizers": left}})

    def _orphan_dependents(self, uid: str) -> None:
        """Remove an owner from the references of its dependents, so that they survive it."""
        for kind, key in list(self._dependents.pop(uid, ())):
            document = self._objects.get(kind, {}).get(key)
            if document is not None:
                left = [owner for owner in document["metadata"].get("ownerReferences", ()) if owner.get("uid") != uid]
                self._write(kind, document, {**document, "metadata": {**document["metadata"], "ownerReferences": left}})

    def _next_uid(self) -> str:
        self.numbers += 1
        return f"{UID_START}{self.numbers:012x}"

    def _count_past(self, uid: str) -> None:
        """Give out no uid again that another store like this one has given to an object which was loaded."""
        with suppress(ValueError):
            if uid.startswith(UID_START):
                self.numbers = max(self.numbers, int(uid.removeprefix(UID_START), 16))

    def stamp(self, later: float = 0.0) -> str:
        """Return the time, or one that is so many seconds later, as objects have it."""
        return moment_text(int(self._clock() + later))


_LASTING = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace", "name")


def _grace(kind: Kind, document: Document, asked: int | None) -> int:
    return pods.grace(document, asked) if kind is POD else 0
