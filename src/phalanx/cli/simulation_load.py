"""What is simulated, read from what was typed: manifests, a scenario, generated or recorded work; for any seed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from phalanx.cli import output
from phalanx.cli.embedded_objects import served_objects
from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.documents import parse_text
from phalanx.errors import ConfigError
from phalanx.model.kinds import Document
from phalanx.sim.named_workloads import NamedWork, read_workload
from phalanx.sim.scenario import Scenario, find_scenarios
from phalanx.sim.setup import Cast, cast
from phalanx.sim.varied_objects import varied_objects
from phalanx.sim.workload import Workload
from phalanx.store.input_files import STDIN, files_of, read_bytes

VOLCANO = "scheduling.volcano.sh/"
Weights = Mapping[str, int]
"""Of queues."""


class LoadOptions(Protocol):
    """What is typed to name a load."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Manifests."""

    @property
    def scenario(self) -> str | None:
        """The file of the scenario."""

    @property
    def workload(self) -> str | None:
        """Generated work or a trace."""

    @property
    def until(self) -> str | None:
        """How long to simulate."""

    @property
    def seconds(self) -> float | None:
        """The same in seconds."""

    @property
    def seed(self) -> int | None:
        """The seed of what is random."""

    @property
    def jitter(self) -> float:
        """How much manifests vary with the seed."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of schedulers."""


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """What is simulated, the same for every policy."""

    parts: Cast
    scenario: Scenario
    workload: Workload | None
    seed: int
    until: float | None
    schedulers: frozenset[str]


@dataclass(frozen=True, slots=True)
class SimulationLoad:
    """What is simulated, whatever the seed and whoever decides."""

    given: SimulationInput
    """Without a workload."""
    work: NamedWork | None = None
    text: str | None = None
    """The text that names the work."""
    jitter: float = 0.0
    """How much manifests vary with the seed."""

    @property
    def is_made_up(self) -> bool:
        """Tell whether every seed makes the work anew."""
        return self.work is not None and self.work.is_random and not self.work.jitter

    def input(self, seed: int, weights: Weights | None = None) -> SimulationInput:
        """Return what is simulated with a seed; queues have other weights than those of the load where some are given."""
        workload, parts, scenario = self._workload(seed), self.given.parts, self.given.scenario
        if self.jitter:
            parts, scenario = varied_objects(parts, scenario, self.jitter, seed)
        if weights and workload is not None:
            workload = replace(workload, weight_by_queue={**workload.weight_by_queue, **weights})
        if weights:
            parts = replace(parts, there=[_weighted(item, weights) for item in parts.there])
        return replace(self.given, seed=seed, workload=workload, parts=parts, scenario=scenario)

    def _workload(self, seed: int) -> Workload | None:
        if self.work is None or self.text is None:
            return None
        is_at_hand = not self.is_made_up or (seed == self.given.seed and self.work.workload.gangs)
        return self.work.of_seed(seed) if is_at_hand else read_workload(self.text, seed).workload

    def own_weights(self) -> dict[str, float]:
        """Return the weights that the load itself gives to queues."""
        made = {} if self.work is None else self.work.workload.weight_by_queue
        objects = {item["metadata"]["name"]: item["spec"].get("weight", 1) for item in self.given.parts.there if _is_weighted(item)}
        return {name: float(weight) for name, weight in {**objects, **made}.items()}

    def to_send(self) -> "SimulationLoad":
        """Return the same without work that is made anew anyway."""
        if self.work is None or not self.is_made_up:
            return self
        return replace(self, work=replace(self.work, workload=replace(self.work.workload, gangs=(), machines=())))


def _is_weighted(item: Document) -> bool:
    """Tell whether an object is a queue with a weight, as those of Volcano have."""
    return item["kind"] == "Queue" and item["apiVersion"].startswith(VOLCANO) and bool(item.get("spec"))


def _weighted(item: Document, weights: Weights) -> Document:
    name = item["metadata"]["name"]
    return {**item, "spec": {**item["spec"], "weight": weights[name]}} if _is_weighted(item) and name in weights else item


def load_of(asked: LoadOptions) -> SimulationLoad:
    """Read what was typed."""
    scenario = _scenario(asked)
    seed = asked.seed if asked.seed is not None else scenario.seed or 0
    work = None if asked.workload is None else read_workload(asked.workload, seed)
    for text in () if work is None else work.texts():
        output.note(text)
    until = scenario.until if asked.until is None else asked.seconds
    served = served_objects(asked.paths)
    if asked.names:
        scenario = replace(scenario, controllers=replace(scenario.controllers, schedulers=frozenset(asked.names)))
    ours = our_schedulers(asked.names) | scenario.controllers.schedulers
    given = SimulationInput(cast(served.documents, served.cluster), scenario, None, seed, until, ours)
    return SimulationLoad(given, work, asked.workload, asked.jitter)


def _scenario(asked: LoadOptions) -> Scenario:
    """Return the scenario of its own file, or the one in the paths; an empty one if there is none."""
    if asked.scenario:
        text = read_bytes(asked.scenario)
        parse_text(text, asked.scenario)
        found = [(asked.scenario, item) for item in find_scenarios(text, asked.scenario)]
        if not found:
            raise ConfigError(
                f"{asked.scenario}: no scenario in it; begin it with 'apiVersion: phalanx.dev/v1alpha1' and 'kind: Scenario'"
            )
    else:
        files = [file for path in asked.paths if path != STDIN for file in files_of(path)]
        found = [(file, item) for file in files for item in find_scenarios(read_bytes(file), file)]
    if len(found) > 1:
        raise ConfigError(f"{len(found)} scenarios, in {', '.join(dict.fromkeys(file for file, _ in found))}; keep one of them")
    return found[0][1] if found else Scenario()
