"""Which new pods the ResourceQuotas of their namespace refuse, as the API server does when they are created."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from phalanx.dialects import schema
from phalanx.dialects.pods import pod_request
from phalanx.dialects.reading import read_as
from phalanx.dialects.supporting import resource_quota
from phalanx.errors import Forbidden, SnapshotError
from phalanx.model.kinds import RESOURCE_QUOTA, Document
from phalanx.model.quota import ResourceQuota, plain_name, unit_name
from phalanx.model.resources import CPU, MEMORY, Resources, quantity_text, scale_of
from phalanx.store.completion import ClusterObjects

PODS = ("pods", "count/pods")
LIMITS, REQUESTS = "limits", "requests"
MUST_BE_SAID = {
    CPU: (REQUESTS, CPU), MEMORY: (REQUESTS, MEMORY), "requests.cpu": (REQUESTS, CPU), "requests.memory": (REQUESTS, MEMORY),
    "limits.cpu": (LIMITS, CPU), "limits.memory": (LIMITS, MEMORY),
}  # fmt: skip
"""What every container has to say where a quota counts it."""


class QuotaAdmission:
    """Counts the pods that are created against quotas; those with scopes are left out, since they hold for some pods only."""

    def __init__(self, objects: ClusterObjects) -> None:
        """Read quotas from these objects."""
        self._objects = objects
        self._taken: dict[tuple[str, str], int] = {}

    def scoped(self, namespace: str) -> Iterator[str]:
        """Yield the names of quotas that are left out."""
        yield from (quota.name for quota in self._quotas(namespace) if quota.is_scoped)

    def admit(self, pod: Document) -> None:
        """Count a complete pod, or raise what the API server answers if a quota has no room for it."""
        quotas = [quota for quota in self._quotas(str(pod["metadata"].get("namespace") or "default")) if not quota.is_scoped]
        uses = _uses(pod) if quotas else {}
        for quota in quotas:
            self._check(quota, pod, uses)
        for quota in quotas:
            for name in quota.hard:
                self._taken[quota.key, name] = self._taken.get((quota.key, name), 0) + uses.get(name, 0)

    def _quotas(self, namespace: str) -> Iterator[ResourceQuota]:
        for document in self._objects.within(RESOURCE_QUOTA, namespace):
            try:
                yield resource_quota(read_as(document, schema.QuotaRead))
            except (msgspec.ValidationError, SnapshotError):
                continue  # whoever reads the quota for the session says what is wrong with it

    def _check(self, quota: ResourceQuota, pod: Document, uses: Resources) -> None:
        name = str(pod["metadata"].get("name", ""))
        unsaid = [f"{limit} for: {', '.join(found)}" for limit in quota.hard if (found := _unsaid(pod, limit))]
        if unsaid:
            raise Forbidden(f'pods "{name}" is forbidden: failed quota: {quota.name}: must specify {"; ".join(unsaid)}')
        used = {limit: quota.used.get(limit, 0) + self._taken.get((quota.key, limit), 0) for limit in quota.hard}
        over = [limit for limit, hard in quota.hard.items() if uses.get(limit, 0) and used[limit] + uses[limit] > hard]
        if over:
            numbers = {"requested": uses, "used": used, "limited": quota.hard}
            told = ", ".join(f"{word}: {_amounts(amounts, over)}" for word, amounts in numbers.items())
            raise Forbidden(f'pods "{name}" is forbidden: exceeded quota: {quota.name}, {told}')


def _amounts(amounts: Resources, names: list[str]) -> str:
    return ",".join(f"{name}={quantity_text(unit_name(name), amounts.get(name, 0))}" for name in names)


def _unsaid(pod: Document, limit: str) -> list[str]:
    """Return the containers that do not say what a quota counts."""
    part, resource = MUST_BE_SAID.get(limit, ("", ""))
    if not part:
        return []
    containers = pod["spec"].get("containers") or ()
    return [str(item.get("name")) for item in containers if resource not in ((item.get("resources") or {}).get(part) or {})]


def _uses(pod: Document) -> dict[str, int]:
    """Return what a pod takes of quotas, by every name that quotas may have for it."""
    requests, limits = _asked(pod["spec"]), _asked(_limits_as_requests(pod["spec"]))
    found = {name: scale_of(name) for name in PODS}
    for name, amount in requests.items():
        found |= {plain_name(name): amount, f"requests.{name}": amount}
    return found | {f"limits.{name}": amount for name, amount in limits.items()}


def _asked(spec: Mapping[str, Any]) -> Resources:
    try:
        return pod_request(read_as(spec, schema.ShapeSpec))
    except (msgspec.ValidationError, SnapshotError):
        return {}  # whoever reads the pod says where it is wrong


def _limits_as_requests(spec: Mapping[str, Any]) -> dict[str, Any]:
    groups = {
        group: [{**item, "resources": {"requests": (item.get("resources") or {}).get(LIMITS) or {}}} for item in spec[group]]
        for group in ("containers", "initContainers") if spec.get(group)
    }  # fmt: skip
    return {key: value for key, value in spec.items() if key != "resources"} | groups
