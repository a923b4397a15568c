"""The tables of the report page, as HTML; every text of the data is escaped in one place, `_cell`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from phalanx.sim.report_data import curve_mean, node_means
from phalanx.sim.report_text import NOTHING, Result, duration, number, percent, resource_word, titles, work

SHOWN_EVICTIONS = 200
SHOWN_NODES = 200


@dataclass(frozen=True, slots=True)
class Figure:
    """One number about a result."""

    label: str
    path: str
    """Its path in the metrics."""
    write: Callable[[Result, float | None], str]
    better: Literal["more", "less"] | None = None
    of_most: str = ""
    """Only results that are highest in this number are compared: where fewer gangs start, the end may cut waits short."""

    def value(self, result: Result) -> float | None:
        """Return the number; None where there is none."""
        return _look_up(result, self.path)


def _look_up(result: Result, path: str) -> float | None:
    if path == "deadlocks":
        return len(result["deadlocks"])
    found = result["metrics"]
    if path.startswith("wait.") and not found["wait"]["count"]:
        return None
    for name in path.split("."):
        found = found.get(name) if found else None
    return None if found is None else float(found)


def _as_number(_: Result, value: float | None) -> str:
    return number(value)


def _as_percent(_: Result, value: float | None) -> str:
    return percent(value)


def _as_duration(_: Result, value: float | None) -> str:
    return duration(value)


FIGURES = (
    Figure("Gangs submitted", "gangs", _as_number),
    Figure("Started", "started", _as_number, "more"),
    Figure("Finished", "finished", _as_number, "more"),
    Figure("Waiting at the end", "waiting", _as_number, "less"),
    Figure("Deadlocks", "deadlocks", _as_number, "less"),
    Figure("Allocation", "allocation", _as_percent, "more"),
    Figure("Occupancy", "occupancy", _as_percent, "more"),
    Figure("Fragmentation", "fragmentation", _as_percent, "less"),
    Figure("Mean wait", "wait.mean", _as_duration, "less", "started"),
    Figure("Median wait", "wait.p50", _as_duration, "less", "started"),
    Figure("90 % wait at most", "wait.p90", _as_duration, "less", "started"),
    Figure("99 % wait at most", "wait.p99", _as_duration, "less", "started"),
    Figure("Longest wait", "wait.max", _as_duration, "less", "started"),
    Figure("Pods evicted", "evictions", _as_number, "less"),
    Figure("Gangs hit by evictions", "evictedGangs", _as_number, "less"),
    Figure("Work lost", "lostWork", work, "less"),
    Figure("Makespan", "makespan", _as_duration, "less", "finished"),
    Figure("Sessions", "sessions", _as_number),
)


def best_results(figure: Figure, results: Sequence[Result]) -> set[int]:
    """Return which results are best in a figure; none where all are equal or nothing is better."""
    values = {index: value for index, result in enumerate(results) if (value := figure.value(result)) is not None}
    if figure.better is None or len(set(values.values())) < 2:
        return set()
    if figure.of_most:
        most = max(_look_up(result, figure.of_most) or 0 for result in results)
        values = {index: value for index, value in values.items() if _look_up(results[index], figure.of_most) == most}
        if len(values) < 2:
            return set()
    pick = max if figure.better == "more" else min
    return {index for index, value in values.items() if value == pick(values.values())}


def comparison(results: Sequence[Result]) -> str:
    """Return the figures of several results side by side, the best marked; nothing for a single one."""
    if len(results) < 2:
        return ""
    rows = (_compared(figure, results) for figure in FIGURES)
    head = _row(["Figure", *titles(results)], "th", 'scope="col"')
    note = (
        "★ marks the best. Waits are compared only between results that started the most gangs,"
        " makespans between those that finished the most."
    )
    return (
        f'<section aria-labelledby="comparison"><h2 id="comparison">Comparison</h2>'
        f"{_scrolled('Comparison of results', head, rows, 'scroll')}<p class='note'>{note}</p></section>"
    )


def _compared(figure: Figure, results: Sequence[Result]) -> str:
    best = best_results(figure, results)
    cells = (_figure_cell(figure.write(result, figure.value(result)), index in best) for index, result in enumerate(results))
    return f'<tr><th scope="row">{escape(figure.label)}</th>{"".join(cells)}</tr>'


def _figure_cell(text: str, is_best: bool) -> str:
    if not is_best:
        return _cell(text)
    return f'<td class="best">{escape(text)} <span aria-hidden="true">★</span><span class="unseen">best</span></td>'


def figures(result: Result) -> str:
    """Return the figures of one result as a list of terms."""
    written = ((figure.label, figure.write(result, figure.value(result))) for figure in FIGURES)
    return "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(text)}</dd></div>" for label, text in written)


def waits(result: Result) -> str:
    """Return how long gangs waited: all, by queue, and by size."""
    metrics = result["metrics"]
    groups = [("All", metrics["wait"])]
    groups += [(f"Queue {name}", stats) for name, stats in metrics["waitByQueue"].items()]
    groups += [(f"Size {name}", stats) for name, stats in metrics["waitBySize"].items()]
    rows = (
        [name, number(stats["count"]), *(duration(stats[key] if stats["count"] else None) for key in _STATISTICS)]
        for name, stats in groups
    )
    return _table("Waits of gangs", ["Which", "Gangs", "Mean", "Median", "90 %", "99 %", "Longest"], rows)


_STATISTICS = ("mean", "p50", "p90", "p99", "max")


def evictions(result: Result) -> str:
    """Return the first evictions with their reasons."""
    found = result["evictions"]
    if not found:
        return "<p>Nothing was evicted.</p>"
    rows = (
        [duration(item["time"]), item["pod"], item["gang"] or NOTHING, item["action"], item["for"] or NOTHING, item["message"]]
        for item in found[:SHOWN_EVICTIONS]
    )
    return _table("Evictions", ["After", "Pod", "Of gang", "Action", "For", "Why"], rows) + _left_off(len(found), SHOWN_EVICTIONS)


def nodes(result: Result) -> str:
    """Return how much of each node was held."""
    means = node_means(result)
    rows = ([name, percent(mean), percent(most)] for name, mean, most in means[:SHOWN_NODES])
    return _table("Nodes", ["Node", "Held on average", "Held at most"], rows) + _left_off(len(means), SHOWN_NODES)


def queues(result: Result) -> str:
    """Return what each queue held and deserved."""
    what = resource_word(result)
    rows = (
        [
            name,
            *(number(curve_mean(curve, key, result["seconds"])) for key in ("held", "deserved")),
            number(max(curve["held"], default=None)),
        ]
        for name, curve in result["queues"].items()
    )
    return _table("Queues", ["Queue", f"{what} held on average", "Deserved on average", "Held at most"], rows)


def _left_off(count: int, shown: int) -> str:
    return f'<p class="note">The first {shown} of {number(count)} are shown.</p>' if count > shown else ""


def _table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return _scrolled(caption, _row(columns, "th", 'scope="col"'), (_row(row) for row in rows))


def _scrolled(caption: str, head: str, rows: Iterable[str], style: str = "scroll long") -> str:
    label = escape(caption)
    body = "".join(rows)
    return (
        f'<div class="{style}" tabindex="0" role="region" aria-label="{label}"><table><caption class="unseen">{label}</caption>'
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div>"
    )


def _row(texts: Iterable[object], tag: str = "td", attributes: str = "") -> str:
    return f"<tr>{''.join(_cell(text, tag, attributes) for text in texts)}</tr>"


def _cell(text: object, tag: str = "td", attributes: str = "") -> str:
    return f"<{tag}{' ' if attributes else ''}{attributes}>{escape(str(text))}</{tag}>"
