"""Volumes and devices that stand against a task: which claim, which volume, where it can be used, what was asked for."""

from collections.abc import Iterable, Iterator

import numpy as np

from phalanx.explain.cause import Part, Search, verb
from phalanx.explain.parts_of_labels import reached, terms_text
from phalanx.explain.reason_text import counted
from phalanx.kubernetes.attached_volumes import claims_of
from phalanx.kubernetes.once_pod_claims import once_pod_claims
from phalanx.model.kinds import split_key
from phalanx.model.resources import MEMORY, readable
from phalanx.model.storage import ONE_POD, ResourceClaim, Volume, VolumeClaim
from phalanx.placement import Mask

ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region",
         "failure-domain.beta.kubernetes.io/region")  # fmt: skip


def reach_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the volumes that nodes do not reach, each with its node affinity."""
    left = np.array(nodes)
    for claim, volume in _bound(search):
        wrong = left & ~reached(volume.node_terms, search) if volume.node_terms is not None else np.zeros_like(left)
        if volume.node_terms is not None and wrong.any():
            left &= ~wrong
            thing = f"volume {volume.name!r} of claim {_short(claim.key)!r}"
            yield Part(wrong, f"cannot reach {thing} (needs {terms_text(volume.node_terms)})", thing)


def zone_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the volume with a zone that is not that of the nodes."""
    for claim, volume in _bound(search):
        zone = next((volume.labels[key] for key in ZONES if key in volume.labels), "")
        if zone:
            thing = f"volume {volume.name!r} of claim {_short(claim.key)!r}"
            yield Part(nodes, f"{verb(int(nodes.sum()), 'is', 'are')} in another zone than {thing} ({zone})", thing)
            return


def unbound_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the claims that have no volume yet, with class and size."""
    claims = [claim for claim in claims_of(search.shape, search.snapshot.surroundings) if not claim.volume]
    if claims:
        thing = " or ".join(map(_claim_text, claims))
        yield Part(nodes, f"{verb(int(nodes.sum()), 'has', 'have')} no volume for {thing}", thing)


def _claim_text(claim: VolumeClaim) -> str:
    size = f"{readable(MEMORY, claim.request_bytes)} " if claim.request_bytes else ""
    return f"claim {_short(claim.key)!r} ({size}of class {claim.storage_class or ''!r})"


def limit_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the drivers of the volumes that nodes cannot attach."""
    world = search.snapshot.surroundings
    classes = (world.storage_classes.get(claim.storage_class or "") for claim in claims_of(search.shape, world))
    drivers = {volume.csi_driver for _, volume in _bound(search)} | {found.provisioner for found in classes if found is not None}
    names = " or ".join(sorted(filter(None, drivers)))
    if names:
        yield Part(nodes, f"can attach no more volumes of {names}", names)


def claim_user_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the claim that is for one pod, and the pod that has it."""
    world = search.snapshot.surroundings
    mine = {claim.key: claim for claim in once_pod_claims(search.shape, world)}
    tasks = (task for tasks in search.snapshot.on_node.values() for task in tasks.values())
    users = ((claim, f"pod {task.key}") for task in tasks for claim in once_pod_claims(task.shape, world) if claim.key in mine)
    claim, user = next(users, (next(iter(mine.values())), "a task placed in this session"))
    thing = f"claim {_short(claim.key)!r}"
    yield Part(nodes, f"cannot take it while {user} uses {thing} ({ONE_POD})", thing)


def device_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the device claims and what they ask for."""
    claims = [claim for claim in _device_claims(search) if not claim.is_allocated]
    if claims:
        thing = " and ".join(f"claim {_short(claim.key)!r} ({_asks(claim)})" for claim in claims)
        yield Part(nodes, f"{verb(int(nodes.sum()), 'has', 'have')} too few devices for {thing}", thing)


def _asks(claim: ResourceClaim) -> str:
    return ", ".join(
        f"{'all devices' if request.takes_all else counted(request.count, 'device')} of class {request.device_class!r}"
        for request in claim.requests
    )


def held_device_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the claims that hold devices elsewhere."""
    claims = [claim for claim in _device_claims(search) if claim.is_allocated]
    if claims:
        thing = " and ".join(f"claim {_short(claim.key)!r}" for claim in claims)
        yield Part(nodes, f"cannot reach the devices that {thing} {verb(len(claims), 'holds', 'hold')}", thing)


def _device_claims(search: Search) -> Iterable[ResourceClaim]:
    known, namespace = search.snapshot.surroundings.resource_claims, search.shape.namespace
    keys = [f"{namespace}/{use.claim}" for use in search.shape.resource_claims]
    return [known[key] for key in keys if key in known]


def _bound(search: Search) -> Iterator[tuple[VolumeClaim, Volume]]:
    world = search.snapshot.surroundings
    for claim in claims_of(search.shape, world):
        volume = world.volumes.get(claim.volume)
        if volume is not None:
            yield claim, volume


def _short(key: str) -> str:
    return split_key(key)[1]
