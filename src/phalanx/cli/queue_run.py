"""What `phalanx queue open` and `close` do: write a Command for a queue of Volcano's, as vcctl does, and say what became of it."""

from phalanx.cli import output
from phalanx.cli.connection import Reach, ask
from phalanx.cli.lookup import Looking, find, title
from phalanx.cli.volcano_commands import NOT_TAKEN, command
from phalanx.controllers.objects import inside
from phalanx.errors import ClusterError, Invalid, Unreachable
from phalanx.explain.recorded import event_order
from phalanx.model.kinds import EVENT, QUEUE, Document, kind_of
from phalanx.store.kube.client import Client

NO_STATE = "a queue of KAI's has no state that could be closed; set its limits to 0 instead, so that nothing more of it starts"
OPEN, SHUT = "Open", ("Closing", "Closed")


def carry_out(reach: Reach, names: tuple[str, ...], *, opens: bool) -> bool:
    """Open or close queues; return whether all of them could be."""

    async def asked(client: Client, namespace: str) -> bool:
        looking, refused = Looking(), 0
        for name in names:
            if (found := await looking.at(find(client, "queues", "", name))) is not None:
                refused += not await _turned(client, found[1], namespace, opens=opens)
        return not looking.missing and not refused

    return ask(reach, asked)


async def _turned(client: Client, queue: Document, namespace: str, *, opens: bool) -> bool:
    name = title(kind_of(queue), queue["metadata"]["name"])
    try:
        output.say(f"{name} {await _ordered(client, queue, namespace, opens=opens)}")
    except Unreachable:
        raise
    except ClusterError as problem:
        output.complain(f"error: {name}: {problem}")
        return False
    return True


async def _ordered(client: Client, queue: Document, namespace: str, *, opens: bool) -> str:
    """Order a queue to open or close; return what it is then."""
    if kind_of(queue) != QUEUE:
        raise Invalid(NO_STATE)
    if (_state(queue) == OPEN) if opens else (_state(queue) == SHUT[-1]):
        return f"unchanged: it is {_state(queue)}"
    action = "OpenQueue" if opens else "CloseQueue"
    if not await command(client, action, queue, namespace):
        return f"will be {'opened' if opens else 'closed'}: {NOT_TAKEN}"
    after = await client.get(QUEUE, "", queue["metadata"]["name"])
    if (_state(after) == OPEN) != opens:
        raise Invalid(await _reason(client, after, action))
    return "opened" if opens else "closed" if _state(after) == SHUT[-1] else "is closing: gangs are left in it"


def _state(queue: Document) -> str:
    return str(inside(queue, "status", "state") or OPEN)


async def _reason(client: Client, queue: Document, action: str) -> str:
    """Return what the controller recorded about an order that it did not carry out."""
    name = queue["metadata"]["name"]
    listed = await client.list(EVENT, fields=f"involvedObject.name={name},involvedObject.kind=Queue")
    found = sorted((item for item in listed.items if item.get("reason") == action), key=event_order)
    return str(found[-1]["message"]) if found else f"is {_state(queue)} still; its events say more: phalanx describe queue {name}"
