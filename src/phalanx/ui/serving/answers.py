"""What the page asks for, and what it gets: views of a cluster, questions about it, its sessions."""

import asyncio
from collections.abc import Mapping
from functools import partial

import msgspec
from aiohttp import web

from phalanx.errors import ConfigError, Forbidden, Missing, SnapshotError
from phalanx.model.kinds import split_key
from phalanx.model.resources import GPU, amount_of
from phalanx.model.task import GangKey
from phalanx.ui.object_events import event_row
from phalanx.ui.questions.asked import SEARCH_SECONDS, Explain, Pending, WhatIf
from phalanx.ui.questions.desk import Question
from phalanx.ui.serving.documents import JSON, View
from phalanx.ui.serving.page import plain
from phalanx.ui.serving.reader import Answer, PageSetup, Reader, Served
from phalanx.ui.serving.redaction import redacted
from phalanx.ui.source import SessionShelf
from phalanx.ui.steps import SHOWN, step_document, steps_document
from phalanx.ui.views import Json
from phalanx.ui.views.gang import gang
from phalanx.ui.views.gangs import gangs
from phalanx.ui.views.nodes import node, nodes
from phalanx.ui.views.overview import overview
from phalanx.ui.views.queues import queues
from phalanx.ui.views.rooms import WHOLE_CLUSTER, RoomAsked, rooms

VIEWS: Mapping[str, View] = {"overview": overview, "queues": queues, "gangs": gangs, "nodes": nodes}
EVERYTHING_ONLY = "needs the whole cluster: you have to be allowed to list the pods of all namespaces, nodes and queues"
MOST_LEVEL, MOST_CHANGES = 5, 100
HIDDEN_EVENTS: Mapping[str, object] = {"events": [], "hidden": True}


async def _shown(view: View, name: str, reader: Reader) -> web.StreamResponse:
    found = await reader.showing.documents.get(name, reader.scope, view)
    if found is None:
        raise Missing(f"there is no {name}, or you may not see it")
    return found.answer(reader.request)


async def _gang(reader: Reader) -> web.StreamResponse:
    key = reader.asked("gang")
    return await _shown(lambda seen, scope: gang(seen, scope, key), f"gang {key}", reader)


async def _node(reader: Reader) -> web.StreamResponse:
    name = reader.asked("node")
    return await _shown(lambda seen, scope: node(seen, scope, name), f"node {name}", reader)


async def _rooms(reader: Reader) -> web.StreamResponse:
    query = reader.request.query
    asked = RoomAsked(
        reader.number("nodes", 1), query.get("amount", "").strip(), query.get("resource", GPU), query.get("level", WHOLE_CLUSTER)
    )
    if asked.nodes < 1:
        raise ConfigError("nodes: write for how many there should be room, 1 or more")
    _refuse_amount(asked)
    return await _shown(lambda seen, scope: rooms(seen, scope, asked), f"room for {asked}", reader)


def _refuse_amount(asked: RoomAsked) -> None:
    try:
        amount = amount_of(asked.resource, asked.quantity)
    except SnapshotError as problem:
        raise ConfigError(f"amount: {problem}") from problem
    if amount <= 0:
        raise ConfigError(f"amount: {asked.quantity!r} is nothing; write how much of it should be free on each node")


async def _events_about(reader: Reader) -> web.StreamResponse:
    """Answer with the events about a gang, its pods and their owners."""
    key, seen = reader.asked("gang"), await reader.showing.board.current()
    namespace, name = split_key(key)
    if not reader.scope.sees_events(namespace):
        return plain(HIDDEN_EVENTS)
    if key not in seen.gangs:
        return plain({"events": [], "hidden": False})
    tasks = seen.snapshot.members_of(GangKey(key)).values()
    owners = {owner.rpartition("/")[2] for task in tasks for owner in task.owners.split(",") if owner}
    names = {name.partition("@")[0], *owners, *(task.name for task in tasks)}
    try:
        found = await reader.showing.source.events(namespace, names)
    except Forbidden:
        return plain(HIDDEN_EVENTS)
    return plain({"events": redacted([event_row(event) for event in found], reader.scope, seen), "hidden": False})


# --- questions -----------------------------------------------------------------------------------------------------------


async def _answered(question: Question, reader: Reader) -> web.StreamResponse:
    answer = await reader.showing.asking.ask(question)
    return web.Response(body=answer, content_type=JSON, headers={"Cache-Control": "no-store"})


async def _explain(reader: Reader) -> web.StreamResponse:
    key, seen = reader.asked("gang"), await reader.showing.board.current()
    if not reader.scope.sees_key(key):
        raise Forbidden(f"you may not see the gangs of namespace {split_key(key)[0]}")
    seconds = min(float(reader.number("seconds", int(SEARCH_SECONDS))), SEARCH_SECONDS)
    question = Explain(key, (), seconds if reader.scope.is_whole else 0.0)
    if reader.scope.is_whole:
        return await _answered(question, reader)
    return plain(redacted(await _data(question, reader), reader.scope, seen))


async def _data(question: Question, reader: Reader) -> Json:
    found: Json = msgspec.json.decode(await reader.showing.asking.ask(question))
    return found


async def _what_if(reader: Reader) -> web.StreamResponse:
    _refuse_part(reader, "to try a change")
    body = await reader.body()
    changes, key = body.get("changes"), str(body.get("gang") or "")
    if not isinstance(changes, list) or not changes or not all(isinstance(text, str) for text in changes):
        raise ConfigError("changes: write a list of changes, such as ['node/n1=drained']")
    if len(changes) > MOST_CHANGES:
        raise ConfigError(f"changes: {len(changes)} are too many; {MOST_CHANGES} at most")
    return await _answered(Explain(key, tuple(changes)) if key else WhatIf(tuple(changes)), reader)


async def _pending(reader: Reader) -> web.StreamResponse:
    if reader.scope.is_whole:
        return await _answered(Pending(), reader)
    seen = await reader.showing.board.current()
    found = await _data(Pending(), reader)
    own = [item for item in found["gangs"] if reader.scope.sees_key(item["gang"])]
    return plain(redacted({**found, "gangs": own}, reader.scope, seen))


async def _extra(name: str, reader: Reader) -> web.StreamResponse:
    """Ask a question that lies above this package, about a gang."""
    _refuse_part(reader, "this question")
    make = reader.page.extra.get(name)
    if make is None:
        raise Missing(f"{name} cannot be asked here")
    return await _answered(make(reader.request.query.get("gang", "")), reader)


def _refuse_part(reader: Reader, what: str) -> None:
    if not reader.scope.is_whole:
        raise Forbidden(f"{what} {EVERYTHING_ONLY}")


# --- sessions ------------------------------------------------------------------------------------------------------------


async def _shelf(reader: Reader) -> SessionShelf:
    _refuse_part(reader, "to look at sessions")
    await reader.showing.board.current()  # where nobody has looked yet, no session was held
    found = reader.showing.source.sessions
    if found is None:
        raise Missing("no sessions are kept here")
    return found


async def _sessions(reader: Reader) -> web.StreamResponse:
    shelf = await _shelf(reader)
    kept = await asyncio.to_thread(shelf.kept)
    return plain({
        "now": reader.showing.source.now,
        "sessions": [
            {
                "key": item.key, "now": item.now, "placed": item.placed, "pipelined": item.pipelined, "evicted": item.evicted,
                "sample": list(item.sample),
            }
            for item in kept
        ],
    })  # fmt: skip


async def _steps(reader: Reader) -> web.StreamResponse:
    shelf, level = await _shelf(reader), min(reader.number("level", SHOWN), MOST_LEVEL)
    session = await reader.showing.sessions.of(shelf, reader.asked("session"), reader.request.query.get("gang", ""))
    return plain(await asyncio.to_thread(steps_document, session, level))


async def _step(reader: Reader) -> web.StreamResponse:
    shelf, number = await _shelf(reader), reader.number("step", 1)
    session = await reader.showing.sessions.of(shelf, reader.asked("session"), reader.request.query.get("gang", ""))
    return plain(await asyncio.to_thread(step_document, session, number))


# --- what is about no cluster --------------------------------------------------------------------------------------------


async def _moments(reader: Reader) -> web.StreamResponse:
    """Answer with the span of the recording and what happened in it."""
    moments = reader.page.moments
    if moments is None:
        raise Missing("there is no recording here")
    span = await moments.recording.span()
    found = await moments.recording.happenings() if reader.scope.is_whole else {}
    return plain({**span.document(), **found})


async def _history(reader: Reader) -> web.StreamResponse:
    """Answer with what a recording tells of the life of a gang."""
    moments, key = reader.page.moments, reader.asked("gang")
    if moments is None or not reader.scope.sees_key(key):
        raise Missing("there is no recording here, or you may not see this gang")
    seen = await reader.showing.board.current()
    found = await moments.recording.history(key, seen.now)
    return plain({"moments": redacted(found, reader.scope, seen)})


async def _simulations(reader: Reader) -> web.StreamResponse:
    _refuse_part(reader, "to look at simulations")
    simulations = reader.page.simulations
    if simulations is None:
        raise Missing("no simulations are shown here; name a folder with --results")
    rows = await asyncio.to_thread(simulations.rows)
    return plain({
        "simulations": [
            {"name": row.name, "title": row.title, "changed": row.changed, "over": row.is_over, "problem": row.problem}
            for row in rows
        ],
        "comparison": await asyncio.to_thread(simulations.compared, [row.name for row in rows if not row.problem]),
    })  # fmt: skip


async def _simulation(reader: Reader) -> web.StreamResponse:
    _refuse_part(reader, "to look at simulations")
    simulations, name = reader.page.simulations, reader.asked("name")
    found = None if simulations is None else await asyncio.to_thread(simulations.packed, name)
    if found is None:
        raise Missing(f"there is no simulation {name!r}")
    return plain(found)


ANSWERS: Mapping[str, Answer] = {
    **{f"GET {name}": partial(_shown, view, name) for name, view in VIEWS.items()},
    "GET gang": _gang, "GET node": _node, "GET rooms": _rooms, "GET gang-events": _events_about,
    "GET explain": _explain, "GET pending": _pending, "GET eta": partial(_extra, "eta"), "GET worlds": partial(_extra, "worlds"),
    "POST what-if": _what_if,
    "GET sessions": _sessions, "GET steps": _steps, "GET step": _step, "GET history": _history,
}  # fmt: skip
OTHERS: Mapping[str, Answer] = {"GET moments": _moments, "GET simulations": _simulations, "GET simulation": _simulation}


def served(setup: PageSetup) -> Served:
    """Return everything behind a page."""
    return Served(setup, ANSWERS, OTHERS)
