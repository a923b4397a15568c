"""Gangs of Coscheduling and Koordinator in a few words, for tests.

cluster.submit(sigs.gang("train", tasks=3, cpu=2), sigs.koordinator_gang("serve", tasks=2, mode="NonStrict", cpu=1))
"""

from collections.abc import Mapping
from typing import Any

from phalanx.dialects.group_references import COSCHEDULING_GROUP, SIGS_GROUP
from phalanx.dialects.koordinator import PREFIX
from phalanx.testing import build
from phalanx.testing.build import Document

COSCHEDULING, KOORDINATOR = "scheduling.x-k8s.io/v1alpha1", "scheduling.sigs.k8s.io/v1alpha1"
LABELS = {COSCHEDULING: COSCHEDULING_GROUP, KOORDINATOR: SIGS_GROUP}


def pod_group(api: str, name: str, spec: Mapping[str, Any], annotations: dict[str, str] | None = None) -> Document:
    """Return a PodGroup; its name may come with a namespace."""
    namespace, _, short = name.rpartition("/")
    meta = {"namespace": namespace or "default", "name": short, "uid": f"{api}/{name}", "annotations": annotations or {}}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": dict(spec)}


def member(api: str, group: str, name: str, *, spec: Document | None = None, **asks: Any) -> Document:
    """Return a pod that carries the label of a group."""
    namespace, _, short = group.rpartition("/")
    document = build.pod(f"{namespace or 'default'}/{name}", spec=spec, **asks)
    document["metadata"]["labels"][LABELS[api]] = short
    return document


def gang(name: str, *, tasks: int = 1, min_member: int | None = None, api: str = COSCHEDULING, **more: Any) -> list[Document]:
    """Return a PodGroup and its pods ``NAME-0`` and so on; `spec` and `annotations` are the group's, the rest pods ask for."""
    spec, annotations, pod_spec = more.pop("spec", {}), more.pop("annotations", {}), more.pop("pod_spec", None)
    minimum = {"minMember": tasks if min_member is None else min_member}
    pods = [member(api, name, f"{name.rpartition('/')[2]}-{number}", spec=pod_spec, **more) for number in range(tasks)]
    return [pod_group(api, name, {**minimum, **spec}, annotations), *pods]


def koordinator_gang(name: str, *, tasks: int = 1, **more: Any) -> list[Document]:
    """Return the same as a gang of Koordinator's; `mode`, `match_policy`, `waiting_time` and `groups` are annotations."""
    return gang(name, tasks=tasks, api=KOORDINATOR, annotations=annotations_of(more), **more)


def annotations_of(settings: dict[str, Any]) -> dict[str, str]:
    """Take the settings of a gang out of these and return them as annotations."""
    words = {"mode": "mode", "match_policy": "match-policy", "waiting_time": "waiting-time", "groups": "groups"}
    return {PREFIX + word: settings.pop(name) for name, word in words.items() if name in settings}


def describing_pod(name: str, gang: str, *, min_available: str = "", **more: Any) -> Document:
    """Return a pod that says itself what its gang is."""
    texts = {PREFIX + "name": gang, **({PREFIX + "min-available": min_available} if min_available else {}), **annotations_of(more)}
    document = build.pod(name, **more)
    document["metadata"]["annotations"].update(texts)
    return document
