"""Flows of jobs go on step by step."""

from typing import Any

from phalanx.controllers.jobflow import JobFlowController, JobTemplateController
from phalanx.controllers.objects import PROBLEM
from phalanx.model.kinds import JOB_FLOW, JOB_TEMPLATE, VOLCANO_JOB
from tests.support.controller_store import Stage

FLOW = "flow.volcano.sh/v1alpha1"


def template(name: str, **spec: Any) -> dict[str, Any]:
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [{"name": "main"}]}}}
    meta = {"namespace": "default", "name": name}
    return {"apiVersion": FLOW, "kind": "JobTemplate", "metadata": meta, "spec": {"minAvailable": 2, "tasks": [task], **spec}}


def step(name: str, *targets: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **({"dependsOn": {"targets": [*targets], **more.pop("depends", {})}} if targets else {}), **more}


def flow(*steps: dict[str, Any], **spec: Any) -> dict[str, Any]:
    meta = {"namespace": "default", "name": "f"}
    return {"apiVersion": FLOW, "kind": "JobFlow", "metadata": meta, "spec": {"flows": [*steps], **spec}}


def stage(*documents: dict[str, Any]) -> Stage:
    found = Stage(JobFlowController(), JobTemplateController())
    found.make(*documents)
    found.run(1)
    return found


def set_phase(found: Stage, job: str, phase: str, **status: Any) -> None:
    found.set_status(VOLCANO_JOB, job, {"state": {"phase": phase}, **status})
    found.run(found.time.now - found.start + 1)


def status(found: Stage) -> dict[str, Any]:
    return dict(found.find(JOB_FLOW, "f")["status"])


def phase(found: Stage) -> str:
    return str(status(found)["state"]["phase"])


def problem(found: Stage) -> str:
    return str((found.find(JOB_FLOW, "f")["metadata"].get("annotations") or {}).get(PROBLEM, ""))


def diamond(**spec: Any) -> Stage:
    steps = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
    return stage(*map(template, "abcd"), flow(*steps, **spec))


def test_each_job_is_made_when_those_before_it_are_completed() -> None:
    found = diamond()
    assert (found.names(VOLCANO_JOB), phase(found)) == (["f-a"], "Pending")
    set_phase(found, "f-a", "Running")
    assert (found.names(VOLCANO_JOB), phase(found)) == (["f-a"], "Running")
    set_phase(found, "f-a", "Completed")
    assert found.names(VOLCANO_JOB) == ["f-a", "f-b", "f-c"]
    set_phase(found, "f-b", "Completed")
    assert found.names(VOLCANO_JOB) == ["f-a", "f-b", "f-c"]
    set_phase(found, "f-c", "Completed")
    assert (found.names(VOLCANO_JOB), phase(found)) == (["f-a", "f-b", "f-c", "f-d"], "Running")
    assert status(found)["completedJobs"] == ["f-a", "f-b", "f-c"]
    assert status(found)["unKnowJobs"] == ["f-d"]
    set_phase(found, "f-d", "Completed")
    assert (phase(found), status(found)["completedJobs"]) == ("Succeed", ["f-a", "f-b", "f-c", "f-d"])
    assert found.unsettled() == []


def test_a_job_is_its_template_and_belongs_to_the_flow() -> None:
    found = stage(template("a", queue="research"), flow(step("a")))
    job = found.find(VOLCANO_JOB, "f-a")
    spec = found.find(JOB_TEMPLATE, "a")["spec"]
    tasks = [{**task, "minAvailable": task["replicas"]} for task in spec["tasks"]]
    assert job["spec"] == {**spec, "tasks": tasks, "maxRetry": 3, "schedulerName": "volcano"}
    assert job["metadata"]["ownerReferences"][0]["name"] == "f"
    assert job["metadata"]["labels"] == {"volcano.sh/createdByJobFlow": "default.f", "volcano.sh/createdByJobTemplate": "default.a"}
    found.store.delete(JOB_FLOW, "default", "f")
    assert found.names(VOLCANO_JOB) == []


def test_a_step_may_differ_from_its_template() -> None:
    change = {"queue": "night", "minAvailable": 4, "tasks": [{"name": "worker", "replicas": 4}, {"name": "extra", "replicas": 1}]}
    found = stage(template("a"), flow(step("a", patch={"jobSpec": change})))
    spec = found.find(VOLCANO_JOB, "f-a")["spec"]
    assert (spec["queue"], spec["minAvailable"]) == ("night", 4)
    assert [(task["name"], task["replicas"], "template" in task) for task in spec["tasks"]] == [
        ("worker", 4, True), ("extra", 1, False),
    ]  # fmt: skip


def test_a_job_that_fails_fails_the_flow_until_it_is_run_again() -> None:
    found = diamond()
    for lost in ("Failed", "Terminated"):
        set_phase(found, "f-a", lost)
        assert (phase(found), found.names(VOLCANO_JOB)) == ("Failed", ["f-a"])
    assert status(found)["terminatedJobs"] == ["f-a"]
    set_phase(found, "f-a", "Running")
    assert phase(found) == "Running"


def test_a_completed_job_that_is_gone_stays_completed() -> None:
    found = stage(template("a"), template("b"), flow(step("a"), step("b", "a")))
    set_phase(found, "f-a", "Completed")
    found.store.delete(VOLCANO_JOB, "default", "f-a")
    found.run(10)
    assert (found.names(VOLCANO_JOB), status(found)["completedJobs"]) == (["f-b"], ["f-a"])
    set_phase(found, "f-b", "Completed")
    assert phase(found) == "Succeed"


def test_jobs_are_deleted_after_success_if_the_flow_says_so() -> None:
    for policy, left in (("delete", []), ("retain", ["f-a"])):
        found = stage(template("a"), flow(step("a"), jobRetainPolicy=policy))
        set_phase(found, "f-a", "Completed")
        found.run(10)
        assert (found.names(VOLCANO_JOB), phase(found)) == (left, "Succeed")
        assert status(found)["completedJobs"] == ["f-a"]
        assert found.unsettled() == []


def test_a_probe_of_a_task_waits_for_its_phase_and_others_pass() -> None:
    probe = {"taskStatusList": [{"taskName": "worker", "phase": "Succeeded"}], "httpGetList": [{"port": 80}]}
    found = stage(template("a"), template("b"), flow(step("a"), step("b", "a", depends={"probe": probe})))
    set_phase(found, "f-a", "Completed", taskStatusCount={"worker": {"phase": {"Failed": 1}}})
    assert found.names(VOLCANO_JOB) == ["f-a"]
    set_phase(found, "f-a", "Completed", taskStatusCount={"worker": {"phase": {"Succeeded": 2}}})
    assert found.names(VOLCANO_JOB) == ["f-a", "f-b"]


def test_a_missing_template_is_said_and_made_up_for() -> None:
    found = stage(template("a"), flow(step("a"), step("b")))
    assert problem(found) == "spec.flows: there is no JobTemplate 'b' in namespace 'default'; create it"
    assert found.names(VOLCANO_JOB) == ["f-a"]
    assert found.unsettled() == []
    found.make(template("b"))
    found.run(5)
    assert (problem(found), found.names(VOLCANO_JOB)) == ("", ["f-a", "f-b"])


WRONG = [
    ((step("a", "b"), step("b", "a")), "a circle, of which nothing can be first; take one dependsOn out"),
    ((step("a"), step("b", "z")), "spec.flows[1].dependsOn.targets: 'z' is no step of this flow; known are a, b"),
    ((step("a"), step("a")), "spec.flows[1].name: 'a' is given twice; name every template once"),
    (({"dependsOn": {}},), "JobFlow default/f: spec.flows[0].name: missing"),
]  # fmt: skip


def test_a_flow_that_could_never_end_is_not_begun_and_says_why() -> None:
    for steps, text in WRONG:
        found = stage(template("a"), template("b"), flow(*steps))
        assert text in problem(found)
        assert (found.names(VOLCANO_JOB), found.problems) == ([], [])
        assert [event.reason for event in found.told] == ["Invalid"]
        assert found.unsettled() == []


def test_a_job_of_somebody_else_is_not_taken_for_ours() -> None:
    other = {"apiVersion": VOLCANO_JOB.api_version, "kind": "Job", "metadata": {"namespace": "default", "name": "f-a"}, "spec": {}}
    found = stage(other, template("a"), flow(step("a")))
    assert "job 'f-a' of step 'a' is there already and not ours" in problem(found)
    assert phase(found) == "Pending"


def test_a_flow_that_is_leaving_makes_no_more_jobs() -> None:
    document = flow(step("a"))
    document["metadata"].update({"finalizers": ["x"], "deletionTimestamp": "2026-01-01T00:00:00Z"})
    found = stage(template("a"), document)
    assert (found.names(VOLCANO_JOB), phase(found)) == ([], "Terminating")


def test_a_template_lists_the_jobs_that_were_made_from_it() -> None:
    found = stage(template("a"), flow(step("a")))
    assert found.find(JOB_TEMPLATE, "a")["status"] == {"jobDependsOnList": ["f-a"]}
    set_phase(found, "f-a", "Running")
    assert found.unsettled() == []
    found.store.delete(JOB_FLOW, "default", "f")
    found.run(10)
    assert found.find(JOB_TEMPLATE, "a")["status"] == {"jobDependsOnList": []}
