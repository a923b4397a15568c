"""The explanation of a gang on a small cluster."""

from phalanx.config.builtin import catalogue_of
from phalanx.explain.explanation import explanation
from phalanx.explain.reading import reading_of
from phalanx.explain.tree import Explanation, Line, Stage, StageResult
from phalanx.session.cycle import run_cycle
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.session.shards import seen_by
from phalanx.testing.build import Cluster


def explained(cluster: Cluster, gang: str, *, now: float = 0.0) -> Explanation:
    """Explain a gang of the namespace `default` after one session that is traced for it alone."""
    snapshot, key = seen_by(cluster.policy, cluster.objects.snapshot(now)), f"default/{gang}"
    catalogue = catalogue_of(cluster.policy.catalogue)
    decisions = run_cycle(snapshot, cluster.policy, catalogue, trace_level=5, traced_gangs=[key])
    reading = reading_of([ShardDecisions("", snapshot, decisions)], key, cluster.policy)
    assert reading is not None, f"there is no gang {key}"
    return explanation(reading)


def stage_of(found: Explanation, stage: Stage) -> StageResult:
    """Return what one stage says."""
    return next(result for result in found.stages if result.stage is stage)


def texts(lines: tuple[Line, ...]) -> list[str]:
    """Return all lines, those below a line behind it."""
    return [text for line in lines for text in (line.text, *texts(line.lines))]
