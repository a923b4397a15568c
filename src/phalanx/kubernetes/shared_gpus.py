"""GPUs that several tasks share: which devices are open, how much of each is taken, and what that does to whole devices.

The first part of a device takes the whole device from the node's idle ones; the last one to leave gives it back. So the ledger
counts whole devices only and every filter on `nvidia.com/gpu` stays right, while this book alone knows the parts.

A device counts as *releasing* when all its users leave, never when some do: what a leaving user frees of a device that others stay
on is room for parts, not a device for a whole request.
"""

from dataclasses import dataclass, field

import numpy as np

from phalanx.model.resources import GPU
from phalanx.model.shape import GpuShare, Shape
from phalanx.model.task import Task
from phalanx.model.task_status import Status
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.gang_state import TaskState

DEVICE = 1000
"""One device in the engine's unit."""
TOLERANCE = 1e-6
"""Parts are floats: three thirds of a device must still fit into it."""


@dataclass(slots=True)
class SharedGpu:
    """One device that is shared: its size, what all its users take, and what of it is being given back."""

    name: str
    memory: float
    taken: float = 0.0
    releasing: float = 0.0
    users: int = 0
    leaving: int = 0
    is_pipelined: bool = False
    """Opened on a whole device that its users have not left yet: whoever joins it is pipelined too."""

    def free_now(self, need: float) -> bool:
        """Tell whether the part fits into what nobody has."""
        return self.is_open and not self.is_pipelined and self.memory - self.taken >= need - TOLERANCE

    def free_later(self, need: float) -> bool:
        """Tell whether the part fits once leaving users are gone."""
        return self.is_open and self.memory - self.taken + self.releasing >= need - TOLERANCE

    @property
    def is_open(self) -> bool:
        """Tell whether somebody uses it who is not leaving."""
        return self.users > self.leaving

    @property
    def is_vacated(self) -> bool:
        """Tell whether all who use it are leaving."""
        return 0 < self.users == self.leaving


@dataclass(slots=True)
class _NodeGpus:
    memory: float
    devices: dict[str, SharedGpu] = field(default_factory=dict)


class SharedGpus:
    """The shared devices of all nodes, for one session; a book that follows every change."""

    def __init__(self, session: Session) -> None:
        """Read which running tasks share which devices, and take those devices from the idle ones."""
        self._session = session
        self._row = session.snapshot.space.row_by_name.get(GPU)
        self._nodes: dict[int, _NodeGpus] = {}
        self._assigned: dict[int, list[list[tuple[str, bool]]]] = {}
        """What this session gave to each task, one list per place: a task that was evicted and pipelined elsewhere has two."""
        self.packs = True
        for name, tasks in session.snapshot.on_node.items():
            number = session.snapshot.nodes.number_by_name.get(name)
            for task in tasks.values() if number is not None else ():
                if task.shape.gpu_share is not None and number is not None:
                    self._enter(number, task)
        for task in session.snapshot.reservations.values():
            self._give_back_reserved(session.snapshot.nodes.number_by_name.get(task.node), task)

    def _enter(self, number: int, task: Task) -> None:
        assert task.shape.gpu_share is not None
        need = self.need(task.shape.gpu_share, number)
        for name in task.gpu_groups:
            device = self._device(number, name)
            if not device.users:
                self._open(number, now=True)
            self._count(number, device, users=1, taken=need)
            if task.status is Status.RELEASING:
                self._count(number, device, leaving=1, releasing=need)

    def _give_back_reserved(self, number: int | None, task: Task) -> None:
        """Take a reservation pod out of the ledger: its device is counted with those who share it, and free without any."""
        if number is None:
            return
        amount = task.shape.request.get(GPU, 0)
        self._take_devices(number, -amount, now=True)
        if task.status is Status.RELEASING and self._row is not None:
            self._session.ledger.releasing[self._row, number] -= amount
            self._session.ledger.future[self._row, number] -= amount

    def _node(self, number: int) -> _NodeGpus:
        if number not in self._nodes:
            self._nodes[number] = _NodeGpus(self._session.snapshot.nodes.nodes[number].gpu_memory_mib)
        return self._nodes[number]

    def _device(self, number: int, name: str) -> SharedGpu:
        node = self._node(number)
        return node.devices.setdefault(name, SharedGpu(name, node.memory))

    def need(self, share: GpuShare, number: int) -> float:
        """Return how much memory of each device the part takes on a node."""
        memory = self._node(number).memory
        return share.portion_of(memory) * memory

    # --- room --------------------------------------------------------------------------------------------------------

    def room(self, shape: Shape) -> tuple[Mask, Mask, Mask]:
        """Mark the nodes with room for the part now, later, and on a device that is shared already."""
        share, ledger = shape.gpu_share, self._session.ledger
        assert share is not None
        if self._row is None:
            nobody: Mask = np.zeros(len(self._session.snapshot.nodes), dtype=np.bool_)
            return nobody, nobody.copy(), nobody.copy()
        now = ledger.idle[self._row] // DEVICE >= share.devices
        later = ledger.future[self._row] // DEVICE >= share.devices
        shared = np.zeros_like(now)
        for number, node in self._nodes.items():
            need = self.need(share, number)
            open_now = sum(device.free_now(need) for device in node.devices.values())
            open_later = sum(device.free_later(need) for device in node.devices.values())
            now[number] = ledger.idle[self._row, number] // DEVICE + open_now >= share.devices
            later[number] = ledger.future[self._row, number] // DEVICE + open_later >= share.devices
            shared[number] = open_later > 0
        return now, later, shared

    def seems_free(self, shape: Shape) -> Mask:
        """Mark the nodes with an idle device, or a shared one that has room now or once somebody has left it.

        KAI's scores do not tell these apart; only when a task is placed there is it found to be pipelined.
        """
        share = shape.gpu_share
        assert share is not None
        free, _, _ = self.room(shape)
        for number, node in self._nodes.items() if self._row is not None else ():
            need = self.need(share, number)
            shared = sum(device.free_later(need) for device in node.devices.values())
            free[number] = self._session.ledger.idle[self._row, number] // DEVICE + shared >= share.devices
        return free

    # --- changes -----------------------------------------------------------------------------------------------------

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation."""
        if operation.shape.gpu_share is None:
            return
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            if operation.kind is OperationKind.EVICT:
                self._leave(task, node, undone)
            elif undone:
                self._give_back(task, node, operation.kind)
            else:
                self._take(task, node, operation.kind)

    def _take(self, task: TaskState, node: int, kind: OperationKind) -> None:
        share = task.task.shape.gpu_share
        assert share is not None
        need = self.need(share, node)
        assigned: list[tuple[str, bool]] = []
        for place, device in enumerate(self.choose(share, node)):
            is_new = device is None
            if device is None:
                # The name is the group that the pod is bound with: known before the device is, and the same in every session.
                device = self._device(node, f"{task.task.uid}-{self._session.node_name(node)}-{place}")
                device.is_pipelined = kind is not OperationKind.ALLOCATE
                self._open(node, now=not device.is_pipelined)
            self._count(node, device, users=1, taken=need)
            assigned.append((device.name, is_new))
        self._assigned.setdefault(id(task), []).append(assigned)
        task.gpu_groups = assigned

    def choose(self, share: GpuShare, node: int) -> list[SharedGpu | None]:
        """Return the devices that take the part, None for a whole one: the fullest first when packing, else the emptiest.

        The name decides among equals, so that two sessions on the same cluster choose the same devices.
        """
        need = self.need(share, node)
        shared = [device for device in self._node(node).devices.values() if device.free_later(need)]
        whole = int(self._session.ledger.future[self._row, node] // DEVICE) if self._row is not None else 0
        shared.sort(key=lambda device: (-device.taken if self.packs else device.taken, device.name))
        line: list[SharedGpu | None] = [*shared]
        unused: list[SharedGpu | None] = [None] * max(whole, 0)
        return (line + unused if self.packs else unused + line)[: share.devices]

    def is_now(self, share: GpuShare, node: int) -> bool:
        """Tell whether the devices that would be chosen have room at once."""
        need, chosen = self.need(share, node), self.choose(share, node)
        wanted = sum(device is None for device in chosen)
        idle = int(self._session.ledger.idle[self._row, node] // DEVICE) if self._row is not None else 0
        return idle >= wanted and all(device is None or device.free_now(need) for device in chosen)

    def stays(self, task: TaskState, node: int) -> bool:
        """Tell whether an evicted task that comes back to its node would be on the devices it has."""
        share = task.task.shape.gpu_share
        mine = set(self._devices_of(task))
        return share is None or all(device is None or device.name in mine for device in self.choose(share, node))

    def free(self) -> float:
        """Return how much of all devices is free or will be, parts of shared ones included, in devices."""
        if self._row is None:
            return 0.0
        whole = float(self._session.ledger.future[self._row].clip(min=0).sum()) / DEVICE
        shared = (device for node in self._nodes.values() for device in node.devices.values() if device.is_open)
        return whole + sum(max(device.memory - device.taken + device.releasing, 0.0) / device.memory for device in shared)

    def open_nodes(self, need: float = 1e-3) -> list[int]:
        """Return the nodes with a shared device that has room."""
        return [number for number, node in self._nodes.items() if any(device.free_later(need) for device in node.devices.values())]

    def state_of(self, number: int) -> list[tuple[str, float, float, int, int]]:
        """Return the open devices of a node: name, what is taken and being given back, users, those who leave."""
        devices = self._nodes[number].devices.values() if number in self._nodes else ()
        parts = (_rounded(device) for device in devices if device.users)
        return sorted(parts)

    def _give_back(self, task: TaskState, node: int, kind: OperationKind) -> None:
        share = task.task.shape.gpu_share
        assert share is not None
        need = self.need(share, node)
        places = self._assigned[id(task)]
        # In reverse, so that a device that was opened here has lost all users that came after before it is closed.
        for name, is_new in reversed(places.pop()):
            device = self._device(node, name)
            self._count(node, device, users=-1, taken=-need)
            if is_new:
                self._close(node, now=kind is OperationKind.ALLOCATE)
                del self._node(node).devices[name]
        task.gpu_groups = places[-1] if places else []

    def _leave(self, task: TaskState, node: int, undone: bool) -> None:
        share = task.task.shape.gpu_share
        assert share is not None
        need, sign = self.need(share, node), -1 if undone else 1
        for name in self._devices_of(task):
            self._count(node, self._device(node, name), leaving=sign, releasing=sign * need)

    def _devices_of(self, task: TaskState) -> list[str]:
        """Return the devices that a task is on: those that this session gave it, or those that it came with."""
        places = self._assigned.get(id(task))
        return [name for name, _ in places[-1]] if places else list(task.task.gpu_groups)

    def _count(
        self, node: int, device: SharedGpu, *, users: int = 0, taken: float = 0.0, leaving: int = 0, releasing: float = 0.0
    ) -> None:
        """Change the users of a device, and with them whether it is releasing as a whole."""
        was_vacated = device.is_vacated
        device.users, device.leaving = device.users + users, device.leaving + leaving
        device.taken, device.releasing = device.taken + taken, device.releasing + releasing
        if device.is_vacated != was_vacated:
            self._release_device(node, device.is_vacated)

    def _open(self, node: int, *, now: bool) -> None:
        self._take_devices(node, DEVICE, now)

    def _close(self, node: int, *, now: bool) -> None:
        self._take_devices(node, -DEVICE, now)

    def _take_devices(self, node: int, amount: int, now: bool) -> None:
        if self._row is None:
            return
        ledger = self._session.ledger
        ledger.future[self._row, node] -= amount
        if now:
            ledger.used[self._row, node] += amount
            ledger.idle[self._row, node] -= amount

    def _release_device(self, node: int, leaves: bool) -> None:
        """Count a device whose users all leave as releasing, or no longer."""
        if self._row is not None:
            amount = DEVICE if leaves else -DEVICE
            self._session.ledger.releasing[self._row, node] += amount
            self._session.ledger.future[self._row, node] += amount


def _rounded(device: SharedGpu) -> tuple[str, float, float, int, int]:
    return device.name, round(device.taken, 6), round(device.releasing, 6), device.users, device.leaving


def uses_gpu(shape: Shape) -> bool:
    """Tell whether a task asks for GPUs in any form."""
    return bool(shape.request.get(GPU)) or shape.gpu_share is not None or any("nvidia.com/mig-" in name for name in shape.request)
