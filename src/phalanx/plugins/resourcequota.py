"""Keep gangs waiting that their namespace's ResourceQuotas could not take: what is used, what other gangs were admitted with in
this session and the gang's minimum together stay within the hard limits.

A limit counts if the gang's minimum names the same resource; ``requests.NAME`` and ``NAME`` are the same, and a minimum that names
both counts once. A quota with scopes is left to the API server, which checks it when pods are made: before that nobody knows
whether it holds for them.
"""

from phalanx.model.quota import ResourceQuota, as_quota_counts, plain_name, unit_name
from phalanx.model.resources import Resources, add, readable
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import PERMITTED, Vote


class ResourceQuotaPlugin:
    """Keeps gangs waiting that their namespace's quotas could not take."""

    name = "resourcequota"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()
        self._quotas: dict[str, list[ResourceQuota]] = {}
        self._admitted: dict[str, Resources] = {}

    def open(self, session: Session) -> None:
        """Sort the quotas by namespace."""
        for _, quota in sorted(session.snapshot.surroundings.resource_quotas.items()):
            if not quota.is_scoped:
                self._quotas.setdefault(quota.namespace, []).append(quota)

    def gang_enqueueable(self, session: Session, gang: GangState) -> Vote:
        """Vote against a gang whose minimum exceeds a quota."""
        wanted = _wanted(gang)
        for quota in self._quotas.get(gang.gang.namespace, ()):
            for name, limit in quota.hard.items():
                more = wanted.get(plain_name(name), 0)
                if more and quota.used.get(name, 0) + self._reserved(quota, name) + more > limit:
                    return self._refuse(quota, name, more)
        return PERMITTED

    def gang_enqueued(self, session: Session, gang: GangState) -> None:
        """Count an admitted gang."""
        namespace = gang.gang.namespace
        self._admitted[namespace] = add(self._admitted.get(namespace, {}), _wanted(gang))

    def _reserved(self, quota: ResourceQuota, name: str) -> int:
        return self._admitted.get(quota.namespace, {}).get(plain_name(name), 0)

    def _refuse(self, quota: ResourceQuota, name: str, wanted: int) -> Vote:
        reserved, limit = self._reserved(quota, name), quota.hard[name]
        numbers = {"used": quota.used.get(name, 0), "reserved": reserved, "hard": limit, "wanted": wanted}
        used, kept, hard, more = (readable(unit_name(name), amount) for amount in numbers.values())
        waiting = f" and {kept} reserved for admitted gangs" if reserved else ""
        message = f"resource quota {quota.name} has {used} of {hard} {name} used{waiting}; {more} more do not fit"
        return Vote.reject(self.name, "NamespaceQuotaExceeded", message, quota=quota.key, resource=name, **numbers)


def _wanted(gang: GangState) -> Resources:
    """Return what the gang takes of quotas, by plain names."""
    return as_quota_counts(gang.gang.written_minimum or {})
