"""KAI's SchedulingShard: which nodes and groups one of several schedulers looks after, and how."""

from msgspec import field

from phalanx.dialects.schema import Meta, Read, Strings
from phalanx.errors import SnapshotError
from phalanx.model.shard import Override, PoolShard


class StrategyRead(Read):
    """Pack or spread."""

    gpu: str | None = None
    cpu: str | None = None


class MinRuntimeRead(Read):
    """How long jobs are left in peace."""

    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class OverrideRead(Read):
    """What a shard says about a plugin or an action."""

    enabled: bool | None = None
    priority: int | None = None
    arguments: Strings = None


class UsageParamsRead(Read):
    """Which part of the past counts."""

    half_life_period: str | None = None
    window_size: str | None = None
    window_type: str | None = None
    tumbling_window_start_time: str | None = None
    cron_window_duration_string: str | None = None
    staleness_period: str | None = None


class UsageDbRead(Read):
    """Where usage comes from, and how it is summed up."""

    usage_params: UsageParamsRead | None = None


class ShardSpecRead(Read):
    """What a SchedulingShard says."""

    args: Strings = None
    placement_strategy: StrategyRead | None = None
    partition_label_value: str | None = None
    queue_depth_per_action: dict[str, int] | None = None
    min_runtime: MinRuntimeRead | None = None
    k_value: float | None = None
    usage_db: UsageDbRead | None = field(default=None, name="usageDBConfig")
    plugins: dict[str, OverrideRead] | None = None
    actions: dict[str, OverrideRead] | None = None


class ShardRead(Read):
    """A SchedulingShard."""

    metadata: Meta
    spec: ShardSpecRead | None = None


def shard(read: ShardRead) -> PoolShard:
    """Read a SchedulingShard. What its words mean is checked when a policy is made of it."""
    spec = read.spec or ShardSpecRead()
    strategy = spec.placement_strategy or StrategyRead()
    return PoolShard(
        name=read.metadata.name, node_pool=spec.partition_label_value or "",
        strategies={"gpu": strategy.gpu or "", "cpu": strategy.cpu or ""},
        plugins=_overrides(spec.plugins), actions=_actions(spec), flags=spec.args or {},
        queue_depths=spec.queue_depth_per_action or {}, arguments=_arguments(spec), usage=_usage(spec),
    )  # fmt: skip


def _overrides(given: dict[str, OverrideRead] | None) -> dict[str, Override]:
    return {name: Override(read.enabled, read.priority, read.arguments) for name, read in (given or {}).items()}


def _actions(spec: ShardSpecRead) -> dict[str, Override]:
    for name, read in (spec.actions or {}).items():
        if read.arguments:
            raise SnapshotError(f"spec.actions.{name}.arguments: actions have none; write 'enabled' or 'priority'")
    return _overrides(spec.actions)


def _arguments(spec: ShardSpecRead) -> dict[str, dict[str, str]]:
    """Return the arguments of plugins that have fields of their own in a shard."""
    runtime = spec.min_runtime or MinRuntimeRead()
    bounds = {"defaultPreemptMinRuntime": runtime.preempt_min_runtime, "defaultReclaimMinRuntime": runtime.reclaim_min_runtime}
    k_value = {} if spec.k_value is None else {"kValue": str(spec.k_value)}
    return {"minruntime": {key: text for key, text in bounds.items() if text is not None}, "proportion": k_value}


def _usage(spec: ShardSpecRead) -> dict[str, str]:
    params = (spec.usage_db or UsageDbRead()).usage_params or UsageParamsRead()
    given = {
        "halfLifePeriod": params.half_life_period, "windowSize": params.window_size, "windowType": params.window_type,
        "tumblingWindowStartTime": params.tumbling_window_start_time,
        "cronWindowDurationString": params.cron_window_duration_string, "stalenessPeriod": params.staleness_period,
    }  # fmt: skip
    return {key: text for key, text in given.items() if text}
