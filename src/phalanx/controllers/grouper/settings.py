"""The settings of the pod grouper."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from phalanx.dialects.reading import read_as
from phalanx.dialects.wrong_field import readable
from phalanx.errors import ConfigError
from phalanx.model.shard import NODE_POOL

DialectName = Literal["kai", "volcano", "coscheduling", "koordinator", "native"]
KAI, OWN, VOLCANO = "kai-scheduler", "phalanx", "volcano"


class GrouperSettings(msgspec.Struct, rename="camel", frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose pods are grouped, and in which dialect."""

    scheduler_names: tuple[str, ...] = (KAI, OWN)
    """Pods for these schedulers are grouped."""
    workload_scheduler_names: tuple[str, ...] = (OWN,)
    """Of pods for these, plain ones (bare pods, ReplicaSets, StatefulSets and the like) are left to another controller."""
    dialect: DialectName = "kai"
    """Whose PodGroups are written."""
    queue_label: str = "kai.scheduler/queue"
    node_pool_label: str = NODE_POOL
    default_queue: str = ""
    """Where nothing names a queue; empty: `default`, but `default-queue` for pods of KAI's scheduler in KAI's dialect."""
    defaults_config_map: str = ""
    """`namespace/name` of a ConfigMap with defaults for kinds of owners; empty: there is none."""
    owner_patience_seconds: float = 0.0
    """For so long after the creation of a pod a missing owner is waited for: watches of two kinds may show the pod first."""
    knative_gangs: bool = True
    """A revision of a Knative Service is one gang of its smallest scale; otherwise each of its pods is for itself."""


def read_settings(document: Mapping[str, object]) -> GrouperSettings:
    """Read the settings."""
    try:
        return read_as(document, GrouperSettings)
    except msgspec.ValidationError as problem:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(GrouperSettings))
        raise ConfigError(f"grouper: {readable(problem)}; settings are {known}") from problem
