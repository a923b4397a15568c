"""What can be added to a pod: variables, ports, files. Nothing that is there is changed; a new pod comes back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from phalanx.model.kinds import Document

Container = Mapping[str, Any]
WORKERS, ALL = ("containers",), ("containers", "initContainers")


def with_spec(pod: Document, **fields: object) -> Document:
    """Return a pod with other fields in its spec."""
    return {**pod, "spec": {**pod["spec"], **fields}}


def with_containers(pod: Document, change: Callable[[Container], Container], groups: Sequence[str] = WORKERS) -> Document:
    """Return a pod with every container changed."""
    changed = {group: [change(item) for item in pod["spec"][group]] for group in groups if pod["spec"].get(group)}
    return with_spec(pod, **changed)


def with_more(container: Container, field: str, *items: Mapping[str, Any]) -> Container:
    """Return a container with more in one of its lists."""
    return {**container, field: [*(container.get(field) or ()), *items]}


def with_variables(pod: Document, variables: Sequence[Mapping[str, Any]], groups: Sequence[str] = WORKERS) -> Document:
    """Return a pod whose containers have more variables."""
    return with_containers(pod, lambda container: with_more(container, "env", *variables), groups)


def variable(name: str, value: object) -> Mapping[str, Any]:
    """Return a variable of a container."""
    return {"name": name, "value": str(value)}


def with_port(container: Container, name: str, port: int) -> Container:
    """Return a container that has a port open, once."""
    is_open = any(item.get("containerPort") == port for item in container.get("ports") or ())
    return container if is_open else with_more(container, "ports", {"name": name, "containerPort": port})


def with_volume(pod: Document, volume: Mapping[str, Any], mount: Mapping[str, Any], groups: Sequence[str] = WORKERS) -> Document:
    """Return a pod that has a volume, mounted by its containers; one of that name is taken as it is."""
    volumes = list(pod["spec"].get("volumes") or ())
    if all(item.get("name") != volume["name"] for item in volumes):
        volumes.append(volume)
    mounted = {"name": volume["name"], **mount}
    return with_containers(with_spec(pod, volumes=volumes), lambda item: with_more(item, "volumeMounts", mounted), groups)
