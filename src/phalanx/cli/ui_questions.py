"""Questions of the page that need simulations: when a gang starts, and what a shadow would have made of a recording."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from phalanx.cli import output
from phalanx.cli.eta_output import Answer, as_data, sentence
from phalanx.cli.eta_simulations import EtaSettings, SimulationPlan, eta_cluster, simulated
from phalanx.cli.session_input import SessionInput
from phalanx.dev.worker_process import end_with_parent
from phalanx.errors import SnapshotError
from phalanx.live.catalogue import connected
from phalanx.sim.eta import estimates
from phalanx.store.input_files import Intake
from phalanx.ui.questions.desk import Desk, Question
from phalanx.ui.showing import ShowingSetup

SETUP = ShowingSetup(connected, end_with_parent, output.note)
HORIZON_SECONDS = 7 * 86_400.0
ETA_SECONDS = 12.0
"""So long is simulated at most for one answer."""
SEEDS = 10
Json = dict[str, Any]  # Any: as JSON has it


@dataclass(frozen=True, slots=True)
class Eta:
    """When does a gang start?"""

    gang: str

    def answer(self, desk: Desk) -> Json:
        """Return what `phalanx eta` says."""
        end, trial = time.monotonic() + ETA_SECONDS, desk.cluster
        intake = Intake(trial.objects)
        given = SessionInput(
            intake, desk.rules.policy, desk.rules.schedulers, trial.now, [dict(item) for item in trial.everything()]
        )
        cluster = eta_cluster(given, EtaSettings(HORIZON_SECONDS))
        row = next((row for row in cluster.rows if row.gang == self.gang), None)
        if row is None:
            raise SnapshotError(f"there is no gang {self.gang}")
        whole = cluster.input.question
        question = replace(whole, gangs=tuple(key for key in whole.gangs if key == row.gang))
        found = simulated(replace(cluster.input, question=question), SimulationPlan.of(SEEDS), end, divides=False)
        estimated = estimates(question, found.runs, found.hopeful)
        answer = Answer(question, cluster.rows, estimated, found.runs, SEEDS, row, cluster.arrivals)
        return {**as_data(answer), "text": sentence(answer)}


def cluster_questions() -> Mapping[str, Callable[..., Question]]:
    """Return what can be asked about a cluster."""
    return {"eta": Eta}


@dataclass(frozen=True, slots=True)
class Worlds:
    """A recording, and our rules: those that were recorded if no others are named."""

    folder: str
    config: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class BothWorlds:
    """What would have become of the recorded work under our rules?"""

    worlds: Worlds
    gang: str = ""

    def answer(self, desk: Desk) -> Json:
        """Return the report of a shadow."""
        from phalanx.cli.shadow import ShadowOptions
        from phalanx.cli.shadow_report import report

        asked = self.worlds
        found = report(ShadowOptions(
            folder=asked.folder, config=asked.config, profile=asked.profile, recorded_profile=None, assumed=None, html=None,
            form="json",
        ))  # fmt: skip
        if found is None:
            raise SnapshotError(f"{asked.folder}: there is nothing to compare")
        return found


def recording_questions(worlds: Worlds) -> Mapping[str, Callable[..., Question]]:
    """Return what can be asked about a recording."""
    return {"eta": Eta, "worlds": partial(BothWorlds, worlds)}
