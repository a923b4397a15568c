"""Values that the API server refuses in pods and nodes, and that would change a placement without a word: effects of taints that do
not exist, parts of a resource that comes in whole pieces, and rules about nodes that mean nothing.

The store in memory refuses them, and so does whoever reads manifests. Messages begin as those of the API server;
only the taints of a node are named by their place, spec.taints, where the API server writes metadata.taints.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from phalanx.errors import Invalid, SnapshotError
from phalanx.model.kinds import NODE, POD, VOLCANO_JOB, Document, Kind
from phalanx.model.quantity import to_milli
from phalanx.store.placement_rules import placement_faults, unsupported

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
GPU_HINT = "; write a whole number, or share a GPU: annotation gpu-fraction on the pod, and no GPU in its resources"
CONTAINERS = ("containers", "initContainers")
NOT_UNDERSTOOD = (TypeError, AttributeError)
"""What comes of an object of which not even the outlines are right; whoever reads it says so."""


def refuse_values(kind: Kind, document: Document) -> None:
    """Raise if a pod, a node or the pods of a Volcano Job have a value that the API server does not take."""
    if kind is POD:
        found = pod_faults(document.get("spec") or {}, "spec")
    elif kind is VOLCANO_JOB:  # refused whole, as by Volcano: its controller would try to create the pods for ever
        found = _job_faults(document.get("spec") or {})
    elif kind is NODE:
        found = _node_faults(document)
    else:
        return
    problem = ""
    with suppress(*NOT_UNDERSTOOD):
        problem = next(found, "")
    if problem:
        name = document["metadata"].get("name", "")
        raise Invalid.because(kind.kind, name, problem)


def _job_faults(spec: Document) -> Iterator[str]:
    for place, task in enumerate(spec.get("tasks") or ()):
        yield from pod_faults((task.get("template") or {}).get("spec") or {}, f"spec.tasks[{place}].template.spec")


def pod_faults(spec: Document, path: str) -> Iterator[str]:
    """Yield what is wrong with the values of a pod, or of a template of pods."""
    for group in CONTAINERS:
        for place, container in enumerate(spec.get(group) or ()):
            resources = container.get("resources") or {}
            for amounts in ("limits", "requests"):
                yield from _parts(resources.get(amounts), f"{path}.{group}[{place}].resources.{amounts}")
    yield from _effects(spec.get("tolerations"), f"{path}.tolerations")
    yield from placement_faults(spec, path)


def _node_faults(node: Document) -> Iterator[str]:
    yield from _effects((node.get("spec") or {}).get("taints"), "spec.taints")
    for amounts in ("capacity", "allocatable"):
        yield from _parts((node.get("status") or {}).get(amounts), f"status.{amounts}")


def _effects(items: Any, path: str) -> Iterator[str]:  # Any: as found in the object
    for place, item in enumerate(items or ()):
        effect = item.get("effect")
        if effect and effect not in EFFECTS:
            yield f"{path}[{place}].effect: {unsupported(effect, EFFECTS)}"


def _parts(amounts: Any, path: str) -> Iterator[str]:  # Any: as found in the object
    for name, amount in amounts.items() if isinstance(amounts, Mapping) else ():
        if _is_negative(str(amount)):
            yield f'{path}[{name}]: Invalid value: "{amount}": must be greater than or equal to 0'
        elif "/" in name and not _is_whole(name, str(amount)):
            hint = GPU_HINT if name.endswith("/gpu") and path.startswith("spec.") else ""
            yield f'{path}[{name}]: Invalid value: "{amount}": must be an integer{hint}'


def _is_negative(amount: str) -> bool:
    return amount.startswith("-") and amount.strip("-0.") != ""


@lru_cache(maxsize=4096)
def _is_whole(name: str, amount: str) -> bool:
    """Tell whether an amount is one of an extended resource in whole pieces, or of another resource."""
    if "kubernetes.io/" in name:
        return True
    try:
        return to_milli(amount) % 1000 == 0
    except SnapshotError:
        return True  # whoever reads the object says that it is no amount
