"""What `phalanx wait` does: look at objects again and again, until each is in the state that is waited for."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from phalanx.cli import output
from phalanx.cli.connection import Reach, ask
from phalanx.cli.gang_choice import gang_called
from phalanx.cli.get_run import all_of_kind
from phalanx.cli.jsonpath import check_path, text_of, values_at
from phalanx.cli.lookup import find, is_gang, kind_names, title, typed_targets
from phalanx.cli.wait import WaitOptions
from phalanx.errors import Missing
from phalanx.explain.gang_status import GangStatus
from phalanx.model.kinds import Document, kind_of
from phalanx.store.kube.client import Client

FIRST_STEP, LONGEST_STEP, GROWTH = 0.2, 2.0, 1.5
"""Seconds between two looks; they become longer, as those who wait long need no haste."""
STATES = "condition=NAME[=VALUE], jsonpath='{.path}'[=VALUE], create or delete"
_JSONPATH = re.compile(r"(\{[^{}]*\}|[^={]*)(?:=(.*))?", re.DOTALL)
STATUSES_BY_CONDITION = {
    "scheduled": {GangStatus.BOUND, GangStatus.RUNS, GangStatus.COMPLETED},
    "running": {GangStatus.RUNS},
    "completed": {GangStatus.COMPLETED},
}
"""Which status of a gang meets a condition."""

Target = tuple[str, str]
"""A kind and a name, as typed."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is waited for: a test of an object, which is None where there is no such object."""

    is_met: Callable[[Document | None], bool]
    takes_missing: bool = False
    """An object that is not there is no error."""


def wait(reach: Reach, asked: WaitOptions) -> bool:
    """Wait for all that was typed; return whether all of it came true in time."""
    goal, targets = goal_of(asked.wanted), _typed(asked)

    async def waited(client: Client, namespace: str) -> bool:
        waiter = _Waiter(client, namespace, goal, asyncio.get_running_loop().time() + asked.timeout)
        found = targets or await _listed(client, asked, namespace)
        return all([await waiter.wait_for(*target) for target in found])

    return ask(reach, waited)


def _typed(asked: WaitOptions) -> list[Target]:
    is_chosen = asked.is_all or bool(asked.labels)
    targets = [] if is_chosen else typed_targets(asked.kind, asked.names)
    if is_chosen and (asked.names or "/" in asked.kind):
        raise click.UsageError("name objects, or choose them with --all or -l, not both")
    if not is_chosen and not targets:
        raise click.UsageError(f"which one? write {asked.kind}/NAME, or {asked.kind} --all")
    return targets


async def _listed(client: Client, asked: WaitOptions, namespace: str) -> list[Target]:
    """Return what is there of some kinds; nothing to wait for is an error, as for kubectl."""
    found = [
        (part, str(item["metadata"]["name"]))
        for part in kind_names(asked.kind)
        for item in await all_of_kind(client, part, namespace, labels=asked.labels)
    ]
    if not found and asked.wanted != "delete":
        raise Missing(f"no matching {asked.kind} found in namespace {namespace}")
    return found


class _Waiter:
    """Waits for one object after the other, all until the same moment."""

    def __init__(self, client: Client, namespace: str, goal: Goal, end: float) -> None:
        self._client, self._namespace, self._goal, self._end = client, namespace, goal, end

    async def wait_for(self, kind_name: str, name: str) -> bool:
        """Wait for one object, and say what became of it; return whether it is in the state that is waited for."""
        step, shown = FIRST_STEP, f"{kind_name}/{name}"
        while True:
            try:
                found = await self._look(kind_name, name)
            except Missing as problem:
                output.complain(f"error: {problem}")
                return False
            shown = shown if found is None else _title(found)
            if self._goal.is_met(found):
                output.say(f"{shown} condition met")
                return True
            left = self._end - asyncio.get_running_loop().time()
            if left <= 0:
                output.complain(f"error: timed out waiting for the condition on {shown}")
                return False
            await asyncio.sleep(min(step, left))
            step = min(step * GROWTH, LONGEST_STEP)

    async def _look(self, kind_name: str, name: str) -> Document | None:
        try:
            if is_gang(kind_name):
                return await gang_called(self._client, self._namespace, name)
            return (await find(self._client, kind_name, self._namespace, name))[1]
        except Missing:
            if self._goal.takes_missing:
                return None
            raise


def _title(found: Document) -> str:
    name = str(found["metadata"]["name"])
    return f"gang/{name}" if found["kind"] == "Gang" else title(kind_of(found), name)


# --- what is waited for --------------------------------------------------------------------------------------------------


def goal_of(text: str) -> Goal:
    """Read what was typed after --for."""
    word, equals, rest = text.partition("=")
    if text in ("delete", "create"):
        return Goal(lambda found: (found is None) == (text == "delete"), takes_missing=True)
    if word == "condition" and rest:
        name, _, value = rest.partition("=")
        return Goal(lambda found: found is not None and _has_condition(found, name, value or "true"))
    if word == "jsonpath" and equals and rest:
        return _path_goal(rest)
    raise click.UsageError(f"--for: {text!r} is not understood; write {STATES}")


def _path_goal(text: str) -> Goal:
    read = _JSONPATH.fullmatch(text)
    if read is None:
        raise click.UsageError(
            f"--for: jsonpath={text!r} is not understood; write for example jsonpath='{{.status.phase}}'=Running"
        )
    path, value = read[1], read[2]
    check_path(path)

    def is_met(found: Document | None) -> bool:
        values: Sequence[object] = values_at(path, found or {})
        return bool(values) if value is None else any(text_of(each) == value.strip("\"'") for each in values)

    return Goal(is_met)


def _has_condition(found: Document, name: str, value: str) -> bool:
    """Tell whether an object has a condition; a gang has some by its status."""
    low = name.lower()
    if found["kind"] == "Gang" and low in STATUSES_BY_CONDITION:
        return (GangStatus(found["status"]) in STATUSES_BY_CONDITION[low]) == (value.lower() == "true")
    here = found["conditions"] if found["kind"] == "Gang" else (found.get("status") or {}).get("conditions") or ()
    return any(str(item.get("type")).lower() == low and str(item.get("status")).lower() == value.lower() for item in here)
