"""Spark applications: the driver; its executors are made by the driver when it runs."""

from typing import Any

from msgspec import field

from phalanx.controllers.grouper.grouping import Count
from phalanx.controllers.grouper.other_kinds import SPARK_APP, SPARK_SELECTOR
from phalanx.controllers.grouper.owners import read
from phalanx.controllers.objects import meta_of
from phalanx.controllers.owner_pods.children import Children, Template, TemplateMeta, pod_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read, Strings
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document

MIB = {"": 1 / 2**20, "k": 1 / 2**10, "m": 1, "g": 2**10, "t": 2**20}
DEFAULT_MEMORY, LEAST_OVERHEAD_MIB = "1g", 384
OVERHEAD = {"Python": 0.4, "R": 0.4}
USUAL_OVERHEAD = 0.1
PASSED_ON = ("nodeSelector", "tolerations", "affinity", "schedulerName", "priorityClassName", "hostNetwork", "volumes")
"""Fields of the driver that are fields of its pod."""


class SparkGpu(Read):
    """Graphics cards of a pod."""

    name: str = ""
    quantity: Count = 0


class SparkRole(Read):
    """The driver, or the executors."""

    cores: Count | None = None
    core_request: str | None = None
    core_limit: str | None = None
    memory: str | None = None
    memory_overhead: str | None = None
    gpu: SparkGpu | None = None
    labels: Strings = None
    annotations: Strings = None
    instances: Count | None = None
    template: Template | None = None


class SparkSpec(Read):
    """What an application asks for."""

    type: str = ""
    memory_overhead_factor: str | None = None
    node_selector: Strings = None
    driver: SparkRole = field(default_factory=SparkRole)
    executor: SparkRole = field(default_factory=SparkRole)


class SparkApplication(Read):
    """A Spark application."""

    spec: SparkSpec = field(default_factory=SparkSpec)


def spark_application(owner: Document) -> Children:
    """Return the driver of an application."""
    spec, name = read(owner, SparkApplication).spec, str(meta_of(owner)["name"])
    labels = {
        SPARK_APP: name, SPARK_SELECTOR: f"spark-{meta_of(owner).get('uid', '')}", "spark-role": "driver",
        "sparkoperator.k8s.io/app-name": name, "sparkoperator.k8s.io/launched-by-spark-operator": "true",
    }  # fmt: skip
    driver = spec.driver
    template = Template(metadata=TemplateMeta(labels=driver.labels, annotations=driver.annotations), spec=_driver_spec(owner, spec))
    pod = pod_of(owner, f"{name}-driver", template, labels=labels)
    executors = 1 if spec.executor.instances is None else spec.executor.instances
    return Children([pod], [f"its {executors} executors are made by the driver once it runs"])


def _driver_spec(owner: Document, spec: SparkSpec) -> dict[str, Any]:
    base = {} if spec.driver.template is None else spec.driver.template.spec
    written = (owner.get("spec") or {}).get("driver") or {}
    own = {key: written[key] for key in PASSED_ON if key in written}
    container = {"name": "spark-kubernetes-driver", "resources": _resources(owner, spec, spec.driver)}
    selector = {"nodeSelector": {**(spec.node_selector or {}), **(own.get("nodeSelector") or {})}} if spec.node_selector else {}
    return {**base, **own, **selector, "restartPolicy": "Never", "containers": [container]}


def _resources(owner: Document, spec: SparkSpec, role: SparkRole) -> dict[str, Any]:
    cores = role.core_request or str(1 if role.cores is None else role.cores)
    memory = f"{_memory_mib(owner, spec, role)}Mi"
    cards = {role.gpu.name: str(role.gpu.quantity)} if role.gpu is not None and role.gpu.quantity else {}
    limit = {"cpu": role.core_limit} if role.core_limit else {}
    return {"requests": {"cpu": cores, "memory": memory, **cards}, "limits": {"memory": memory, **cards, **limit}}


def _memory_mib(owner: Document, spec: SparkSpec, role: SparkRole) -> int:
    """Return what a pod asks for: the heap, and an overhead by a factor that is larger for Python and R."""
    heap = _mib(owner, role.memory or DEFAULT_MEMORY)
    if role.memory_overhead:
        return heap + _mib(owner, role.memory_overhead)
    try:
        factor = float(spec.memory_overhead_factor or OVERHEAD.get(spec.type, USUAL_OVERHEAD))
    except ValueError:
        raise SnapshotError(f"{describe(owner)}: spec.memoryOverheadFactor: is no number; write for example '0.1'") from None
    return heap + max(int(heap * factor), LEAST_OVERHEAD_MIB)


def _mib(owner: Document, text: str) -> int:
    """Return an amount of memory as Java writes it, in MiB."""
    low = text.lower().removesuffix("b").removesuffix("i")
    number, unit = (low, "") if low.isdecimal() else (low[:-1], low[-1:])
    if not number.isdecimal() or unit not in MIB:
        raise SnapshotError(f"{describe(owner)}: {text!r} is no amount of memory; write for example '512m'")
    return int(int(number) * MIB[unit])
