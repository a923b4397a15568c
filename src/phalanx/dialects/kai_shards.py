"""KAI's SchedulingShard: which nodes and groups one of several schedulers looks after, and how."""

from phalanx.dialects.kinds import kai as kinds
from phalanx.dialects.kinds.reader import blank
from phalanx.errors import SnapshotError
from phalanx.model.shard import Override, PoolShard


def shard(read: kinds.SchedulingShard) -> PoolShard:
    """Read a SchedulingShard. What its words mean is checked when a policy is made of it."""
    spec = read.spec or blank(kinds.SchedulingShardSpec)
    strategy = spec.placement_strategy or blank(kinds.PlacementStrategy)
    return PoolShard(
        name=read.metadata.name, node_pool=spec.partition_label_value or "",
        strategies={"gpu": strategy.gpu or "", "cpu": strategy.cpu or ""},
        plugins=_overrides(spec.plugins), actions=_actions(spec), flags=spec.args or {},
        queue_depths=spec.queue_depth_per_action or {}, arguments=_arguments(spec), usage=_usage(spec),
    )  # fmt: skip


def _overrides(given: dict[str, kinds.PluginOverride] | None) -> dict[str, Override]:
    return {name: Override(read.enabled, read.priority, read.arguments) for name, read in (given or {}).items()}


def _actions(spec: kinds.SchedulingShardSpec) -> dict[str, Override]:
    for name, read in (spec.actions or {}).items():
        if read.arguments:
            raise SnapshotError(f"spec.actions.{name}.arguments: actions have none; write 'enabled' or 'priority'")
    return _overrides(spec.actions)


def _arguments(spec: kinds.SchedulingShardSpec) -> dict[str, dict[str, str]]:
    """Return the arguments of plugins that have fields of their own in a shard."""
    runtime = spec.min_runtime or blank(kinds.MinRuntime)
    bounds = {"defaultPreemptMinRuntime": runtime.preempt_min_runtime, "defaultReclaimMinRuntime": runtime.reclaim_min_runtime}
    k_value = {} if spec.k_value is None else {"kValue": str(spec.k_value)}
    return {"minruntime": {key: text for key, text in bounds.items() if text is not None}, "proportion": k_value}


def _usage(spec: kinds.SchedulingShardSpec) -> dict[str, str]:
    params = (spec.usage_db or kinds.UsageDb()).usage_params or kinds.UsageParams()
    given = {
        "halfLifePeriod": params.half_life_period, "windowSize": params.window_size, "windowType": params.window_type,
        "tumblingWindowStartTime": params.tumbling_window_start_time,
        "cronWindowDurationString": params.cron_window_duration_string, "stalenessPeriod": params.staleness_period,
    }  # fmt: skip
    return {key: text for key, text in given.items() if text}
