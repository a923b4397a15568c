"""Keep gangs waiting that their namespace's ResourceQuotas could not take: what is used, what other gangs were admitted with in
this session and the gang's minimum together stay within the hard limits.

A limit counts if the gang's minimum names the same resource; ``requests.NAME`` and ``NAME`` are the same, and a minimum that names
both counts once. A quota with scopes is left to the API server, which checks it when pods are made: before that nobody knows
whether it holds for them.

Pods of the gang that exist already are among what is used. Volcano counts them again, within the minimum, and so do its
configurations here; with ``existingPods: once`` only the rest of the minimum is asked for.
"""

from collections import Counter

from phalanx.model.quota import ResourceQuota, as_quota_counts, plain_name, unit_name
from phalanx.model.resources import Resources, add, readable, scale_of
from phalanx.model.task_status import COMPLETED
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import PERMITTED, Vote

COUNT_PODS, LIMITS = "count/pods", "limits."


class ResourceQuotaPlugin:
    """Keeps gangs waiting that their namespace's quotas could not take."""

    name = "resourcequota"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self._wanted = _rest if settings.choice("existingPods", "twice", ("twice", "once")) == "once" else _minimum
        settings.done()
        self._quotas: dict[str, list[ResourceQuota]] = {}
        self._admitted: dict[str, Resources] = {}

    def open(self, session: Session) -> None:
        """Sort the quotas by namespace."""
        for _, quota in sorted(session.snapshot.surroundings.resource_quotas.items()):
            if not quota.is_scoped:
                self._quotas.setdefault(quota.namespace, []).append(quota)

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote against a gang whose minimum exceeds a quota."""
        quotas = self._quotas.get(gang.gang.namespace, ())
        wanted = self._wanted(gang) if quotas else {}
        for quota in quotas:
            for name, limit in quota.hard.items():
                more = wanted.get(plain_name(name), 0)
                if more and quota.used.get(name, 0) + self._reserved(quota, name) + more > limit:
                    return self._refuse(quota, name, more, gang)
        return PERMITTED

    def gang_enqueued(self, session: Session, gang: GangState) -> None:
        """Count an admitted gang."""
        namespace = gang.gang.namespace
        if namespace in self._quotas:
            self._admitted[namespace] = add(self._admitted.get(namespace, {}), self._wanted(gang))

    def _reserved(self, quota: ResourceQuota, name: str) -> int:
        return self._admitted.get(quota.namespace, {}).get(plain_name(name), 0)

    def _refuse(self, quota: ResourceQuota, name: str, wanted: int, gang: GangState) -> Vote:
        reserved, limit = self._reserved(quota, name), quota.hard[name]
        numbers = {"used": quota.used.get(name, 0), "reserved": reserved, "hard": limit, "wanted": wanted}
        used, kept, hard, more = (readable(unit_name(name), amount) for amount in numbers.values())
        waiting = f" and {kept} reserved for admitted gangs" if reserved else ""
        again = self._counted_again(gang, name)
        message = f"resource quota {quota.name} has {used} of {hard} {name} used{waiting}; {more} more do not fit{again}"
        return Vote.reject(self.name, "NamespaceQuotaExceeded", message, quota=quota.key, resource=name, **numbers)

    def _counted_again(self, gang: GangState, name: str) -> str:
        """Say that pods of the gang are part of both amounts, if they are."""
        is_again = self._wanted is _minimum and _taken(gang).get(plain_name(name), 0)
        text = " (its pods that exist are in both amounts, as in Volcano; resourcequota with existingPods: once counts them once)"
        return text if is_again else ""


def _minimum(gang: GangState) -> Resources:
    """Return what the minimum of the gang takes of quotas, by plain names."""
    return as_quota_counts(gang.gang.written_minimum or {})


def _rest(gang: GangState) -> Resources:
    """Return what the gang will take of quotas beyond what its pods have taken, by plain names.

    Nobody keeps the limits of pods: they count in full until all pods of the minimum are there.
    """
    minimum, taken = _minimum(gang), _taken(gang)
    rest = {name: max(amount - taken.get(name, 0), 0) for name, amount in minimum.items()}
    known = [name for name in minimum if not name.startswith(LIMITS)]
    is_there = bool(known) and not any(rest[name] for name in known)
    return {} if is_there else rest


def _taken(gang: GangState) -> Resources:
    """Return what the pods that exist take of quotas; those that have ended take nothing."""
    pods = [state.task for state in gang.tasks if state.task.status not in COMPLETED and not state.task.is_placeholder]
    taken = {COUNT_PODS: len(pods) * scale_of(COUNT_PODS)}
    for shape, count in Counter(task.shape for task in pods).items():
        taken = add(taken, {name: amount * count for name, amount in shape.request.items()})
    return taken
