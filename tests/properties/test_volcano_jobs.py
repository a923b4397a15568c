"""Whatever happens to a Volcano Job, and wherever the controller crashes: it settles, its status is true, nothing is left over."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import catalogue_of
from phalanx.controllers.controller import Key, Result, View
from phalanx.controllers.volcano_job.controller import VolcanoJobController
from phalanx.controllers.volcano_job.job import JOB, JobAction, JobPhase
from phalanx.errors import ClusterError, Invalid
from phalanx.model.kinds import POD, Document, Kind
from phalanx.session.cycle import Profile
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import volcano_jobs as jobs

ACTIONS = [action for action in JobAction if action not in (JobAction.SYNC, JobAction.ENQUEUE)]
COMMANDS = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")
EVENTS = ("PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed", "*")
NO_ADMISSION = "allocate, backfill"


class Crashing:
    """The controller of Jobs, of which some looks end in the middle of their writes."""

    name, watches, brings_back = VolcanoJobController.name, VolcanoJobController.watches, VolcanoJobController.brings_back

    def __init__(self, inner: VolcanoJobController, crashes: Iterable[int | None]) -> None:
        self._inner, self._crashes = inner, iter(crashes)

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        return self._inner.concerns(view, kind, document)

    def reconcile(self, view: View, key: Key) -> Result:
        result = self._inner.reconcile(view, key)
        after = next(self._crashes, None)
        if after is None or after >= len(result.writes):
            return result
        return Result(result.writes[:after], again=view.now + 1)


policies = st.lists(
    st.builds(
        lambda action, event, timeout: {"action": str(action), "event": event, **({"timeout": timeout} if timeout else {})},
        st.sampled_from(ACTIONS),
        st.sampled_from(EVENTS),
        st.sampled_from(["", "", "30s"]),
    ),
    max_size=2,
)


@st.composite
def drawn_jobs(draw: st.DrawFn) -> dict[str, Any]:
    tasks = [
        jobs.task(f"t{number}", draw(st.integers(1, 3)), duration=draw(st.sampled_from(["", "2m", "5m"])), policies=draw(policies))
        for number in range(draw(st.integers(1, 3)))
    ]
    if len(tasks) > 1 and draw(st.booleans()):
        tasks[1]["dependsOn"] = {"name": ["t0"]}
    total = sum(task["replicas"] for task in tasks)
    minimum = draw(st.integers(1, total))
    for task in tasks:
        task["minAvailable"] = draw(st.integers(0, task["replicas"]))
    return jobs.job("job", *tasks, minAvailable=minimum, maxRetry=draw(st.integers(1, 4)), policies=draw(policies))


deeds = st.lists(
    st.tuples(
        st.integers(1, 90),
        st.sampled_from(["fail", "lose", "evict", "command", "scale"]),
        st.integers(0, 8),
        st.sampled_from(COMMANDS),
    ),
    max_size=6,
)


def do(world: World, deed: tuple[int, str, int, str], number: int) -> None:
    _, kind, choice, action = deed
    pods = world.store.items(POD)
    if kind == "command":
        world.store.create(jobs.command(f"command-{number}", "job", action))
    elif kind == "scale":
        tasks = [dict(task) for task in world.store.get(JOB, "default", "job")["spec"]["tasks"]]
        tasks[0]["replicas"] = max(tasks[0]["replicas"] + choice % 3 - 1, tasks[0]["minAvailable"])
        world.store.patch(JOB, "default", "job", {"spec": {"tasks": tasks}})
    elif pods:
        pod = pods[choice % len(pods)]
        {"fail": lambda: world.faults.fail("default", pod["metadata"]["name"]), "lose": lambda: world.faults.lose(pod),
         "evict": lambda: world.store.evict("default", pod["metadata"]["name"])}[kind]()  # fmt: skip


def settled(
    job: dict[str, Any], acts: list[tuple[int, str, int, str]], crashes: list[int | None], actions: str
) -> tuple[World, VolcanoJobController]:
    policy = build.policy(actions=actions)
    controller = VolcanoJobController(pair_for, has_admission=policy.has_admission)
    world = World(Profile(policy, catalogue_of(policy.catalogue)), controllers=[Crashing(controller, crashes)])
    world.load([*(build.node(f"node-{number}", cpu=4) for number in range(3)), build.queue("default")])
    try:
        world.store.create(job)
    except Invalid:
        world.store.load(job)  # it names an event twice, and is from a time when that was not refused
    moment = world.start
    for number, deed in enumerate(acts):
        moment += deed[0]
        world.advance(moment)
        try:
            do(world, deed, number)
        except ClusterError:
            continue  # the pod has ended or gone meanwhile, or the job needs more pods than it is to have
    world.advance(moment + 3600)
    return world, controller


@settings(max_examples=150, deadline=None)
@given(
    drawn_jobs(),
    deeds,
    st.lists(st.one_of(st.none(), st.none(), st.integers(0, 4)), max_size=40),
    st.sampled_from([build.ACTIONS, NO_ADMISSION]),
)
def test_a_job_settles_and_its_status_is_true(
    job: dict[str, Any], acts: list[tuple[int, str, int, str]], crashes: list[int | None], actions: str
) -> None:
    world, controller = settled(job, acts, crashes, actions)
    assert [text for text in world.problems if "means nothing while the Job is" not in text] == []  # commands may come too late
    assert list(controller.reconcile(world.store, Key("default", "job")).writes) == []
    found = world.store.get(JOB, "default", "job")
    status, pods = found["status"], world.store.items(POD)
    phase = JobPhase(status["state"]["phase"])
    assert phase in (JobPhase.PENDING, JobPhase.RUNNING, JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED, JobPhase.ABORTED)
    assert status["retryCount"] <= found["spec"]["maxRetry"]
    assert status["terminating"] == 0
    for name in ("pending", "running", "succeeded", "failed"):
        assert status[name] == sum(pod["status"]["phase"].lower() == name for pod in pods), name
    if phase in (JobPhase.PENDING, JobPhase.RUNNING):
        names = [f"job-{task['name']}-{index}" for task in found["spec"]["tasks"] for index in range(task["replicas"])]
        assert {pod["metadata"]["name"] for pod in pods} <= set(names)
        assert {pod["metadata"]["annotations"]["volcano.sh/job-version"] for pod in pods} <= {str(status["version"])}
    else:
        assert all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods)
        assert world.store.items(jobs.GROUP) == []
