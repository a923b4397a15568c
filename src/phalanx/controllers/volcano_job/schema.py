"""The fields of Volcano's Job that we read, as typed structs. A wrong type is an error that names the field."""

from typing import Any

from phalanx.dialects.schema import Int32, Meta, Read


class PolicyRead(Read):
    event: str | None = None
    events: list[str] | None = None
    action: str = ""
    exit_code: Int32 | None = None
    timeout: str | None = None


class DependsOn(Read):
    name: list[str] | None = None
    iteration: str | None = None


class PartitionRead(Read):
    total_partitions: Int32 = 0
    partition_size: Int32 = 0
    min_partitions: Int32 | None = None
    network_topology: dict[str, Any] | None = None


class TaskRead(Read):
    name: str | None = None
    replicas: Int32 | None = None
    min_available: Int32 | None = None
    template: dict[str, Any] | None = None
    policies: list[PolicyRead] | None = None
    topology_policy: str | None = None
    max_retry: Int32 | None = None
    depends_on: DependsOn | None = None
    partition_policy: PartitionRead | None = None


class VolumeRead(Read):
    mount_path: str = ""
    volume_claim_name: str | None = None
    volume_claim: dict[str, Any] | None = None


class JobSpecRead(Read):
    scheduler_name: str | None = None
    min_available: Int32 | None = None
    tasks: list[TaskRead] | None = None
    policies: list[PolicyRead] | None = None
    plugins: dict[str, list[str] | None] | None = None
    volumes: list[VolumeRead] | None = None
    queue: str | None = None
    max_retry: Int32 | None = None
    ttl_seconds_after_finished: Int32 | None = None
    priority_class_name: str | None = None
    min_success: Int32 | None = None
    network_topology: dict[str, Any] | None = None


class StateRead(Read):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class JobStatusRead(Read):
    state: StateRead | None = None
    version: Int32 | None = None
    retry_count: Int32 | None = None


class JobRead(Read):
    metadata: Meta
    spec: JobSpecRead | None = None
    status: JobStatusRead | None = None


class CommandTarget(Read):
    kind: str = ""
    name: str = ""
    uid: str | None = None


class CommandRead(Read):
    metadata: Meta
    action: str = ""
    target: CommandTarget | None = None
