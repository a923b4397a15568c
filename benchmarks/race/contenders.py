"""Who races: how each is started, whose groups it reads, and what it is made from.

All of them run as accounts of their own that may do everything, without leader election, and may send as many requests as they
like: clients of Kubernetes allow themselves 50 per second by default. Everything else is as its authors deliver it.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from benchmarks.race.gangs import Dialect

from phalanx.dev.layout import GATES, RATE, SCHEDULER
from phalanx.dev.programs import PROGRAMS, files_of, path_of

CONFIGURATION = "volcano-scheduler.conf"
"""As Volcano's chart installs it."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler; `command` gets its kubeconfig and a folder for its files, and is None for the one that decides nothing."""

    name: str
    title: str
    dialect: Dialect
    scheduler: str
    """The schedulerName of its pods."""
    program: str = ""
    """The one to build, as `phalanx dev build` names it."""
    command: Callable[[Path, Path], list[str]] | None = None


def _phalanx(kubeconfig: Path, folder: Path) -> list[str]:
    return [sys.executable, "-m", "phalanx", "run", f"--kubeconfig={kubeconfig}", "--no-leader-elect"]


def _recorded(kubeconfig: Path, folder: Path) -> list[str]:
    """Record what the same scheduler hears and decides."""
    return [*_phalanx(kubeconfig, folder), f"--record={folder / 'recording'}"]


def _kube_scheduler(kubeconfig: Path, folder: Path, profile: dict[str, Any] | None = None) -> Path:
    """Write a configuration of kube-scheduler."""
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": RATE, "burst": RATE},
        **({"profiles": [profile]} if profile else {}),
    }
    path = folder / f"{kubeconfig.name}-scheduler.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path


def _plain(kubeconfig: Path, folder: Path) -> list[str]:
    return [str(path_of(SCHEDULER)), f"--config={_kube_scheduler(kubeconfig, folder)}", "--secure-port=0"]


def _native(kubeconfig: Path, folder: Path) -> list[str]:
    return [*_plain(kubeconfig, folder), f"--feature-gates={GATES}"]


def _coscheduling(kubeconfig: Path, folder: Path) -> list[str]:
    """Run it with the profile of its manifests, under a name of its own."""
    plugin = [{"name": "Coscheduling"}]
    profile = {
        "schedulerName": "coscheduling",
        "plugins": {"multiPoint": {"enabled": plugin}, "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]}},
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
    }
    configuration = _kube_scheduler(kubeconfig, folder, profile)
    return [str(path_of("coscheduling")), f"--config={configuration}", "--secure-port=0"]


def _volcano(kubeconfig: Path, folder: Path) -> list[str]:
    return [
        str(path_of("vc-scheduler")), f"--kubeconfig={kubeconfig}", f"--scheduler-conf={files_of('vc-scheduler') / CONFIGURATION}",
        f"--kube-api-qps={RATE}", f"--kube-api-burst={RATE}", "--leader-elect=false", f"--cache-dump-dir={folder}",
    ]  # fmt: skip


def _version(program: str) -> str:
    return PROGRAMS[program].version.removeprefix("v")


CONTENDERS = (
    Contender("raw", "raw binds", "native", "nobody"),
    Contender("phalanx", "phalanx", "native", "phalanx", command=_phalanx),
    Contender("plain", f"kube-scheduler {_version(SCHEDULER)}", "", "default-scheduler", SCHEDULER, _plain),
    Contender("native", f"kube-scheduler {_version(SCHEDULER)}, gangs", "native", "default-scheduler", SCHEDULER, _native),
    Contender("volcano", f"Volcano {_version('vc-scheduler')}", "volcano", "volcano", "vc-scheduler", _volcano),
    Contender(
        "coscheduling", f"Coscheduling {_version('coscheduling')}", "coscheduling", "coscheduling", "coscheduling", _coscheduling
    ),
)
EXTRA = (Contender("recorded", "phalanx, recorded", "native", "phalanx", command=_recorded),)
"""They race only where they are named."""
BY_NAME = {contender.name: contender for contender in (*CONTENDERS, *EXTRA)}
