"""The tables of the report page, as HTML; every text of the data is escaped in one place, `_cell`."""

from collections.abc import Iterable, Sequence
from html import escape

from phalanx.sim.comparison import ComparedMetric, Comparison
from phalanx.sim.metrics import SECONDS_PER_HOUR, Metric, metrics_of_one
from phalanx.sim.report_data import curve_mean, node_means
from phalanx.sim.report_text import NOTHING, Result, duration, number, percent, resource_noun, resource_word
from phalanx.sim.scale_text import scale_event
from phalanx.sim.size_classes import size_words

SHOWN_EVICTIONS = 200
SHOWN_NODES = 200
SHOWN_SCALE_EVENTS = 200


def comparison(found: Comparison | None) -> str:
    """Return the figures of several results side by side, the best marked; nothing for a single one."""
    if found is None:
        return ""
    head = _row(["Metric", *found.profiles], "th", 'scope="col"')
    notes = "".join(f"<p class='note'>{escape(note.replace('*', '★', 1))}</p>" for note in found.notes)
    return (
        f'<section aria-labelledby="comparison"><h2 id="comparison">Comparison</h2>'
        f"{_scrolled('Comparison of results', head, map(_compared, found.lines), 'scroll')}{notes}</section>"
    )


def _compared(line: ComparedMetric) -> str:
    cells = (_figure_cell(value.text, value.is_best) for value in line.values)
    return f'<tr><th scope="row">{escape(line.metric.label)}</th>{"".join(cells)}</tr>'


def _title(metric: Metric) -> str:
    return metric.label[0].upper() + metric.label[1:]


def _figure_cell(text: str, is_best: bool) -> str:
    if not is_best:
        return _cell(text)
    return f'<td class="best">{escape(text)} <span aria-hidden="true">★</span><span class="unseen">best</span></td>'


def figures(result: Result) -> str:
    """Return the metrics of one result as a list of terms."""
    shown = (metric for metric in metrics_of_one(result) if metric.path[0] != "waitBySize")  # the table of waits has those
    written = ((_title(metric), metric.text(result)) for metric in shown)
    return "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(text)}</dd></div>" for label, text in written)


def waits(result: Result) -> str:
    """Return how long gangs waited: all, by queue, and by size."""
    metrics = result["metrics"]
    groups = [("All", metrics["wait"])]
    groups += [(f"Queue {name}", stats) for name, stats in metrics["waitByQueue"].items()]
    groups += [(f"Of {size_words(name)}", stats) for name, stats in metrics["waitBySize"].items()]
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


def autoscaler(result: Result) -> str:
    """Return what each pool was asked for, and when nodes came and went; nothing where there is no autoscaler."""
    found = result.get("autoscaler")
    if found is None:
        return ""
    what = resource_noun(result)
    heads = ["Pool", "Scale-ups", "Requested", "Delivered", "Failed", "Given back", "Node hours", f"{what} hours"]
    pools = ([name, *_pool_cells(figures)] for name, figures in found["pools"].items())
    events = ([duration(item["time"]), scale_event(item)] for item in found["events"][:SHOWN_SCALE_EVENTS])
    left_off = _left_off(len(found["events"]), SHOWN_SCALE_EVENTS)
    return (
        f"<h3>Autoscaler</h3>{_table('Pools', heads, pools)}{_table('Scaling', ['After', 'What happened'], events)}{left_off}\n\n"
    )


def _pool_cells(figures: dict[str, float]) -> list[str]:
    counts = [number(figures[name]) for name in ("scaleUps", "nodesRequested", "nodesDelivered", "nodesFailed", "nodesGivenBack")]
    return [*counts, *(number(figures[name] / SECONDS_PER_HOUR) for name in ("nodeSeconds", "amountSeconds"))]


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
