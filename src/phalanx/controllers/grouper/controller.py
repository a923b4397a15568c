"""The pod grouper: gives every pod of a workload the group that its owners ask for.

It is asked about one pod at a time. A pod that says itself to which group it belongs is left alone. An owner that cannot be grouped
sets only its own pods aside: events on both say what to write. Once a group is made, its queue stays; its class and whether it may
be evicted change only when an owner says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from phalanx.controllers.controller import NOTHING, Key, RecordEvent, Result, View, Write
from phalanx.controllers.grouper.group_spec import KindDefaults, WantedGroup, group_of, read_defaults
from phalanx.controllers.grouper.group_writers import GROUP_DIALECTS, group_writes, link_writes
from phalanx.controllers.grouper.grouping import Grouping, sized
from phalanx.controllers.grouper.grove import POD_GANG, pods_of
from phalanx.controllers.grouper.owners import MIN_MEMBER, OwnerChain, owner_chain, pods_under
from phalanx.controllers.grouper.pod_membership import membership_of
from phalanx.controllers.grouper.rules import UNKNOWN, is_workload, owner_kinds, rule_for
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.objects import key_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, Document, Kind, kind_of

WARNING = "PodGrouperWarning"


class PodGrouper:
    """Keeps the groups of pods, by their owners."""

    name = "pod-grouper"
    brings_back: Sequence[Kind] = ()

    def __init__(self, settings: GrouperSettings | None = None) -> None:
        """Group as the settings say."""
        self._settings = settings or GrouperSettings()
        self._words = GROUP_DIALECTS[self._settings.dialect]
        self.watches: Sequence[Kind] = (POD, *owner_kinds())

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return a pod that has changed, or those whose group may change with their owner: one of each group, and the new ones."""
        if kind is POD:
            return [key_of(document)] if self._is_for_us(document) else []
        if kind is POD_GANG:
            return list(dict.fromkeys(pods_of(view, document)))
        pods = pods_under(view, str(meta_of(document).get("uid", "")))
        return _one_of_each([pod for pod in pods if self._is_for_us(pod)])

    def reconcile(self, view: View, key: Key) -> Result:
        """Say what to write so that a pod has its group."""
        pod = view.find(POD, key.namespace, key.name)
        if pod is None or not self._is_for_us(pod):
            return NOTHING
        try:
            family = owner_chain(view, self._settings, pod) if membership_of(pod).needs_group else None
        except SnapshotError as problem:
            return Result(_warnings([pod], problem))
        if family is None:
            return NOTHING
        if family.awaited_until > view.now:
            return Result((), family.awaited_until)
        return Result([*self._grouped(family)]) if self._takes(family) else NOTHING

    def is_responsible_for(self, view: View, pod: Document) -> bool:
        """Tell whether a pod without a group gets it here, if not now then when its owner is mended."""
        try:
            return self._is_for_us(pod) and self._takes(owner_chain(view, self._settings, pod))
        except SnapshotError:
            return True

    def awaits_owner(self, view: View, pod: Document) -> float:
        """Return until when nobody knows who groups a pod, since an owner of it may yet turn up; 0 if everybody does."""
        try:
            return owner_chain(view, self._settings, pod).awaited_until
        except SnapshotError:
            return 0.0

    def _is_for_us(self, pod: Document) -> bool:
        spec = pod.get("spec")
        return isinstance(spec, Mapping) and spec.get("schedulerName") in self._settings.scheduler_names

    def _takes(self, family: OwnerChain) -> bool:
        """Tell whether a family is ours, or another controller's."""
        is_shared = family.pod["spec"]["schedulerName"] in self._settings.workload_scheduler_names
        return not is_shared or is_workload(family.head) or family.has_own_size

    def _grouped(self, family: OwnerChain) -> Iterator[Write]:
        defaults, complaints = _defaults(family)
        yield from complaints
        links = membership_of(family.pod).links
        try:
            group = self._group(family, defaults)
        except SnapshotError as problem:
            yield from () if links else _warnings([family.pod, family.head], problem)
            return
        yield from () if links else _doubts(family)
        if links <= {group.grouping.name}:
            old = family.view.find(self._words.kind, group.namespace, group.grouping.name)
            yield from group_writes(self._words, self._settings, group, old)
            yield from link_writes(self._words, group, family.pod)

    def _group(self, family: OwnerChain, defaults: Sequence[KindDefaults]) -> WantedGroup:
        rule = rule_for(family.head)
        if rule.reads_spec and _is_hidden(family):
            rule = replace(UNKNOWN, priority=rule.priority)
        if rule.reads_spec and "spec" not in family.head:
            raise SnapshotError(f"{describe(family.head)}: is not there, or has no spec; create it, or delete its pods")
        grouping = self._named(family, sized(family, rule.group(family)))
        return group_of(family, grouping, priority=rule.priority, defaults=defaults)

    def _named(self, family: OwnerChain, grouping: Grouping) -> Grouping:
        """Return the grouping under the name that the pod can be linked by: of a native group it is the one in the pod's spec."""
        if self._settings.dialect != "native":
            return grouping
        name = membership_of(family.pod).native_group
        if not name:
            where = f"{describe(family.pod)}: spec.schedulingGroup.podGroupName"
            raise SnapshotError(
                f"{where}: missing, and cannot be set later; write a name, the same in all pod templates of the workload"
            )
        return Grouping(name, grouping.owner, grouping.minimum, constraint=grouping.constraint)


def _is_hidden(family: OwnerChain) -> bool:
    return family.unseen is not None and family.view.is_hidden(kind_of(family.unseen))


def _doubts(family: OwnerChain) -> Iterator[Write]:
    """Yield an event about a pod whose owners leave open who decides for it."""
    text = _doubt(family)
    if text:
        yield RecordEvent(family.pod, WARNING, text, is_warning=True)


def _doubt(family: OwnerChain) -> str:
    if family.is_circle:
        where = f"{describe(family.owners[-1])}: metadata.ownerReferences"
        return f"{where}: its owners own each other, so it counts as the top; remove one of the references"
    if family.unseen is None:
        return ""
    where = describe(family.unseen)
    if _is_hidden(family):
        needed = f"allow get, list and watch of {kind_of(family.unseen).resource}, or write {MIN_MEMBER} on the pods"
        return f"{where}: we may not read it, so only its name counts; {needed}"
    return f"{where}: is not there, so only its name counts; create it, or delete its pods"


def _defaults(family: OwnerChain) -> tuple[Sequence[KindDefaults], list[Write]]:
    """Return the defaults by kind; a broken ConfigMap is told about, and everything goes on without."""
    try:
        return read_defaults(family), []
    except SnapshotError as problem:
        return (), [RecordEvent(family.pod, WARNING, str(problem), is_warning=True)]


def _warnings(about: Sequence[Document], problem: SnapshotError) -> list[Write]:
    """Return events about a pod that cannot be grouped, and about its owner."""
    unique = {str(meta_of(document).get("uid")): document for document in about}
    return [RecordEvent(document, WARNING, str(problem), is_warning=True) for document in unique.values()]


def _one_of_each(pods: Sequence[Document]) -> list[Key]:
    """Return the pods without a group, and one of each group."""
    chosen = {_group_or_key(pod): key_of(pod) for pod in reversed(pods)}
    return list(chosen.values())


def _group_or_key(pod: Document) -> str:
    try:
        links = membership_of(pod).links
    except SnapshotError:
        links = set()
    return min(links, default=f"{key_of(pod)}")
