"""The report of a shadow in words: sections with sentences and tables, the same for a terminal and for a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.cli.simulate_output import aligned
from phalanx.explain.reason_text import counted
from phalanx.model.listing import listed
from phalanx.sim.metrics import percent_text, short_time

Json = Mapping[str, Any]  # Any: as JSON has it
MOST_ROWS, MOST_NAMED = 40, 8
WORLDS = ("recorded", "ours")
NEVER, RAN, NOTHING, NOW = "never", "ran", "-", "now"
WORDS = {"nvidia.com/gpu": "GPU", "cpu": "CPU"}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report."""

    title: str
    sentences: Sequence[str] = ()
    table: Sequence[tuple[str, ...]] = ()
    """Its first row says what the columns are."""
    texts: int = 1
    """How many columns are texts; the others are numbers."""
    more: int = field(default=0)
    """Rows that are left out."""

    @property
    def rest(self) -> str:
        """Say that rows are left out; empty if none are."""
        return f"and {self.more} more; -o json has all of them" if self.more else ""


def sections(found: Json) -> list[Section]:
    """Return the report in words; parts about what did not happen are left out."""
    parts = [
        Section("", list(_headline(found))), _deadlocks(found), _half_starts(found), _room(found), _gangs(found), _totals(found),
        Section("UNCERTAINTY", [found["uncertainty"]["text"], *found["notes"]]),
    ]  # fmt: skip
    return [part for part in parts if part.sentences or len(part.table) > 1]


def text_lines(parts: Sequence[Section]) -> Iterator[str]:
    """Write the sections for a terminal."""
    for number, part in enumerate(parts):
        yield from ([""] if number else [])
        yield from ([part.title] if part.title else [])
        yield from part.sentences
        yield from aligned(part.table, texts=part.texts) if part.table else ()
        yield from ([part.rest] if part.rest else [])


def _headline(found: Json) -> Iterator[str]:
    names = ", ".join(f"{name} ({count})" for name, count in found["schedulers"].items()) or "no scheduler of gangs"
    span = f"{found['from']} to {found['to']} ({short_time(found['seconds'])})"
    yield f"watched {span}: {counted(len(found['gangs']), 'gang')} of {names}"
    if not found["gangs"]:
        yield "no gang was seen, so there is nothing to compare"
        return
    late, same = found["later"], found["same"]
    yield (
        f"under {found['profile']}, {counted(found['earlier'], 'gang')} would have started earlier, {late} later and {same} at the "
        "same time"
    )
    halves, deadlocks, room = (len(found[name]) for name in ("halfStarted", "deadlocks", "waitedWithRoom"))
    waits = f"{counted(room, 'gang')} waiting although there was room"
    yield f"seen: {counted(halves, 'half-started gang')}, {counted(deadlocks, 'deadlock')}, {waits}"


def _deadlocks(found: Json) -> Section:
    def sentence(item: Json) -> str:
        end = f"until {item['until']}" if item["until"] else "and still there at the end"
        return (
            f"since {item['since']}, for {short_time(item['seconds'])}, {end}: {listed(item['gangs'], MOST_NAMED)} each hold "
            "a part of what the others need; none can start before another lets go"
        )

    return Section("DEADLOCKS", [sentence(item) for item in found["deadlocks"]])


def _half_starts(found: Json) -> Section:
    word = _resource(found)
    rows = [
        (
            item["gang"], f"{item['placed']}/{item['minimum']}", item["since"], item["until"] or NOW, short_time(item["seconds"]),
            f"{item['heldHours']:.4g}",
        )
        for item in found["halfStarted"]
    ]  # fmt: skip
    return _table("HALF-STARTED", ("GANG", "PLACED", "SINCE", "UNTIL", "FOR", f"{word} HOURS IN VAIN"), rows, texts=4)


def _room(found: Json) -> Section:
    rows = [
        (item["gang"], item["since"], "yes" if item["stillWaits"] else "no", short_time(item["seconds"]))
        for item in found["waitedWithRoom"]
    ]
    return _table("WAITED ALTHOUGH THERE WAS ROOM", ("GANG", "SINCE", "STILL WAITS", "FOR"), rows, texts=3)


def _gangs(found: Json) -> Section:
    rows = [_gang_row(gang) for gang in found["gangs"]]
    header = ("GANG", "QUEUE", "VERDICT", "WAIT", "OUR WAIT", "DIFFERENCE", "EVICTED", "OURS")
    return _table("GANGS", header, rows, texts=3)


def _gang_row(gang: Json) -> tuple[str, ...]:
    both = (gang["recorded"], gang["ours"])
    waits = [RAN] * 2 if gang["ranBefore"] else [short_time(item["wait"]) if item["started"] else NEVER for item in both]
    return (
        gang["name"], gang["queue"], gang["verdict"] or NOTHING, *waits, _signed(gang), *(str(item["evicted"]) for item in both),
    )  # fmt: skip


def _signed(gang: Json) -> str:
    difference = gang["difference"]
    if gang["ranBefore"] or not round(difference, 1):
        return NOTHING
    return f"{'+' if difference > 0 else '-'}{short_time(abs(difference))}"


def _totals(found: Json) -> Section:
    if not found["gangs"]:
        return Section("TOTALS")
    both, use = ([found[part][name] for name in WORLDS] for part in ("totals", "use"))
    waits = {"mean wait": "meanWait", "p90 wait": "p90Wait", "longest wait": "longestWait"}
    counts = {"gangs started": "started", "never started": "neverStarted", "finished": "finished", "pods evicted": "evictions"}
    parts = {f"{_resource(found)}s held": "held", f"{_resource(found)}s at work": "byWholeGangs"}
    rows = [
        *((label, *(short_time(item[name]) for item in both)) for label, name in waits.items()),
        *_ends(found["timeToEnd"]),
        *((label, *(str(item[name]) for item in both)) for label, name in counts.items()),
        *((label, *(NOTHING if item[name] is None else percent_text(item[name]) for item in use)) for label, name in parts.items()),
    ]
    return _table("TOTALS", ("", "RECORDED", "OURS"), rows)


def _ends(found: Json) -> Iterator[tuple[str, ...]]:
    if found["gangs"]:
        yield f"mean time to the end of {counted(found['gangs'], 'gang')}", *(short_time(found[name]) for name in WORLDS)


def _table(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, texts: int = 1) -> Section:
    return Section(title, table=[header, *rows[:MOST_ROWS]], texts=texts, more=max(len(rows) - MOST_ROWS, 0))


def _resource(found: Json) -> str:
    resource: str = found["use"]["resource"]
    return WORDS.get(resource, resource)
