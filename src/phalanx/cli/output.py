"""Results for people and programs: tables, JSON, YAML. Notes and the trace of a session go to stderr."""

import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from phalanx.cli.streams import own, visible
from phalanx.explain.gang_rows import GangRow, all_rows
from phalanx.explain.gang_status import GangStatus
from phalanx.explain.reason_text import as_counted, counted
from phalanx.model.listing import listed
from phalanx.model.task import Task
from phalanx.session.decision import Decisions, Eviction
from phalanx.session.shard_decisions import ShardDecisions, together
from phalanx.state.snapshot import Snapshot

if TYPE_CHECKING:
    from phalanx.store.left_out import LeftOut

GAP = "  "
NARROWEST = 30
"""The last column is wrapped on a terminal if this many characters are left for it."""
MOST_NODES = 12
"""A line names this many nodes; more are counted."""
MOST_LEFT_OUT = 2
MOST_PODS = 4
"""A line names this many pods that go; more are counted."""

Signs = tuple[str, str, str]
"""For what is well, for what is not, and for what nobody came to."""
SIGNS, PLAIN_SIGNS = ("✓", "✗", "·"), ("+", "x", "-")

COLOURS = {
    GangStatus.STARTS: "green", GangStatus.GROWS: "green", GangStatus.PIPELINED: "cyan", GangStatus.WAITS: "yellow",
    GangStatus.EVICTED: "red",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Terminal:
    """What stdout can show: its width if it is a terminal, whether colours, and the sign for "times"."""

    width: int | None = None
    has_colour: bool = False
    times: str = "×"
    signs: Signs = SIGNS

    @classmethod
    def of_stdout(cls) -> "Terminal":
        """Look at stdout; a pipe has no width and no colours."""
        is_terminal = sys.stdout.isatty()
        has_colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        width = shutil.get_terminal_size().columns if is_terminal else None
        return cls(width, has_colour, _times(sys.stdout.encoding), _signs(sys.stdout.encoding))


def _times(encoding: str | None) -> str:
    return "×" if _can_show(encoding, "×") else "x"


def _signs(encoding: str | None) -> Signs:
    return SIGNS if _can_show(encoding, "".join(SIGNS)) else PLAIN_SIGNS


def _can_show(encoding: str | None, text: str) -> bool:
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_lines(lines: Iterable[str]) -> None:
    """Write a result; what came from outside begins no line of its own."""
    click.echo("\n".join(map(visible, lines)))


def say(text: str) -> None:
    """Write a result of one line."""
    write_lines([text])


def complain(text: str) -> None:
    """Write one line to stderr."""
    click.echo(visible(text), err=True)


def note(text: str) -> None:
    """Say something beside the result."""
    complain(f"note: {text}")


def warning(text: str) -> None:
    """Say that something is most likely not what was meant."""
    complain(f"warning: {text}")


def write_data(answer: Mapping[str, Any], form: str) -> None:
    """Write an answer as JSON or YAML."""
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
        return
    from phalanx.cli.yaml_text import yaml_text

    click.echo(yaml_text(answer), nl=False)


def write_trace(decisions: Decisions) -> None:
    """Write the recorded trace of the session to stderr, a line for each step with its level."""
    for step in decisions.trace:
        complain(f"[{step.level}] {step.text}")


def write_tables(
    parts: Sequence[ShardDecisions],
    screen: Terminal,
    gated: "GatedRows | None" = None,
    rows: Sequence[GangRow] | None = None,
    left_out: "Sequence[LeftOut]" = (),
) -> None:
    """Write gangs, placements, nominations and evictions; sections that would be empty are left out."""
    write_lines(lines_of(parts, screen, gated, rows, left_out))


def _without_gangs(parts: Sequence[ShardDecisions], left_out: "Sequence[LeftOut]") -> str:
    """Count what the input has although there is no gang: bound pods, and those that the session did not look at."""
    nodes = counted(sum(len(part.snapshot.nodes) for part in parts), "node")
    bound = sum(len(held) for part in parts for held in part.snapshot.on_node.values())
    others = sum(item.object.startswith("Pod ") for item in left_out)
    if not others:
        return f"No gangs: the input has {nodes} with {counted(bound, 'pod')}, and no PodGroup."
    first = f"{nodes} with {counted(bound, 'pod')}" if bound else nodes
    verb = "is" if others == 1 else "are"
    return f"No gangs: the input has {first}, {counted(others, 'pod')} that {verb} left out, and no PodGroup."


def write_refused(refused: Sequence[tuple[str, str]]) -> None:
    """Write what could not be understood, each object with its place and the reason."""
    if refused:
        write_lines(["", "REFUSED", *(text for _, text in refused)])


def write_left_out(found: Sequence["LeftOut"]) -> None:
    """Write what the session did not look at: how many objects of a kind for each reason, and the first of them."""
    if found:
        rows = [(group.counted, listed(group.names, MOST_LEFT_OUT), group.message) for group in left_out_groups(found)]
        write_lines(["", "LEFT OUT", *columns(rows)])


class LeftOutGroup(NamedTuple):
    """Objects of one kind that are left out for one reason."""

    counted: str
    """As "2 Pods"."""
    names: Sequence[str]
    message: str


def left_out_groups(found: Sequence["LeftOut"]) -> list[LeftOutGroup]:
    """Put together the objects of a kind that are left out for the same reason, in the order of the first of them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for item in found:
        kind, _, name = item.object.partition(" ")
        groups.setdefault((kind, item.message), []).append(name)
    return [LeftOutGroup(counted(len(names), kind), names, message) for (kind, message), names in groups.items()]


@dataclass(frozen=True, slots=True)
class GatedRows:
    """The gangs that our gate holds back, and the nodes that a session behind it plans for their pods."""

    rows: Sequence[GangRow]
    snapshot: Snapshot
    node_by_pod: Mapping[Any, str]


def lines_of(
    parts: Sequence[ShardDecisions],
    screen: Terminal,
    gated: GatedRows | None = None,
    rows: Sequence[GangRow] | None = None,
    left_out: "Sequence[LeftOut]" = (),
) -> Iterator[str]:
    """Return what `write_tables` writes; `rows` are all gangs by default."""
    rows = all_rows(parts) if rows is None else rows
    snapshot, decisions = parts[0].snapshot, together(parts)
    if not rows:
        yield _without_gangs(parts, left_out)
        return
    yield from _gang_lines(rows, screen)
    for title, places in (("PLACEMENTS", decisions.binds), ("PIPELINED", decisions.pipelined)):
        if places:
            yield from ("", title, *columns(_places(snapshot, places, screen)))
    if gated is not None and gated.node_by_pod:
        yield from ("", "PLANS", *columns(_places(gated.snapshot, gated.node_by_pod, screen)))
    if decisions.evictions:
        yield from ("", "EVICTIONS", *_eviction_lines(decisions.evictions.values(), screen))
    yield from ("", _summary(rows, decisions))


def _gang_lines(rows: Sequence[GangRow], screen: Terminal) -> Iterator[str]:
    header = ("GANG", "QUEUE", "STATUS", "MIN", "PLACED", "RUNNING", "WHY")
    figures = [(*map(str, (row.minimum, row.placed, row.running)), visible(row.why)) for row in rows]
    cells = [(visible(row.gang), visible(row.queue), row.status.value, *rest) for row, rest in zip(rows, figures, strict=True)]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)][:-1]
    for number, line in enumerate([header, *cells]):
        start = GAP.join(_pad(line[place], width, is_number=3 <= place <= 5) for place, width in enumerate(widths))
        if screen.has_colour and number:
            start = _coloured(start, rows[number - 1].status)
        yield from with_sentence(start, sum(widths) + len(GAP) * len(widths), line[-1], screen)


def _pad(cell: str, width: int, *, is_number: bool) -> str:
    return cell.rjust(width) if is_number else cell.ljust(width)


def _coloured(line: str, status: GangStatus) -> str:
    cell, colour = f"{GAP}{status.value} ", COLOURS.get(status)
    return line.replace(cell, f"{GAP}{own(click.style(status.value, fg=colour))} ", 1) if colour else line


def with_sentence(start: str, offset: int, sentence: str, screen: Terminal) -> Iterator[str]:
    """Put a sentence behind the columns; on a terminal it is wrapped there, or below them where they leave no room."""
    sentence = visible(sentence)
    if not sentence:
        yield start.rstrip()
    elif screen.width is None or offset + len(sentence) <= screen.width:
        yield f"{start}{GAP}{sentence}"
    elif screen.width - offset >= NARROWEST:
        first, *more = textwrap.wrap(sentence, screen.width - offset, break_long_words=False)
        yield f"{start}{GAP}{first}"
        yield from (" " * offset + part for part in more)
    else:
        yield start.rstrip()
        yield from textwrap.wrap(sentence, max(screen.width, NARROWEST), initial_indent="    ", subsequent_indent="    ")


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Align all columns but the last."""
    lines = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield GAP.join([cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=False)] + [line[-1]]).rstrip()


def _places(snapshot: Snapshot, node_by_task: Mapping[Any, str], screen: Terminal) -> Iterator[tuple[str, str]]:
    """Return each gang with its nodes and how many tasks each takes."""
    gang_by_task = {task: gang for gang, members in snapshot.members.items() for task in members}
    counts: dict[str, Counter[str]] = {}
    for task, node in node_by_task.items():
        counts.setdefault(gang_by_task.get(task, task), Counter())[node] += 1
    for gang, nodes in sorted(counts.items()):
        parts = [f"{node} {screen.times}{nodes[node]}" for node in sorted(nodes, key=as_counted)]
        more = len(parts) - MOST_NODES
        yield gang, ", ".join(parts[:MOST_NODES]) + (f" and {counted(more, 'more node')} (-o json names all)" if more > 0 else "")


def _eviction_lines(evictions: Iterable[Eviction], screen: Terminal) -> Iterator[str]:
    rows = [[visible(cell) for cell in row] for row in _evictions(evictions)]
    widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
    for *cells, message in rows:
        start = GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield from with_sentence(start, sum(widths) + 2 * len(GAP), message, screen)


def _evictions(evictions: Iterable[Eviction]) -> Iterator[tuple[str, str, str]]:
    """Return the pods of a gang that go for the same reason in one row."""
    groups: dict[tuple[str, str, str], list[Task]] = {}
    for item in sorted(evictions, key=lambda item: as_counted(item.task.key)):
        by = f"by {item.action} for {item.preemptor}" if item.preemptor else f"by {item.action}"
        groups.setdefault((str(item.task.gang or item.task.key), by, item.message), []).append(item.task)
    for (_, by, message), (first, *others) in groups.items():
        names = ", ".join([first.key, *(task.name for task in others[: MOST_PODS - 1])])
        more = len(others) - MOST_PODS + 1
        yield names + (f" and {more} more (-o json names all)" if more > 0 else ""), by, message


def _summary(rows: Sequence[GangRow], decisions: Decisions) -> str:
    counts = Counter(row.status for row in rows)
    texts = ", ".join(f"{counts[standing]} {_verb(standing, counts[standing])}" for standing in GangStatus if counts[standing])
    parts = [f"{counted(len(rows), 'gang')}: {texts}"]
    if decisions.binds:
        parts.append(f"{counted(len(decisions.binds), 'pod')} placed on {counted(len(set(decisions.binds.values())), 'node')}")
    if decisions.evictions:
        parts.append(f"{counted(len(decisions.evictions), 'pod')} evicted")
    return "; ".join(parts)


def _verb(status: GangStatus, count: int) -> str:
    """Return ``waits`` for one and ``wait`` for several; what is no verb stays."""
    verb = status.value.lower()
    return verb.removesuffix("s") if count > 1 else verb
