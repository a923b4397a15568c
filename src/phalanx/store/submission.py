"""What a cluster would have if documents were submitted to it now: the pods that their controllers would make, grouped.

`phalanx try` decides on it: it takes out of the cluster what is `removed`, enters the `documents`, and explains the `gangs`.

Nothing is written anywhere: the controllers run on a store in memory that holds, of the cluster, only what they read
(`submission_surroundings.py`).
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from phalanx.controllers.builtin import ControllerSettings, grouping_controllers
from phalanx.controllers.controller import Controller
from phalanx.controllers.grouper.group_spec import TOP_OWNER
from phalanx.controllers.jobflow import JobFlowController
from phalanx.controllers.objects import annotations_of, controller_of, inside
from phalanx.controllers.owner_pods.controller import OwnerPods, with_defaults
from phalanx.controllers.owner_pods.pod_claims import PodClaims
from phalanx.controllers.volcano_job.controller import VolcanoJobController
from phalanx.controllers.volcano_job.plugins.plugin import KeyPair
from phalanx.dialects.cluster import ObjectCluster, describe
from phalanx.dialects.group_references import named_groups
from phalanx.errors import ClusterError, SnapshotError
from phalanx.model.kinds import (
    GROUP_KINDS,
    LIMIT_RANGE,
    POD,
    RESOURCE_QUOTA,
    STORAGE_CLASS,
    VOLUME_CLAIM,
    WORKLOADS,
    Document,
    Kind,
    kind_of,
    object_key,
)
from phalanx.model.task import DEFAULT_SCHEDULER, GangKey, TaskKey
from phalanx.model.task_status import ENDED
from phalanx.store import apply
from phalanx.store.completion import completed, known_kind
from phalanx.store.limit_ranges import refuse_by_limit_ranges
from phalanx.store.quota_admission import QuotaAdmission
from phalanx.store.reconciliation import Place, Reconciliation, refuse_outlines
from phalanx.store.submission_surroundings import owner_uids, store_around
from phalanx.store.workload_rules import refuse_workload

WAITS_FOR_CONSUMER = "WaitForFirstConsumer"
NO_KEYS = KeyPair("", "")
"""Of a Job that nobody runs."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submission makes of a cluster."""

    documents: Sequence[Document] = ()
    """Objects to enter into the cluster, complete, in this order; one that is there already takes the place of the old one."""
    removed: Sequence[Place] = ()
    """Kind and key (`namespace/name`, or the name) of objects that go: what controllers delete when an owner is submitted again."""
    gangs: Sequence[GangKey] = ()
    """The gangs of the submitted objects, those with new pods first; empty if everything was refused or makes no pods now."""
    pods: Sequence[TaskKey] = ()
    """The pods that the submission adds."""
    refused: Sequence[tuple[str, str]] = ()
    """Objects that the API server would not take, as "Pod ml/train-0", each with its answer; the same form as `Intake.refused`."""
    problems: Sequence[str] = ()
    """Sentences about what is not known, or is made later: they do not keep the session from deciding on the rest."""
    sources: Mapping[GangKey, str] = field(default_factory=dict)
    """What was submitted that a gang comes from, as "Job ml/train"; nothing for a gang whose group was submitted itself."""


def submitted(
    new: Sequence[Document], existing: Iterable[Document], settings: ControllerSettings | None = None, *, now: float,
    namespace: str = "default",
) -> Submission:  # fmt: skip
    """Return what would come of submitting documents to a cluster with these objects, as `kubectl apply -f` would.

    `new` are manifests as they were written, and `existing` is everything in the cluster, complete and grouped; both are only
    read. `settings` say whose pods are grouped and how, as for `grouping_controllers`. The new objects are completed as the API
    server would, in this namespace if they name none, operators that are not ours are stood in for (`controllers/owner_pods`), and
    all pods get their groups.

    Volcano's Jobs get their pods at once, though their group is admitted by the session that decides on them: on a cluster the
    pods follow the admission, and are decided on in the session after it.
    """
    placed = [_in_namespace(document, namespace) for document in new]
    return _Submitting(placed, existing, settings or ControllerSettings(), now).result()


def _in_namespace(document: Document, namespace: str) -> Document:
    kind, meta = known_kind(document), document.get("metadata")
    if kind is None or not kind.is_namespaced or not isinstance(meta, Mapping) or meta.get("namespace"):
        return document
    return {**document, "metadata": {**meta, "namespace": namespace}}


class _Submitting:
    """One submission on its way."""

    def __init__(self, new: Sequence[Document], existing: Iterable[Document], settings: ControllerSettings, now: float) -> None:
        self._new = new
        self._store = store_around(new, existing, also=frozenset({settings.grouper.defaults_config_map}), now=now)
        self._quotas, self._problems = QuotaAdmission(self._store), dict[str, None]()
        self._uids: dict[str, str] = {}
        """By the uid that a manifest has, the one that its object gets."""
        self._given: set[str] = set()
        """The uids of owners whose pods, or some of them, are submitted with them: nobody makes others."""
        self._run = Reconciliation(self._store, _controllers(settings, self._given), self._refuse)

    def result(self) -> Submission:
        """Submit everything, let controllers act on it, and return what came of it."""
        for document in _owners_first(sorted(filter(self._is_known, self._new), key=apply.rank)):
            self._submit(document)
        self._run.run()
        documents = list(self._run.documents())
        gang_of = self._gangs([pod for pod in self._store.items(POD) if inside(pod, "status", "phase") not in ENDED])
        new = [TaskKey(object_key(item)) for item in documents if kind_of(item) is POD and self._run.is_new(item)]
        gangs = dict.fromkeys((*(gang_of[key] for key in (*new, *gang_of) if key in gang_of), *_groups(self._new)))
        problems = dict.fromkeys((*self._problems, *self._run.problems, *self._doubts(documents, gang_of)))
        return Submission(
            documents, list(self._run.removed()), list(gangs), new, list(self._run.refused.items()), list(problems),
            self._sources(gang_of),
        )  # fmt: skip

    def _doubts(self, documents: Sequence[Document], gang_of: Mapping[TaskKey, GangKey]) -> Iterator[str]:
        """Say what else may keep pods from starting, or is not decided here."""
        pods = [item for item in documents if kind_of(item) is POD]
        yield from self._scoped_quotas(pods)
        yield from self._unbound(documents)
        yield from self._grouped_by_operators()
        yield from _of_others([pod for pod in pods if TaskKey(object_key(pod)) not in gang_of])

    # --- submitting ----------------------------------------------------------------------------------------------------

    def _is_known(self, document: Document) -> bool:
        """Tell whether an object can be submitted; one that cannot is named."""
        if known_kind(document) is not None:
            return self._has_outlines(document)
        what = "the pods that it makes are left out" if _has_containers(document.get("spec")) else "it is left out"
        self._problems[f"{describe(document)}: a kind that is not known here; {what}"] = None
        return False

    def _has_outlines(self, document: Document) -> bool:
        try:
            refuse_outlines(document)
        except SnapshotError as problem:
            self._run.refused[describe(document)] = str(problem).removeprefix(f"{describe(document)}: ")
            return False
        return True

    def _submit(self, document: Document) -> None:
        kind = kind_of(document)
        try:
            refuse_workload(kind, document)
            wanted = self._owned(with_defaults(apply.wanted(kind, self._named(kind, document), "default")))
        except ClusterError as problem:
            self._run.refused.setdefault(describe(document), str(problem))
            return
        live = self._store.find(kind, str(wanted["metadata"].get("namespace") or ""), wanted["metadata"]["name"])
        stored = self._run.create(wanted) if live is None else self._changed(kind, wanted, live)
        if stored is not None:
            self._uids[str(document["metadata"].get("uid") or "")] = stored["metadata"]["uid"]

    def _owned(self, document: Document) -> Document:
        """Return an object whose references mean the owners that are submitted with it, which get uids of their own."""
        owners = document["metadata"].get("ownerReferences")
        if not owners:
            return document
        known = [{**owner, "uid": self._uids.get(str(owner.get("uid") or "?"), owner.get("uid"))} for owner in owners]
        self._given.update(str(owner["uid"]) for owner in known)
        return {**document, "metadata": {**document["metadata"], "ownerReferences": known}}

    def _named(self, kind: Kind, document: Document) -> Document:
        """Return an object with a name: a number in place of what the API server adds to a `generateName`."""
        meta: Mapping[str, Any] = document.get("metadata") or {}
        stem, number = meta.get("generateName"), 0
        if meta.get("name") or not stem:
            return document
        while self._store.find(kind, str(meta.get("namespace") or ""), f"{stem}{number:05d}") is not None:
            number += 1
        return {**document, "metadata": {**meta, "name": f"{stem}{number:05d}"}}

    def _changed(self, kind: Kind, wanted: Document, live: Document) -> Document | None:
        """Change an object that is there, as applying a manifest does."""
        place = str(wanted["metadata"].get("namespace") or ""), str(wanted["metadata"]["name"])
        try:
            patch = apply.change(wanted, live)
            after = "" if kind is POD else "; its pods stay as they are"
            self._problems[f"{describe(wanted)}: is there already, and {_changes(patch)}{after}"] = None
            changed = self._store.patch(kind, *place, patch) if patch else live
        except ClusterError as problem:
            self._run.refused[describe(wanted)] = str(problem)
            return None
        self._run.look_at(kind, changed)
        return changed

    def _refuse(self, document: Document) -> None:
        """Raise if LimitRanges do not allow a pod, or a quota has no room for it."""
        if document["kind"] == POD.kind and (self._store.has_any(RESOURCE_QUOTA) or self._store.has_any(LIMIT_RANGE)):
            pod = completed(POD, document, self._store)
            refuse_by_limit_ranges(pod, self._store)
            self._quotas.admit(pod)

    # --- what came of it -----------------------------------------------------------------------------------------------

    def _gangs(self, pods: Sequence[Document]) -> dict[TaskKey, GangKey]:
        """Return the gang of each pod, as a session sees it; those without one are left out."""
        cluster = ObjectCluster()
        for document in (*self._groups_of(pods), *pods):
            with suppress(SnapshotError):  # whoever enters it says what is wrong with it
                cluster.put(document)
        tasks = {key: cluster.state.task(key) for key in (TaskKey(object_key(pod)) for pod in pods)}
        return {key: task.gang for key, task in tasks.items() if task is not None and task.gang is not None}

    def _sources(self, gang_of: Mapping[TaskKey, GangKey]) -> dict[GangKey, str]:
        """Return the topmost owner of the first pod of each gang, or the pod; a group that was submitted stands for itself."""
        given = set(_groups(self._new))
        firsts: dict[GangKey, TaskKey] = {}
        for pod, gang in gang_of.items():
            firsts.setdefault(gang, pod)
        return {gang: self._source(pod) for gang, pod in firsts.items() if gang not in given}

    def _source(self, pod: TaskKey) -> str:
        namespace, _, name = str(pod).partition("/")
        found = self._store.get(POD, namespace, name)
        while (above := controller_of(found)) is not None:
            kind = known_kind(above)
            owner = None if kind is None else self._store.find(kind, namespace, str(above.get("name") or ""))
            if owner is None:
                break
            found = owner
        return describe(found)

    def _groups_of(self, pods: Iterable[Document]) -> list[Document]:
        places = {(str(pod["metadata"]["namespace"]), name) for pod in pods for name in named_groups(pod).values()}
        found = (self._store.find(kind, *place) for place in sorted(places) for kind in GROUP_KINDS)
        return [group for group in found if group is not None]

    def _unbound(self, documents: Iterable[Document]) -> Iterator[str]:
        """Name the new claims that a provisioner binds before their pods can start."""
        for claim in (item for item in documents if kind_of(item) is VOLUME_CLAIM and not inside(item, "spec", "volumeName")):
            found = self._store.find(STORAGE_CLASS, "", str(inside(claim, "spec", "storageClassName") or ""))
            if found is not None and found.get("volumeBindingMode") != WAITS_FOR_CONSUMER:
                name = found["metadata"]["name"]
                yield f"{describe(claim)}: is bound by the provisioner of class {name} before its pod can start"

    def _grouped_by_operators(self) -> Iterator[str]:
        """Name the owners whose operator makes groups itself, as those of other owners of their kind show."""
        groups = [group for kind in GROUP_KINDS for group in self._store.around(kind) if TOP_OWNER not in annotations_of(group)]
        makers = {owner.get("kind"): group for group in groups for owner in group["metadata"].get("ownerReferences") or ()}
        for document in self._new:
            kind = known_kind(document)
            if kind is not None and kind in WORKLOADS and kind.kind in makers:
                text = f"its operator makes groups itself, such as {describe(makers[kind.kind])}"
                yield f"{describe(document)}: {text}; here its pods are grouped by Phalanx"

    def _scoped_quotas(self, pods: Iterable[Document]) -> Iterator[str]:
        for namespace in sorted({str(pod["metadata"]["namespace"]) for pod in pods}):
            for name in self._quotas.scoped(namespace):
                yield f"ResourceQuota {namespace}/{name}: has scopes, and is left out; the API server may refuse pods by it"


def _of_others(pods: Sequence[Document]) -> Iterator[str]:
    """Name the schedulers of pods that are in no gang: nobody groups them here."""
    by_scheduler: dict[str, list[Document]] = {}
    for pod in pods:
        by_scheduler.setdefault(str(pod["spec"].get("schedulerName")), []).append(pod)
    for name, found in by_scheduler.items():
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        who = "kube-scheduler places it" if name == DEFAULT_SCHEDULER else f"nobody here makes one for pods of {name!r}"
        yield f"{describe(found[0])}{more}: names no group, and {who}; write schedulerName: phalanx in the template"


def _owners_first(documents: Sequence[Document]) -> Iterator[Document]:
    """Yield objects so that owners come before what belongs to them; those that own each other come in any order."""
    waiting = list(documents)
    while waiting:
        uids = {str(document["metadata"].get("uid") or "") for document in waiting} - {""}
        free = [document for document in waiting if uids.isdisjoint(owner_uids(document))] or waiting
        yield from free
        taken = set(map(id, free))
        waiting = [document for document in waiting if id(document) not in taken]


def _controllers(settings: ControllerSettings, given: Container[str]) -> list[Controller]:
    return [
        VolcanoJobController(lambda uid: NO_KEYS, has_admission=False), JobFlowController(), OwnerPods(given), PodClaims(),
        *grouping_controllers(settings),
    ]  # fmt: skip


def _groups(new: Iterable[Document]) -> Iterator[GangKey]:
    """Yield the groups among submitted objects: their pods may be there already."""
    yield from (GangKey(object_key(document)) for document in new if known_kind(document) in GROUP_KINDS)


def _changes(patch: Mapping[str, Any]) -> str:
    fields = [name for name in patch if name != "metadata"]
    inner = [f"{name}.{key}" for name in fields for key in (patch[name] if isinstance(patch[name], Mapping) else ())]
    return f"changes in {', '.join(inner or fields)}" if fields else "stays as it is"


def _has_containers(value: Any) -> bool:  # Any: whatever a template holds
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return (isinstance(value, Mapping) and bool(value.get("containers"))) or any(map(_has_containers, parts))
