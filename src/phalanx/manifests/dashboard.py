"""The Grafana board: what waits and why, what queues have, what sessions and writes cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

WIDTH, PANEL_HEIGHT, ROW_HEIGHT = 24, 8, 1
PER_ROW = 3
SCHEMA = 39
"""The form of boards since Grafana 10."""
SOURCE = {"type": "prometheus", "uid": "${source}"}
QUEUES = 'queue=~"$queue"'


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel, and what its curves are called."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture."""

    title: str
    about: str
    queries: tuple[Query, ...]
    unit: str = "short"
    is_stacked: bool = False


def _quantiles(metric: str, by: str = "") -> tuple[Query, ...]:
    """Return the median and the slow end of a histogram, for all or by a label."""
    labels, legend = (f"le, {by}", f"{{{{{by}}}}} ") if by else ("le", "")
    return tuple(
        Query(f"histogram_quantile({part}, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))", f"{legend}{word}")
        for part, word in ((0.5, "median"), (0.99, "1 of 100"))
    )


def _rate(metric: str, by: str) -> tuple[Query, ...]:
    return (Query(f"sum by ({by}) (rate({metric}[$__rate_interval]))", f"{{{{{by}}}}}"),)


def _queue_queries(kind: str) -> tuple[Query, ...]:
    share = f'sum by (queue) (phalanx_queue_resources{{resource="$resource", kind="{kind}", {QUEUES}}})'
    return (Query(share, "{{queue}}"),)


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    ("Gangs", (
        Panel("Gangs that wait, by reason", "Gangs without their minimum.",
              (Query(f"sum by (reason) (phalanx_pending_gangs{{{QUEUES}}})", "{{reason}}"),), is_stacked=True),
        Panel("Gangs that wait, by queue", "Gangs without their minimum.",
              (Query(f"sum by (queue) (phalanx_pending_gangs{{{QUEUES}}})", "{{queue}}"),), is_stacked=True),
        Panel("From creation to start", "Until the last bind that a gang needs.",
              _quantiles("phalanx_gang_scheduling_duration_seconds"), "s"),
        Panel("Attempts", "Gangs that sessions tried to place, each second.",
              (Query(f"sum by (result) (rate(phalanx_gang_schedule_attempts_total{{{QUEUES}}}[$__rate_interval]))",
                     "{{result}}"),)),
        Panel("Pods that wait", "Pods of gangs that have no place.", (Query("sum(podgroup_waiting_pods)", "pods"),)),
        Panel("Gangs out of time", "Gangs that were not whole in the time that they have, each hour.",
              (Query("sum(increase(podgroup_scheduling_timeout_total[1h]))", "gangs"),)),
    )),
    ("Queues: $resource", (
        Panel("Allocated", "What queues have.", _queue_queries("allocated"), is_stacked=True),
        Panel("Deserved", "What queues should have.", _queue_queries("deserved"), is_stacked=True),
        Panel("Requested", "What queues ask for.", _queue_queries("requested"), is_stacked=True),
    )),
    ("Binds and evictions", (
        Panel("Pods bound", "Each second.", (Query("sum(rate(phalanx_pods_scheduled_total[$__rate_interval]))", "pods"),)),
        Panel("Binds, by result", "Each second.", _rate("phalanx_binds_total", "result")),
        Panel("Answer to a bind", "Seconds until the API server answered.", _quantiles("phalanx_bind_duration_seconds"), "s"),
        Panel("Evictions, by reason", "Each second.", _rate("phalanx_evictions_total", "reason")),
        Panel("Victims for a gang", "Pods that go for one gang in one session.", _quantiles("phalanx_preemption_victims")),
        Panel("Changes heard", "From the API server, each second.", _rate("phalanx_watch_events_total", "kind")),
    )),
    ("Sessions", (
        Panel("Length", "Seconds of a session, snapshot included.", _quantiles("phalanx_cycle_duration_seconds"), "s"),
        Panel("Actions", "Seconds of an action in a session.", _quantiles("phalanx_action_duration_seconds", "action"), "s"),
        Panel("Plugins", "Seconds that the hooks of a plugin take, on average each second.",
              (Query("topk(10, sum by (plugin, hook) (rate(phalanx_plugin_duration_seconds_sum[$__rate_interval])))",
                     "{{plugin}} {{hook}}"),), "s"),
        Panel("Snapshot", "Seconds it takes to make one.", _quantiles("phalanx_snapshot_duration_seconds"), "s"),
        Panel("Leader", "1 for the replica that decides.", (Query("phalanx_leader", "{{pod}}"),)),
        Panel("Versions", "Replicas by version.", (Query("count by (version) (phalanx_build_info)", "{{version}}"),)),
    )),
)  # fmt: skip


def board_text() -> str:
    """Return the board as Grafana imports it; the same version gives the same bytes."""
    return f"{msgspec.json.format(msgspec.json.encode(board()), indent=2).decode()}\n"


def board() -> dict[str, Any]:
    """Return the board."""
    return {
        "title": "Phalanx",
        "uid": "phalanx",
        "tags": ["phalanx", "scheduling"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": _variables()},
        "panels": [{"id": number, **panel} for number, panel in enumerate(_panels(), start=1)],
    }


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"},
        _variable("queue", "Queue", "label_values(phalanx_queue_resources, queue)") | {"multi": True, "includeAll": True},
        _variable("resource", "Resource", "label_values(phalanx_queue_resources, resource)"),
    ]


def _variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name, "label": label, "type": "query", "datasource": SOURCE, "query": {"query": query, "refId": name},
        "refresh": 2, "sort": 1,
    }  # fmt: skip


def _panels() -> Iterator[dict[str, Any]]:
    """Yield the panels of all rows, each with its place on the board."""
    y, width = 0, WIDTH // PER_ROW
    for title, panels in ROWS:
        yield {"type": "row", "title": title, "collapsed": False, "gridPos": _place(0, y, WIDTH, ROW_HEIGHT), "panels": []}
        y += ROW_HEIGHT
        for index, panel in enumerate(panels):
            row, column = divmod(index, PER_ROW)
            yield {**_picture(panel), "gridPos": _place(column * width, y + row * PANEL_HEIGHT, width, PANEL_HEIGHT)}
        y += -(-len(panels) // PER_ROW) * PANEL_HEIGHT


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _picture(panel: Panel) -> dict[str, Any]:
    custom = {"fillOpacity": 20, "stacking": {"mode": "normal"}} if panel.is_stacked else {}
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "targets": [
            {"refId": letter, "datasource": SOURCE, "expr": line.expression, "legendFormat": line.legend}
            for letter, line in zip("ABCD", panel.queries, strict=False)
        ],
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    }
