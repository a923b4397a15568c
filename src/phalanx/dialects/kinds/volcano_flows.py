"""Volcano's flows: jobs that run one after the other."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from phalanx.dialects.kinds.fields import NEEDED, Anything, CelRule, Count, CustomObject, Fields, Moment, Text, ruled
from phalanx.dialects.kinds.volcano_jobs import Phase, TaskPhases, VolcanoJobSpec


class HttpHeader(Fields):
    """A header of a request."""

    name: str | None = None
    value: str | None = None


class HttpGet(Fields):
    """A page that must answer."""

    task_name: Text | None = None
    path: str | None = None
    port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    http_header: HttpHeader | None = None


class TcpSocket(Fields):
    """A port that must be open."""

    port: Annotated[int, Meta(ge=0, le=65535)]
    task_name: Text | None = None


class TaskPhase(Fields):
    """A task that must be in a phase."""

    task_name: Text | None = None
    phase: Annotated[str, Meta(max_length=63)] | None = None


class Probe(Fields):
    """What must be so before the next job starts."""

    http_get_list: list[HttpGet] | None = None
    tcp_socket_list: list[TcpSocket] | None = None
    task_status_list: list[TaskPhase] | None = None


class FlowDependsOn(Fields):
    """Which jobs come first."""

    targets: Annotated[list[Text], Meta(max_length=20)] | None = None
    probe: Probe | None = None


class FlowPatch(Fields):
    """What differs from the template."""

    job_spec: Anything | None = None


class Flow(Fields):
    """One job of a flow, under the name of its JobTemplate."""

    rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "no-own-target", "!has(self.dependsOn) || !has(self.dependsOn.targets) || !(self.name in self.dependsOn.targets)",
            "a job does not wait for itself; name another one", ".dependsOn",
        ),
    )  # fmt: skip
    name: Annotated[str, Meta(min_length=1, max_length=253, extra=NEEDED)]
    depends_on: FlowDependsOn | None = None
    patch: FlowPatch | None = None

    @property
    def targets(self) -> Sequence[str]:
        """The steps that come first."""
        return (self.depends_on.targets if self.depends_on else None) or ()

    @property
    def task_probes(self) -> Sequence[TaskPhase]:
        """The tasks that must be in a phase."""
        probe = self.depends_on.probe if self.depends_on else None
        return (probe.task_status_list if probe else None) or ()


Flows = Annotated[
    list[Flow],
    Meta(
        max_length=64,
        extra=ruled(
            CelRule(
                "flow-names-once", "self.all(f, self.exists_one(g, g.name == f.name))", "two flows have one name; give each its own"
            ),
            CelRule(
                "targets-exist",
                "self.all(f, !has(f.dependsOn) || !has(f.dependsOn.targets) || "
                "f.dependsOn.targets.all(n, self.exists(g, g.name == n)))",
                "a flow waits for one that is not there; write the name of a flow of this object",
            ),
        ),
    ),
]


class JobFlowSpec(Fields):
    """Which jobs run one after the other."""

    flows: Flows | None = None
    job_retain_policy: Literal["retain", "delete"] | None = None


class FlowRun(Fields):
    """A run of a job."""

    start_timestamp: Moment | None = None
    end_timestamp: Moment | None = None
    state: Phase | None = None


class FlowJobStatus(Fields):
    """How far a job of a flow has come."""

    name: str | None = None
    state: Phase | None = None
    start_timestamp: Moment | None = None
    end_timestamp: Moment | None = None
    restart_count: Count | None = None
    running_histories: list[FlowRun] | None = None


class FlowCondition(Fields):
    """What is known of a job of a flow."""

    phase: Phase | None = None
    create_time: Moment | None = None
    running_duration: str | None = None
    task_status_count: dict[str, TaskPhases] | None = None


class FlowState(Fields):
    """Where a flow stands."""

    phase: Literal["Succeed", "Terminating", "Failed", "Running", "Pending"] | None = None


class JobFlowStatus(Fields):
    """How far a flow has come."""

    pending_jobs: list[str] | None = None
    running_jobs: list[str] | None = None
    failed_jobs: list[str] | None = None
    completed_jobs: list[str] | None = None
    terminated_jobs: list[str] | None = None
    un_know_jobs: list[str] | None = None
    job_status_list: list[FlowJobStatus] | None = None
    conditions: dict[str, FlowCondition] | None = None
    state: FlowState | None = None


class JobFlow(CustomObject):
    """Jobs one after the other."""

    spec: JobFlowSpec | None = None
    status: JobFlowStatus | None = None

    @property
    def steps(self) -> Sequence[Flow]:
        """What is to be done, in the order in which it is written."""
        return (self.spec.flows if self.spec else None) or ()


class JobTemplateStatus(Fields):
    """Who uses a template."""

    job_depends_on_list: list[str] | None = None


class VolcanoJobTemplate(CustomObject):
    """A job that flows are made of."""

    spec: VolcanoJobSpec
    status: JobTemplateStatus | None = None
