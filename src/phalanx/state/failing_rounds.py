"""Gangs whose bind requests are being rolled back: one of them failed for good, and without it the gang lacks what it needs.

The binder lets the other requests fail then, one write after the other. As long as some are still open, a session sees them as
members on their way: it would ask for the missing one alone, the binder would roll that back too, and so on for ever. So the
gang is left alone, and what failed stays as it is, until all of it has failed.
"""

from collections.abc import Collection, Mapping

from phalanx.model.bind_request import BindRequest
from phalanx.model.gang import Gang
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.gang_state import GangState
from phalanx.state.staleness import lacks

Members = Mapping[TaskKey, Task]


def failing_rounds(
    lost: Collection[BindRequest], tasks: Members, gangs: Mapping[GangKey, Gang], members: Mapping[GangKey, Members]
) -> dict[GangKey, TaskKey]:
    """Return the gangs whose rounds fail, each with the pod whose request failed; `lost` are requests that come to nothing."""
    found: dict[GangKey, TaskKey] = {}
    for request in lost:
        task = tasks.get(request.task)
        gang = gangs.get(task.gang) if task is not None and task.gang is not None else None
        if gang is not None and gang.key not in found and _fails(request, gang, members.get(gang.key, {})):
            found[gang.key] = request.task
    return found


def _fails(request: BindRequest, gang: Gang, members: Members) -> bool:
    is_open = any(task.status is Status.BINDING for task in members.values())
    return request.has_failed and is_open and bool(lacks(GangState(gang, ((task, -1) for task in members.values()))))
