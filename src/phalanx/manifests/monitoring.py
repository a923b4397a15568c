"""For clusters with the Prometheus operator: where figures are read, and when somebody is called."""

from dataclasses import dataclass
from typing import Any

from phalanx.manifests.dashboard import board_text
from phalanx.manifests.install_settings import NAME, SELECTED, InstallSettings
from phalanx.model.kinds import Document

BOARD_FILE = "phalanx.json"
BOARD_LABEL = "grafana_dashboard"
"""By this label the side container of Grafana finds boards."""
_API = "monitoring.coreos.com/v1"


@dataclass(frozen=True, slots=True)
class Alert:
    """When somebody is called, and what that person reads."""

    name: str
    expression: str
    minutes: int
    severity: str
    summary: str
    description: str

    def document(self) -> dict[str, Any]:
        """Return it as a rule has it."""
        return {
            "alert": self.name, "expr": self.expression, "for": f"{self.minutes}m", "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.description},
        }  # fmt: skip


_PENDING = "sum(phalanx_pending_gangs)"
_SLOW_CYCLE = "histogram_quantile(0.99, sum by (le) (rate(phalanx_cycle_duration_seconds_bucket[5m])))"
_FAILED_BINDS = 'sum(rate(phalanx_binds_total{result="failed"}[5m])) / sum(rate(phalanx_binds_total[5m]))'
_ALLOCATED = 'sum by (queue, resource) (phalanx_queue_resources{kind="allocated"})'
_DESERVED = 'sum by (queue, resource) (phalanx_queue_resources{kind="deserved"})'
_REQUESTED = 'sum by (queue, resource) (phalanx_queue_resources{kind="requested"})'

ALERTS = (
    Alert(
        "PhalanxAbsent", "absent(phalanx_build_info)", 5, "critical", "No replica of the gang scheduler can be scraped.",
        "There have been no metrics for 5 minutes. Pods that name this scheduler stay pending. Look at the pods of the deployment.",
    ),
    Alert(
        "PhalanxNoLeader", "sum(phalanx_leader) == 0", 2, "critical", "No replica decides.",
        "Replicas run and none holds the lease for 2 minutes. Look at their logs and at the lease in their namespace.",
    ),
    Alert(
        "PhalanxSeveralLeaders", "sum by (namespace, job) (phalanx_leader) > 1", 2, "critical",
        "{{ $value }} replicas decide at once.",
        "More than one replica takes itself for the leader. Look at the clocks of their nodes; restart all but one.",
    ),
    Alert(
        "PhalanxStalled", f"sum(rate(phalanx_cycle_duration_seconds_count[5m])) == 0 and {_PENDING} > 0", 10, "critical",
        "Gangs wait and no session is held.",
        "No session was held for 10 minutes although gangs wait. Look at the log of the leader.",
    ),
    Alert(
        "PhalanxSlowSessions", f"{_SLOW_CYCLE} > 5", 15, "warning",
        "One session of a hundred takes {{ $value | humanizeDuration }}.",
        "The dashboard shows which action and which plugin take the time.",
    ),
    Alert(
        "PhalanxBindsFail", f"{_FAILED_BINDS} > 0.05", 10, "warning", "{{ $value | humanizePercentage }} of binds fail.",
        "The API server refuses binds or does not answer. Gangs that could not be bound whole are rolled back and tried again.",
    ),
    Alert(
        "PhalanxSessionErrors", 'sum by (queue) (increase(phalanx_gang_schedule_attempts_total{result="error"}[15m])) > 0', 15,
        "warning", "Gangs of queue {{ $labels.queue }} cannot be understood.",
        "A gang that causes an error is quarantined, and only that gang. The log of the leader names it and says what is wrong.",
    ),
    Alert(
        "PhalanxGangsTimeOut", "increase(podgroup_scheduling_timeout_total[30m]) > 0", 30, "warning",
        "Gangs run out of the time that they have to start.", "kubectl phalanx get gangs says what each of them waits for.",
    ),
    Alert(
        "PhalanxQueueBelowShare",
        f"{_ALLOCATED} < {_DESERVED} and {_ALLOCATED} < {_REQUESTED} and on (queue) sum by (queue) (phalanx_pending_gangs) > 0",
        60, "warning", "Queue {{ $labels.queue }} has less {{ $labels.resource }} than it deserves, and gangs wait in it.",
        "For an hour the queue has had less than its share and asked for more. kubectl phalanx get gangs says why gangs wait.",
    ),
    Alert(
        "PhalanxManyEvictions", "sum(rate(phalanx_evictions_total[15m])) > 1", 15, "warning",
        "{{ $value | humanize }} pods are evicted each second.",
        "Gangs may be pushing each other out. The dashboard shows the reasons.",
    ),
    Alert(
        "PhalanxConfigRefused", "max(phalanx_config_last_reload_successful) == 0", 5, "warning",
        "The configuration was changed and is wrong.", "The last good one stays in force. The log says where the mistake is.",
    ),
)  # fmt: skip


def monitoring_documents(settings: InstallSettings) -> list[Document]:
    """Return where metrics are scraped, the alerts and the dashboard."""
    return [
        settings.document(_API, "ServiceMonitor", spec=_monitor()),
        settings.document(_API, "PrometheusRule", spec=rule_groups()),
        board_document(settings),
    ]


def _monitor() -> dict[str, Any]:
    endpoint = {"port": "http", "path": "/metrics", "interval": "15s"}
    return {"selector": {"matchLabels": SELECTED}, "endpoints": [endpoint]}


def rule_groups() -> dict[str, Any]:
    """Return the alerts."""
    return {"groups": [{"name": NAME, "rules": [alert.document() for alert in ALERTS]}]}


def board_document(settings: InstallSettings) -> Document:
    """Return the dashboard as Grafana's side container reads it."""
    meta = {
        "name": f"{NAME}-dashboard", "namespace": settings.namespace, "labels": settings.labels | {BOARD_LABEL: "1"},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {BOARD_FILE: board_text()}}
