"""The columns of Kubernetes' own kinds as a real API server shows them, so that kubectl prints what people and scripts expect.

`columns.py` has those of `phalanx get`, which show what matters to gangs. A test compares the titles with a real server.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from phalanx.model.kinds import Kind
from phalanx.model.moment import moment_of
from phalanx.web.columns import Document, TableColumn, age, at

NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"
Cell = Callable[[Document], object]
ROLE = "node-role.kubernetes.io/"
MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def or_none(path: str, otherwise: object = NONE) -> Cell:
    """Return how to read the value at a path, or what stands for none."""
    read = at(path, otherwise)
    return lambda item: read(item) if read(item) != "" else otherwise


def _list(path: str) -> Callable[[Document], Sequence[Any]]:  # Any: as found in the object
    read = at(path, ())
    return lambda item: found if isinstance(found := read(item), list) else ()


def _size(path: str) -> Cell:
    read = at(path, {})
    return lambda item: len(found) if isinstance(found := read(item), Mapping) else 0


def _parts(first: str, second: str) -> Cell:
    one, two = at(first, 0), at(second, 0)
    return lambda item: f"{one(item)}/{two(item)}"


def _joined(items: Iterable[object]) -> str:
    return ",".join(str(item) for item in items) or NONE


def _selector(path: str) -> Cell:
    read = at(path, {})

    def cell(item: Document) -> str:
        found = read(item)
        labels = found.get("matchLabels", found) if isinstance(found, Mapping) else {}
        return _joined(f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str))

    return cell


def _named(path: str, field: str) -> Cell:
    read = _list(path)
    return lambda item: _joined(part.get(field, "") for part in read(item))


# --- pods and nodes ------------------------------------------------------------------------------------------------------


def _statuses(pod: Document) -> list[Document]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _ready(pod: Document) -> str:
    return f"{sum(bool(item.get('ready')) for item in _statuses(pod))}/{len((pod.get('spec') or {}).get('containers') or ())}"


def _pod_status(pod: Document) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    status = pod.get("status") or {}
    for item in _statuses(pod):
        for state in ("waiting", "terminated"):
            if reason := ((item.get("state") or {}).get(state) or {}).get("reason"):
                return str(reason)
    if (pod.get("spec") or {}).get("schedulingGates"):
        return "SchedulingGated"
    return "Completed" if status.get("phase") == "Succeeded" else str(status.get("reason") or status.get("phase") or "Unknown")


def _restarts(pod: Document) -> str:
    return str(sum(int(item.get("restartCount") or 0) for item in _statuses(pod)))


def _node_status(node: Document) -> str:
    ready = [item.get("status") for item in (node.get("status") or {}).get("conditions") or () if item.get("type") == "Ready"]
    word = {"True": "Ready", "False": "NotReady"}.get(str(ready[0]), "Unknown") if ready else "Unknown"
    return word + (",SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else "")


def _roles(node: Document) -> str:
    return _joined(key.removeprefix(ROLE) for key in sorted(node["metadata"].get("labels") or {}) if key.startswith(ROLE))


def _address(kind: str) -> Cell:
    def cell(node: Document) -> object:
        found = [item["address"] for item in (node.get("status") or {}).get("addresses") or () if item.get("type") == kind]
        return found[0] if found else NONE

    return cell


# --- workloads -----------------------------------------------------------------------------------------------------------


def _job_status(job: Document) -> str:
    conditions = {item.get("type"): item.get("status") for item in (job.get("status") or {}).get("conditions") or ()}
    for kind in ("Complete", "Failed"):
        if conditions.get(kind) == "True":
            return kind
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    return "Suspended" if conditions.get("Suspended") == "True" else "Running"


def _completions(job: Document) -> str:
    spec, done = job.get("spec") or {}, (job.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(now: float) -> Cell:
    start, end = at("status.startTime"), at("status.completionTime")

    def cell(job: Document) -> str:
        begun, ended = str(start(job)), str(end(job))
        return "" if not begun else age(begun, moment_of(ended) or now)

    return cell


def _since(path: str, now: float, otherwise: str = UNKNOWN) -> Cell:
    read = at(path)
    return lambda item: age(str(read(item)), now) if read(item) else otherwise


def _rules(path: str) -> Cell:
    """Return how a quota shows what is used of what: requests, or limits."""

    def cell(quota: Document) -> str:
        hard, used = ((quota.get("status") or {}).get(name) or {} for name in ("hard", "used"))
        names = [name for name in sorted(hard) if name.startswith("limits.") == (path == "limits")]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _modes(path: str) -> Cell:
    read = _list(path)
    return lambda item: ",".join(MODES.get(mode, mode) for mode in read(item))


# --- tables --------------------------------------------------------------------------------------------------------------


def server_columns(kind: Kind, now: float) -> list[TableColumn] | None:
    """Return the columns of a kind of Kubernetes; None for others."""
    make = _BY_RESOURCE.get(kind.resource)
    if make is None:
        return None
    own = [TableColumn(title.rstrip("*"), cell, is_wide=title.endswith("*")) for title, cell in make(now).items()]
    return own if kind.kind == "Event" else [TableColumn("Name", at("metadata.name")), *own]


def _age(now: float) -> dict[str, Cell]:
    return {"Age": _since("metadata.creationTimestamp", now)}


def _containers(path: str = "spec.template.spec.containers", *, selector: str = "spec.selector") -> dict[str, Cell]:
    found: dict[str, Cell] = {"Containers*": _named(path, "name"), "Images*": _named(path, "image")}
    return {**found, **({"Selector*": _selector(selector)} if selector else {})}


def _pods(now: float) -> dict[str, Cell]:
    return {
        "Ready": _ready, "Status": _pod_status, "Restarts": _restarts, **_age(now), "IP*": or_none("status.podIP"),
        "Node*": or_none("spec.nodeName"), "Nominated Node*": or_none("status.nominatedNodeName"),
        "Readiness Gates*": _named("spec.readinessGates", "conditionType"),
    }  # fmt: skip


def _nodes(now: float) -> dict[str, Cell]:
    info = "status.nodeInfo"
    return {
        "Status": _node_status, "Roles": _roles, **_age(now), "Version": at(f"{info}.kubeletVersion"),
        "Internal-IP*": _address("InternalIP"), "External-IP*": _address("ExternalIP"),
        "OS-Image*": or_none(f"{info}.osImage", UNKNOWN), "Kernel-Version*": or_none(f"{info}.kernelVersion", UNKNOWN),
        "Container-Runtime*": or_none(f"{info}.containerRuntimeVersion", UNKNOWN),
    }  # fmt: skip


def _services(now: float) -> dict[str, Cell]:
    def ports(service: Document) -> str:
        return _joined(
            f"{item.get('port')}/{item.get('protocol', 'TCP')}" for item in (service.get("spec") or {}).get("ports") or ()
        )

    return {
        "Type": at("spec.type", "ClusterIP"), "Cluster-IP": or_none("spec.clusterIP"), "External-IP": lambda service: NONE,
        "Port(s)": ports, **_age(now), "Selector*": _selector("spec.selector"),
    }  # fmt: skip


def _about(event: Document) -> str:
    return f"{str(at('involvedObject.kind')(event)).lower()}/{at('involvedObject.name')(event)}"


def _last_seen(now: float) -> Cell:
    names = ("lastTimestamp", "eventTime")
    return lambda event: age(
        next((str(event[key]) for key in names if event.get(key)), event["metadata"].get("creationTimestamp", "")), now
    )


def _events(now: float) -> dict[str, Cell]:
    return {
        "Last Seen": _last_seen(now), "Type": at("type"), "Reason": at("reason"), "Object": _about,
        "Subobject*": at("involvedObject.fieldPath"),
        "Source*": lambda event: at("reportingComponent")(event) or at("source.component")(event),
        "Message": lambda event: str(event.get("message", "")).strip(), "First Seen*": _since("firstTimestamp", now),
        "Count*": at("count", 1), "Name*": at("metadata.name"),
    }  # fmt: skip


def _claims(now: float) -> dict[str, Cell]:
    return {
        "Status": at("status.phase"), "Volume": at("spec.volumeName"), "Capacity": at("status.capacity.storage"),
        "Access Modes": _modes("status.accessModes"), "StorageClass": at("spec.storageClassName"),
        "VolumeAttributesClass": or_none("spec.volumeAttributesClassName", UNSET), **_age(now),
        "VolumeMode*": or_none("spec.volumeMode", UNSET),
    }  # fmt: skip


def _volumes(now: float) -> dict[str, Cell]:
    def claim(volume: Document) -> str:
        found = (volume.get("spec") or {}).get("claimRef") or {}
        return f"{found.get('namespace')}/{found.get('name')}" if found else ""

    return {
        "Capacity": at("spec.capacity.storage"), "Access Modes": _modes("spec.accessModes"),
        "Reclaim Policy": at("spec.persistentVolumeReclaimPolicy"), "Status": at("status.phase"), "Claim": claim,
        "StorageClass": at("spec.storageClassName"), "VolumeAttributesClass": or_none("spec.volumeAttributesClassName", UNSET),
        "Reason": at("status.reason"), **_age(now), "VolumeMode*": or_none("spec.volumeMode", UNSET),
    }  # fmt: skip


def _cron_jobs(now: float) -> dict[str, Cell]:
    return {
        "Schedule": at("spec.schedule"), "Timezone": or_none("spec.timeZone"),
        "Suspend": lambda item: str(bool(at("spec.suspend")(item))),
        "Active": lambda item: len(_list("status.active")(item)), "Last Schedule": _since("status.lastScheduleTime", now, NONE),
        **_age(now), **_containers("spec.jobTemplate.spec.template.spec.containers", selector="spec.jobTemplate.spec.selector"),
    }  # fmt: skip


def _claim_state(claim: Document) -> str:
    if _list("status.reservedFor")(claim):
        return "allocated,reserved"
    return "allocated" if at("status.allocation")(claim) else "pending"


def _policy(group: Document) -> str:
    return "Gang" if "gang" in ((group.get("spec") or {}).get("schedulingPolicy") or {}) else "Basic"


def _group_status(group: Document) -> str:
    conditions = (group.get("status") or {}).get("conditions") or ()
    found = [item for item in conditions if item.get("type") == "PodGroupScheduled"]
    return ("Scheduled" if found[0].get("status") == "True" else str(found[0].get("reason", "Pending"))) if found else "Pending"


_BY_RESOURCE: Mapping[str, Callable[[float], dict[str, Cell]]] = {
    "pods": _pods, "nodes": _nodes, "services": _services, "events": _events, "persistentvolumeclaims": _claims,
    "persistentvolumes": _volumes, "cronjobs.batch": _cron_jobs,
    "namespaces": lambda now: {"Status": at("status.phase"), **_age(now)},
    "configmaps": lambda now: {"Data": _size("data"), **_age(now)},
    "secrets": lambda now: {"Type": at("type", "Opaque"), "Data": _size("data"), **_age(now)},
    "podtemplates": lambda now: {
        "Containers": _named("template.spec.containers", "name"), "Images": _named("template.spec.containers", "image"),
        "Pod Labels": _selector("template.metadata.labels"),
    },
    "limitranges": lambda now: {"Created At": at("metadata.creationTimestamp")},
    "resourcequotas": lambda now: {"Request": _rules("requests"), "Limit": _rules("limits"), **_age(now)},
    "deployments.apps": lambda now: {
        "Ready": _parts("status.readyReplicas", "spec.replicas"), "Up-to-date": at("status.updatedReplicas", 0),
        "Available": at("status.availableReplicas", 0), **_age(now), **_containers(),
    },
    "replicasets.apps": lambda now: {
        "Desired": at("spec.replicas", 0), "Current": at("status.replicas", 0), "Ready": at("status.readyReplicas", 0), **_age(now),
        **_containers(),
    },
    "statefulsets.apps": lambda now: {
        "Ready": _parts("status.readyReplicas", "spec.replicas"), **_age(now), **_containers(selector=""),
    },
    "daemonsets.apps": lambda now: {
        "Desired": at("status.desiredNumberScheduled", 0), "Current": at("status.currentNumberScheduled", 0),
        "Ready": at("status.numberReady", 0), "Up-to-date": at("status.updatedNumberScheduled", 0),
        "Available": at("status.numberAvailable", 0), "Node Selector": _selector("spec.template.spec.nodeSelector"), **_age(now),
        **_containers(),
    },
    "jobs.batch": lambda now: {
        "Status": _job_status, "Completions": _completions, "Duration": _duration(now), **_age(now), **_containers(),
    },
    "networkpolicies.networking.k8s.io": lambda now: {"Pod-Selector": _selector("spec.podSelector"), **_age(now)},
    "leases.coordination.k8s.io": lambda now: {"Holder": at("spec.holderIdentity"), **_age(now)},
    "poddisruptionbudgets.policy": lambda now: {
        "Min Available": at("spec.minAvailable", "N/A"), "Max Unavailable": at("spec.maxUnavailable", "N/A"),
        "Allowed Disruptions": at("status.disruptionsAllowed", 0), **_age(now),
    },
    "priorityclasses.scheduling.k8s.io": lambda now: {
        "Value": at("value"), "Global-Default": at("globalDefault", False), **_age(now),
        "PreemptionPolicy": at("preemptionPolicy", "PreemptLowerPriority"),
    },
    "workloads.scheduling.k8s.io": _age,
    "podgroups.scheduling.k8s.io": lambda now: {
        "Policy": _policy, "Workload": or_none("spec.podGroupTemplateRef.workload.workloadName"), "Status": _group_status,
        **_age(now),
    },
    "runtimeclasses.node.k8s.io": lambda now: {"Handler": at("handler"), **_age(now)},
    "storageclasses.storage.k8s.io": lambda now: {
        "Provisioner": at("provisioner"), "ReclaimPolicy": at("reclaimPolicy", "Delete"),
        "VolumeBindingMode": at("volumeBindingMode", "Immediate"), "AllowVolumeExpansion": at("allowVolumeExpansion", False),
        **_age(now),
    },
    "csinodes.storage.k8s.io": lambda now: {"Drivers": lambda item: len(_list("spec.drivers")(item)), **_age(now)},
    "csidrivers.storage.k8s.io": lambda now: {
        "AttachRequired": at("spec.attachRequired", True), "PodInfoOnMount": at("spec.podInfoOnMount", False),
        "StorageCapacity": at("spec.storageCapacity", False), "TokenRequests": _named("spec.tokenRequests", "audience"),
        "RequiresRepublish": at("spec.requiresRepublish", False),
        "Modes": lambda item: _joined(_list("spec.volumeLifecycleModes")(item)), **_age(now),
    },
    "csistoragecapacities.storage.k8s.io": lambda now: {"Created At": at("metadata.creationTimestamp")},
    "resourceclaims.resource.k8s.io": lambda now: {
        "State": _claim_state, **_age(now),
    },
    "resourceclaimtemplates.resource.k8s.io": _age,
    "deviceclasses.resource.k8s.io": _age,
    "resourceslices.resource.k8s.io": lambda now: {
        "Node": or_none("spec.nodeName"), "Driver": at("spec.driver"), "Pool": at("spec.pool.name"), **_age(now),
    },
}  # fmt: skip
