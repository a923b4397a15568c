"""The state of Volcano's queues: opened and closed by commands and with their parent; Closing becomes Closed with the last group.

The wanted state follows from objects alone: the queue's own state, that of its parent, and an annotation that says that the parent
closed it. How many groups and what amounts a queue holds is counted in `queue_status.py`.
"""

from collections.abc import Iterable, Iterator, Mapping

from phalanx.controllers.controller import Delete, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.first_queues import DEFAULT
from phalanx.controllers.objects import annotations_of, inside, key_of, meta_of, read
from phalanx.dialects.kinds.volcano import Command
from phalanx.errors import SnapshotError
from phalanx.model.kinds import COMMAND, GROUP_BY_DIALECT, QUEUE, Document, Kind
from phalanx.model.queue import ROOT

GROUP = GROUP_BY_DIALECT["volcano"]
OPEN, CLOSING, CLOSED, UNKNOWN = "Open", "Closing", "Closed", "Unknown"
SHUT = (CLOSING, CLOSED)
OPEN_QUEUE, CLOSE_QUEUE = "OpenQueue", "CloseQueue"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"


def queue_of(group: Document) -> str:
    """Return the name of the queue that a group is in."""
    return str(inside(group, "spec", "queue") or DEFAULT)


def parent_name(queue: Document) -> str:
    """Return the name of the queue above one; empty where none is named."""
    return str(inside(queue, "spec", "parent") or "")


def above(queues: Mapping[str, Document], name: str) -> list[str]:
    """Return the queues above one, the nearest first; a circle of parents ends where it closes."""
    line: dict[str, None] = {}
    parent = parent_name(queues[name])
    while parent in queues and parent != name and parent not in line:
        line[parent] = None
        parent = parent_name(queues[parent])
    return [*line]


class QueueController:
    """Reconciles the state of queues."""

    name = "queue"
    watches = (QUEUE, COMMAND, GROUP)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the queue of a command, a queue and its children, or the queue that a group has left or entered."""
        if kind is COMMAND:
            return [Key("", name)] if (name := _queue_named(document)) else []
        if kind is GROUP:
            return _queue_touched(view, document)
        below = [key_of(queue) for queue in view.within(QUEUE) if parent_name(queue) == meta_of(document).get("name")]
        return [key_of(document), *below]

    def reconcile(self, view: View, key: Key) -> Result:
        """Carry out the oldest command; without any, reconcile the state."""
        queue = view.find(QUEUE, "", key.name)
        commands = [command for command in view.within(COMMAND) if _queue_named(command) == key.name]
        if queue is None:
            return Result([write for command in commands for write in _refused(command, key.name)])
        if commands:
            oldest = min(commands, key=lambda command: str(meta_of(command).get("creationTimestamp", "")))
            return Result([*_carried_out(view, queue, oldest), _taken(oldest)])
        return Result([*_reconciled(view, queue)])


def _queue_named(command: Document) -> str:
    """Return the queue that a command is for; empty if it is for something else."""
    kind, version = inside(command, "target", "kind"), str(inside(command, "target", "apiVersion") or QUEUE.api_version)
    is_ours = kind == QUEUE.kind and version.startswith(f"{QUEUE.group}/")
    return str(inside(command, "target", "name") or "") if is_ours else ""


def _queue_touched(view: View, group: Document) -> Iterator[Key]:
    """Yield the queue that may have become empty because a group has gone, or is no longer empty because one has come."""
    queue, key = view.find(QUEUE, "", queue_of(group)), key_of(group)
    state = "" if queue is None else _state(queue)
    is_there = view.find(GROUP, key.namespace, key.name) is not None
    if state == (CLOSED if is_there else CLOSING):
        yield Key("", queue_of(group))


# --- commands ------------------------------------------------------------------------------------------------------------


def _taken(command: Document) -> Delete:
    key = key_of(command)
    return Delete(COMMAND, key.namespace, key.name, str(meta_of(command).get("uid", "")))


def _refused(command: Document, name: str) -> list[Write]:
    text = f"there is no queue {name!r}; create it first, or name another one in target.name"
    return [RecordEvent(command, "InvalidCommand", text, is_warning=True), _taken(command)]


def _carried_out(view: View, queue: Document, document: Document) -> list[Write]:
    try:
        command = read(document, Command)
    except SnapshotError as problem:
        return [RecordEvent(queue, "InvalidCommand", str(problem), is_warning=True)]
    named = command.target.uid if command.target else ""
    if named and named != meta_of(queue).get("uid"):
        text = f"the command is for an earlier queue of this name, with uid {named}; write a new one without target.uid"
        return [RecordEvent(queue, "InvalidCommand", text, is_warning=True)]
    if command.action == OPEN_QUEUE:
        return _opened(view, queue)
    if command.action == CLOSE_QUEUE:
        return _closed(view, queue)
    text = f"action: {command.action or ''!r} is unknown for a queue; write {OPEN_QUEUE} or {CLOSE_QUEUE}"
    return [RecordEvent(queue, "InvalidCommand", text, is_warning=True)]


def _opened(view: View, queue: Document) -> list[Write]:
    parent = _shut_parent(view, queue)
    if parent is not None:
        above_it, state = meta_of(parent)["name"], _state(queue)
        text = f"stays {state}: its parent {above_it} is {_state(parent)}; open {above_it} first"
        return [RecordEvent(queue, OPEN_QUEUE, text, is_warning=True)]
    if _state(queue) == OPEN:
        return []
    return [_set_state(queue, OPEN), *_marked(queue, None), RecordEvent(queue, OPEN_QUEUE, "is open: gangs are admitted again")]


def _closed(view: View, queue: Document) -> list[Write]:
    """Close a queue for good: it stays closed when its parent opens again."""
    if meta_of(queue)["name"] == ROOT:
        text = "stays open: it is above all other queues; close those below it"
        return [RecordEvent(queue, CLOSE_QUEUE, text, is_warning=True)]
    if _state(queue) in SHUT:
        return _marked(queue, None)
    state = _shut_state(view, queue)
    return [_set_state(queue, state), RecordEvent(queue, CLOSE_QUEUE, f"is {state}: no more gangs are admitted")]


# --- states --------------------------------------------------------------------------------------------------------------


def _state(queue: Document) -> str:
    """Return the state of a queue; one without a status yet is open."""
    return str(inside(queue, "status", "state") or OPEN)


def _reconciled(view: View, queue: Document) -> list[Write]:
    state, is_marked = _state(queue), annotations_of(queue).get(CLOSED_BY_PARENT) == "true"
    if _shut_parent(view, queue) is not None and state == OPEN:
        return [*_marked(queue, "true"), _set_state(queue, _shut_state(view, queue))]
    if is_marked and _shut_parent(view, queue) is None:
        return [*([] if state == OPEN else [_set_state(queue, OPEN)]), *_marked(queue, None)]
    wanted = _shut_state(view, queue) if state in SHUT else state if state == OPEN else UNKNOWN
    return [] if wanted == inside(queue, "status", "state") else [_set_state(queue, wanted)]


def _shut_parent(view: View, queue: Document) -> Document | None:
    """Return the parent of a queue if it is closing or closed; a circle of parents counts as no parent."""
    parent = view.find(QUEUE, "", parent_name(queue))
    if parent is None or _state(parent) not in SHUT:
        return None
    queues = {str(meta_of(item).get("name")): item for item in view.within(QUEUE)}
    name = str(meta_of(queue).get("name"))
    line = above(queues, name)
    is_circle = not line or parent_name(queues[line[-1]]) in (name, *line)
    return None if is_circle else parent


def _shut_state(view: View, queue: Document) -> str:
    name = meta_of(queue)["name"]
    return CLOSING if any(queue_of(group) == name for group in view.within(GROUP)) else CLOSED


def _set_state(queue: Document, state: str) -> Patch:
    return Patch(QUEUE, "", meta_of(queue)["name"], {"status": {"state": state}}, is_status=True)


def _marked(queue: Document, mark: str | None) -> list[Write]:
    """Write, or remove, the annotation that the parent closed a queue."""
    if annotations_of(queue).get(CLOSED_BY_PARENT) == mark:
        return []
    return [Patch(QUEUE, "", meta_of(queue)["name"], {"metadata": {"annotations": {CLOSED_BY_PARENT: mark}}})]
