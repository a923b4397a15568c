"""The pod grouper: creates the PodGroup that the owners of a pod ask for, and links the pod to it.

It reconciles one pod at a time. A pod that names a group itself is left alone. An owner that cannot be read quarantines only its
own pods: events on both say what to change. Once a group exists, its queue stays; its priority class and preemptibility change only
when an owner names others. A group is deleted with its last pod (`empty_groups.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from phalanx.controllers.controller import NOTHING, Key, RecordEvent, Result, View, Write
from phalanx.controllers.gang_pods import members
from phalanx.controllers.grouper.empty_groups import GroupKey, groups_of_gone, perhaps_unused, unused_groups, without_empty
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
    """Groups pods by their owners."""

    name = "pod-grouper"
    brings_back: Sequence[Kind] = ()

    def __init__(self, settings: GrouperSettings | None = None) -> None:
        """Group as the settings say."""
        self._settings = settings or GrouperSettings()
        self._dialect = GROUP_DIALECTS[self._settings.dialect]
        self.watches: Sequence[Kind] = (POD, *owner_kinds(), self._dialect.kind)

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return a pod that has changed, or those whose group may change with their owner: one of each group, and the new ones.

        Groups that have lost a pod are looked at too, and pods that have lost their group.
        """
        if kind is POD:
            return [key_of(document), *groups_of_gone(view, document)] if self._is_for_us(document) else []
        if kind is POD_GANG:
            return list(dict.fromkeys(pods_of(view, document)))
        if kind is self._dialect.kind:
            return self._left_by(view, document)
        pods = pods_under(view, str(meta_of(document).get("uid", "")))
        of_each = _one_of_each([pod for pod in pods if self._is_for_us(pod)])
        return [*of_each, *unused_groups(view, document, self._dialect.kind)]

    def _left_by(self, view: View, group: Document) -> list[Key]:
        """Return the pods of a group that is gone; or a group that may be empty."""
        key = key_of(group)
        if view.find(self._dialect.kind, key.namespace, key.name) is not None:
            return [*perhaps_unused(view, group)]
        return [key_of(pod) for pod in members(view, key, (self._settings.dialect,)) if self._is_for_us(pod)]

    def reconcile(self, view: View, key: Key) -> Result:
        """Return the writes that create or update the group of a pod, and link the pod to it, or delete a group without pods."""
        if isinstance(key, GroupKey):
            return without_empty(view, self._dialect.kind, self._settings.dialect, key)
        pod = view.find(POD, key.namespace, key.name)
        if pod is None or not self._is_for_us(pod):
            return NOTHING
        try:
            chain = owner_chain(view, self._settings, pod) if membership_of(pod).needs_group else None
        except SnapshotError as problem:
            return Result(_warnings([pod], problem))
        if chain is None:
            return NOTHING
        if chain.awaited_until > view.now:
            return Result((), chain.awaited_until)
        return Result([*self._grouped(chain)]) if self._takes(chain) else NOTHING

    def is_responsible_for(self, view: View, pod: Document) -> bool:
        """Tell whether a pod without a group gets it here; one whose owner cannot be read gets it once the owner is corrected."""
        try:
            return self._is_for_us(pod) and self._takes(owner_chain(view, self._settings, pod))
        except SnapshotError:
            return True

    def awaits_owner(self, view: View, pod: Document) -> float:
        """Return until when it is unknown who groups a pod, since a watch may not have shown its owner yet; 0 if it is known."""
        try:
            return owner_chain(view, self._settings, pod).awaited_until
        except SnapshotError:
            return 0.0

    def _is_for_us(self, pod: Document) -> bool:
        spec = pod.get("spec")
        return isinstance(spec, Mapping) and spec.get("schedulerName") in self._settings.scheduler_names

    def _takes(self, chain: OwnerChain) -> bool:
        """Tell whether this controller groups the pods of an owner chain, or another one does."""
        is_shared = chain.pod["spec"]["schedulerName"] in self._settings.workload_scheduler_names
        return not is_shared or is_workload(chain.head) or chain.has_own_size

    def _grouped(self, chain: OwnerChain) -> Iterator[Write]:
        defaults, complaints = _defaults(chain)
        yield from complaints
        links = membership_of(chain.pod).links
        try:
            group = self._group(chain, defaults)
        except SnapshotError as problem:
            yield from () if links else _warnings([chain.pod, chain.head], problem)
            return
        yield from () if links else _unclear_owner(chain)
        if links <= {group.grouping.name}:
            old = chain.view.find(self._dialect.kind, group.namespace, group.grouping.name)
            yield from group_writes(self._dialect, self._settings, group, old)
            yield from link_writes(self._dialect, group, chain.pod)

    def _group(self, chain: OwnerChain, defaults: Sequence[KindDefaults]) -> WantedGroup:
        rule = rule_for(chain.head)
        if rule.reads_spec and _is_hidden(chain):
            rule = replace(UNKNOWN, priority=rule.priority)
        if rule.reads_spec and "spec" not in chain.head:
            raise SnapshotError(f"{describe(chain.head)}: is not there, or has no spec; create it, or delete its pods")
        grouping = self._named(chain, sized(chain, rule.group(chain)))
        return group_of(chain, grouping, priority=rule.priority, defaults=defaults)

    def _named(self, chain: OwnerChain, grouping: Grouping) -> Grouping:
        """Return the grouping under a name that the pod can be linked to.

        Kubernetes' own groups are named in the pod's spec, which cannot be changed later; all others by a label or annotation.
        """
        if self._settings.dialect != "native":
            return grouping
        name = membership_of(chain.pod).native_group
        if not name:
            where = f"{describe(chain.pod)}: spec.schedulingGroup.podGroupName"
            raise SnapshotError(
                f"{where}: missing, and cannot be set later; write a name, the same in all pod templates of the workload"
            )
        return Grouping(name, grouping.owner, grouping.minimum, constraint=grouping.constraint)


def _is_hidden(chain: OwnerChain) -> bool:
    return chain.unseen is not None and chain.view.is_hidden(kind_of(chain.unseen))


def _unclear_owner(chain: OwnerChain) -> Iterator[Write]:
    """Yield an event about a pod whose top owner is unclear: owners in a circle, or one that cannot be read."""
    text = _unclear_owner_text(chain)
    if text:
        yield RecordEvent(chain.pod, WARNING, text, is_warning=True)


def _unclear_owner_text(chain: OwnerChain) -> str:
    if chain.is_circle:
        where = f"{describe(chain.owners[-1])}: metadata.ownerReferences"
        return f"{where}: its owners own each other, so it counts as the top; remove one of the references"
    if chain.unseen is None:
        return ""
    where = describe(chain.unseen)
    if _is_hidden(chain):
        needed = f"allow get, list and watch of {kind_of(chain.unseen).resource}, or write {MIN_MEMBER} on the pods"
        return f"{where}: we may not read it, so only its name counts; {needed}"
    return f"{where}: is not there, so only its name counts; create it, or delete its pods"


def _defaults(chain: OwnerChain) -> tuple[Sequence[KindDefaults], list[Write]]:
    """Return the defaults by kind; with a ConfigMap that cannot be read, none and an event about it."""
    try:
        return read_defaults(chain), []
    except SnapshotError as problem:
        return (), [RecordEvent(chain.pod, WARNING, str(problem), is_warning=True)]


def _warnings(about: Sequence[Document], problem: SnapshotError) -> list[Write]:
    """Return events about a pod that cannot be grouped, and about its owner."""
    unique = {str(meta_of(document).get("uid")): document for document in about}
    return [RecordEvent(document, WARNING, str(problem), is_warning=True) for document in unique.values()]


def _one_of_each(pods: Sequence[Document]) -> list[Key]:
    """Return the pods without a group, and one of each group that others wait or run in: what has ended speaks for nobody."""
    named = ((_group_spoken_for(pod), pod) for pod in reversed(pods))
    return list({group: key_of(pod) for group, pod in named if group}.values())


def _group_spoken_for(pod: Document) -> str:
    """Return the group that a pod can be asked about, its own key as long as it has none; empty if it needs none any more."""
    try:
        membership = membership_of(pod)
    except SnapshotError:
        return f"{key_of(pod)}"
    return min(membership.links, default=f"{key_of(pod)}") if membership.needs_group else ""
