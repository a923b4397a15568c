"""Gangs that pods alone make, in a few words: YuniKorn's applications and Kueue's plain pod groups.

cluster.submit(made.application("spark", {"driver": 1, "executor": 3}, cpu=2))
cluster.submit(made.pod_group("train", tasks=4, gpus=1))
"""

import json
from collections.abc import Mapping
from typing import Any

from phalanx.dialects.group_references import KUEUE_GROUP, YUNIKORN, YUNIKORN_APP
from phalanx.dialects.kueue import ADMISSION_GATE, TOTAL_COUNT
from phalanx.dialects.pods import TASK_GROUP
from phalanx.dialects.yunikorn import POLICY, TASK_GROUPS
from phalanx.testing import build
from phalanx.testing.build import Document


def application(name: str, groups: Mapping[str, int], *, policy: str = "", **asks: Any) -> list[Document]:
    """Return the pods of an application, so many of each task group as it needs; the first pod describes them."""
    pods = [
        application_pod(f"{name}-{group}-{number}", name, group, **asks)
        for group, count in groups.items() for number in range(count)
    ]  # fmt: skip
    described = [{"name": group, "minMember": count, "minResource": {"cpu": 1}} for group, count in groups.items()]
    pods[0]["metadata"]["annotations"] |= {TASK_GROUPS: json.dumps(described), **({POLICY: policy} if policy else {})}
    return pods


def application_pod(name: str, application: str, group: str = "", **asks: Any) -> Document:
    """Return a pod of an application that leaves it to others to describe it."""
    pod = build.pod(name, spec={"schedulerName": YUNIKORN}, **asks)
    pod["metadata"]["labels"] = {YUNIKORN_APP: application}
    pod["metadata"]["annotations"] = {TASK_GROUP: group} if group else {}
    return pod


def pod_group(name: str, *, tasks: int, is_gated: bool = False, **asks: Any) -> list[Document]:
    """Return the pods of a plain pod group, with Kueue's gate if that is asked for."""
    spec: dict[str, Any] = {"schedulingGates": [{"name": ADMISSION_GATE}]} if is_gated else {}
    pods = [build.pod(f"{name}-{number}", spec=spec, **asks) for number in range(tasks)]
    for pod in pods:
        pod["metadata"]["labels"] = {KUEUE_GROUP: name}
        pod["metadata"]["annotations"] = {TOTAL_COUNT: str(tasks)}
    return pods
