"""The lives of Volcano Jobs in a cluster in virtual time, from their arrival to their end."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.controllers.controller import Patch
from phalanx.controllers.volcano_job.controller import SECRET
from phalanx.controllers.volcano_job.job import COMMAND, JOB, MEMORY
from phalanx.controllers.volcano_job.plugins.plugin import KeyPair
from phalanx.live.sshkeys import new_pair
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, kind_of
from phalanx.testing import build
from tests.support import volcano_jobs as jobs

CONFIG = kind_of({"apiVersion": "v1", "kind": "ConfigMap"})
RESTART = [jobs.policy("RestartJob", "PodFailed")]


def conditions(ward: jobs.Ward, name: str) -> list[str]:
    return [condition["status"] for condition in ward.status(name)["conditions"]]


def annotations(document: Document) -> dict[str, str]:
    found: dict[str, str] = document["metadata"]["annotations"]
    return found


@pytest.mark.parametrize("profile", ["volcano", "phalanx", "kai", "default-scheduler"])
def test_a_job_runs_to_its_end_whoever_schedules(profile: str) -> None:
    ward = jobs.ward(policy_of_profile(profile))
    ward.submit(jobs.job("train", jobs.task("worker", 2, duration="10m")))
    ward.run(60)
    assert ward.phase("train") == "Running"
    assert ward.status("train")["running"] == 2
    ward.run(700)
    assert ward.phase("train") == "Completed"
    assert ward.status("train")["succeeded"] == 2
    assert conditions(ward, "train") == ["Pending", "Running", "Completed"]
    assert not ward.world.problems


def test_pods_are_made_when_the_group_is_admitted_and_not_before() -> None:
    ward = jobs.ward(nodes=1, cpu=4)
    ward.submit(jobs.job("large", jobs.task("worker", 2, cpu=3)))
    ward.run(120)
    assert ward.pods() == {}
    assert ward.phase("large") == "Pending"
    ward.submit(build.node("node-9", cpu=4))
    ward.run(200)
    assert ward.phase("large") == "Running"


def test_where_nobody_admits_groups_pods_are_made_at_once() -> None:
    ward = jobs.ward(policy_of_profile("phalanx"), nodes=1, cpu=4)
    ward.submit(jobs.job("large", jobs.task("worker", 2, cpu=3)))
    ward.run(0)
    assert ward.pods() == {"large-worker-0": "Pending", "large-worker-1": "Pending"}


def test_one_ps_and_seven_workers_end_when_the_workers_are_done() -> None:
    done = [jobs.policy("CompleteJob", "TaskCompleted")]
    ward = jobs.ward()
    ward.submit(jobs.job("tf", jobs.task("ps"), jobs.task("worker", 7, duration="30m", policies=done), minAvailable=8))
    ward.run(60)
    assert ward.phase("tf") == "Running"
    ward.run(1900)
    assert ward.phase("tf") == "Completed"
    assert conditions(ward, "tf") == ["Pending", "Running", "Completing", "Completed"]
    assert ward.pods() == {f"tf-worker-{index}": "Succeeded" for index in range(7)}
    assert ward.world.store.items(jobs.GROUP) == []
    assert ward.world.recorder.gangs[next(iter(ward.world.recorder.gangs))].finished is not None


def test_a_failed_pod_restarts_the_job_until_retries_are_used_up() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2, duration="1h"), policies=RESTART, maxRetry=2))
    ward.run(60)
    ward.fail("bert-worker-0")
    ward.run(120)
    status = ward.status("bert")
    assert (ward.phase("bert"), status["retryCount"], status["version"]) == ("Running", 1, 1)
    assert annotations(ward.pod("bert-worker-1"))["volcano.sh/job-version"] == "1"
    ward.fail("bert-worker-1")
    ward.run(180)
    status = ward.status("bert")
    assert (ward.phase("bert"), status["retryCount"], status["state"]["reason"]) == ("Failed", 2, "MaxRetryReached")
    assert ward.pods() == {"bert-worker-1": "Failed"}
    assert [told.message for told in ward.told if told.reason == "ExecuteAction"] == [
        "RestartJob because of PodFailed of task worker, pod 0",
        "RestartJob because of PodFailed of task worker, pod 1",
    ]


def test_without_a_policy_a_failed_pod_stays_and_the_job_fails_in_the_end() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2, duration="10m"), minAvailable=2))
    ward.run(60)
    ward.fail("bert-worker-0")
    ward.run(61)
    assert (ward.phase("bert"), ward.status("bert")["failed"]) == ("Running", 1)
    ward.change(POD, "bert-worker-1", {"status": {"phase": "Succeeded"}}, is_status=True)
    ward.run(62)
    state = ward.status("bert")["state"]
    assert (state["phase"], state["message"]) == ("Failed", "task worker: 1 of 2 pods succeeded, 2 are needed")


def test_restarting_a_pod_leaves_the_others_and_the_group_alone() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 3), policies=[jobs.policy("RestartPod", "PodFailed")], minAvailable=2))
    ward.run(60)
    before = {name: ward.pod(name)["metadata"]["uid"] for name in ward.pods()}
    group = ward.group("bert")
    ward.fail("bert-worker-1")
    ward.run(120)
    after = {name: ward.pod(name)["metadata"]["uid"] for name in ward.pods()}
    assert [name for name in before if after[name] != before[name]] == ["bert-worker-1"]
    assert ward.phase("bert") == "Running"
    assert (ward.status("bert")["version"], ward.status("bert")["retryCount"]) == (0, 1)
    assert ward.group("bert")["metadata"]["uid"] == group["metadata"]["uid"]


def test_restarting_a_task_concerns_its_pods_only() -> None:
    ward = jobs.ward()
    worker = jobs.task("worker", 2, policies=[jobs.policy("RestartTask", "PodFailed")])
    ward.submit(jobs.job("bert", jobs.task("ps"), worker, minAvailable=1))
    ward.run(60)
    before = {name: ward.pod(name)["metadata"]["uid"] for name in ward.pods()}
    ward.fail("bert-worker-0")
    ward.run(120)
    changed = sorted(name for name in before if ward.pod(name)["metadata"]["uid"] != before[name])
    assert changed == ["bert-worker-0", "bert-worker-1"]


def test_pods_of_one_task_that_are_lost_together_restart_it_once() -> None:
    ward = jobs.ward()
    worker = jobs.task("worker", 3, policies=[jobs.policy("RestartTask", "PodEvicted")])
    ward.submit(jobs.job("bert", jobs.task("ps"), worker, minAvailable=1))
    ward.run(60)
    for name in ("bert-worker-0", "bert-worker-2"):
        ward.world.faults.lose(ward.pod(name))
    ward.run(120)
    assert (ward.phase("bert"), ward.status("bert")["retryCount"]) == ("Running", 1)
    assert set(ward.pods().values()) == {"Running"}


def test_a_command_that_was_carried_out_before_a_crash_is_not_carried_out_again() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2)))
    ward.run(60)
    ward.submit(jobs.command("again", "bert", "RestartJob"))
    for write in ward.writes("bert"):
        if isinstance(write, Patch):  # and then nothing more
            ward.world.store.patch(write.kind, "default", "bert", write.patch, is_status=write.is_status)
    assert (ward.phase("bert"), len(ward.world.store.items(COMMAND))) == ("Restarting", 1)
    ward.run(120)
    assert (ward.phase("bert"), ward.status("bert")["retryCount"]) == ("Running", 1)
    assert ward.world.store.items(COMMAND) == []


def test_the_group_of_a_job_has_its_tiers_by_name_and_those_of_its_partitions() -> None:
    ward = jobs.ward()
    parts = {"totalPartitions": 2, "partitionSize": 2, "networkTopology": {"mode": "hard", "highestTierName": "leaf"}}
    topology = {"mode": "hard", "highestTierName": "spine"}
    ward.submit(jobs.job("llama", jobs.task("worker", 4, partitionPolicy=parts), networkTopology=topology))
    ward.run(5)
    (group,) = ward.world.store.items(GROUP_BY_DIALECT["volcano"])
    (policy,) = group["spec"]["subGroupPolicy"]
    assert (group["spec"]["minMember"], group["spec"]["networkTopology"]) == (4, topology)
    assert (policy["minSubGroups"], policy["networkTopology"]) == (0, parts["networkTopology"])


def test_restarting_a_partition_concerns_the_pods_that_are_placed_together() -> None:
    ward = jobs.ward()
    parts = {"totalPartitions": 2, "partitionSize": 2, "networkTopology": {"mode": "soft"}}
    worker = jobs.task("worker", 4, policies=[jobs.policy("RestartPartition", "PodFailed")], partitionPolicy=parts)
    ward.submit(jobs.job("llama", worker, minAvailable=2))
    ward.run(60)
    before = {name: ward.pod(name)["metadata"]["uid"] for name in ward.pods()}
    ward.fail("llama-worker-3")
    ward.run(120)
    changed = sorted(name for name in before if ward.pod(name)["metadata"]["uid"] != before[name])
    assert changed == ["llama-worker-2", "llama-worker-3"]
    assert ward.pod("llama-worker-3")["metadata"]["labels"]["volcano.sh/partition-id"] == "1"


def test_a_pod_that_was_taken_away_is_made_anew() -> None:
    ward = jobs.ward(nodes=3)
    ward.submit(jobs.job("bert", jobs.task("worker", 3, cpu=8, duration="1h"), minAvailable=2))
    ward.run(60)
    node = ward.pod("bert-worker-1")["spec"]["nodeName"]
    ward.world.faults.die(node)
    ward.run(120)
    assert ward.pods() == {"bert-worker-0": "Running", "bert-worker-1": "Pending", "bert-worker-2": "Running"}
    ward.world.faults.come_back(node)
    ward.run(180)
    assert set(ward.pods().values()) == {"Running"}
    assert ward.status("bert")["retryCount"] == 0


def test_a_pod_that_left_no_trace_counts_as_evicted() -> None:
    ward = jobs.ward(nodes=3)
    ward.submit(jobs.job("bert", jobs.task("worker", 3, cpu=8), policies=[jobs.policy("RestartJob", "PodEvicted")]))
    ward.run(60)
    ward.world.faults.lose(ward.pod("bert-worker-1"))
    ward.run(120)
    assert (ward.phase("bert"), ward.status("bert")["retryCount"]) == ("Running", 1)
    assert ward.status("bert")["state"].get("reason") is None


def test_an_eviction_is_acted_upon_once_though_the_pod_takes_its_time_to_leave() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 3), policies=[jobs.policy("RestartPod", "PodEvicted")], minAvailable=2))
    ward.run(60)
    ward.world.store.evict("default", "bert-worker-1")
    ward.run(120)
    assert (ward.phase("bert"), ward.status("bert")["retryCount"]) == ("Running", 1)


def test_policies_of_the_task_come_before_those_of_the_job_and_exit_codes_count() -> None:
    ward = jobs.ward()
    worker = jobs.task("worker", 2, policies=[{"exitCode": 1, "action": "TerminateJob"}])
    ward.submit(jobs.job("bert", worker, policies=[jobs.policy("RestartJob", "*")]))
    ward.run(60)
    ward.fail("bert-worker-0")
    ward.run(120)
    assert ward.phase("bert") == "Terminated"
    assert conditions(ward, "bert") == ["Pending", "Running", "Terminating", "Terminated"]


def test_a_policy_for_any_event_does_not_mean_pods_that_run() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2), policies=[jobs.policy("RestartJob", "*")]))
    ward.run(600)
    assert (ward.phase("bert"), ward.status("bert")["retryCount"]) == ("Running", 0)


def test_a_pod_may_be_pending_for_so_long() -> None:
    ward = jobs.ward(policy_of_profile("phalanx"), nodes=1)
    limit = [jobs.policy("AbortJob", "PodPending", timeout="10m")]
    ward.submit(jobs.job("bert", jobs.task("worker", 2, cpu=8), policies=limit))
    ward.run(590)
    assert ward.phase("bert") == "Pending"
    ward.run(610)
    assert ward.phase("bert") == "Aborted"
    assert ward.pods() == {}


def test_a_timeout_gives_a_failed_pod_time_and_is_remembered() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2), policies=[jobs.policy("TerminateJob", "PodFailed", timeout="5m")]))
    ward.run(60)
    ward.fail("bert-worker-0")
    ward.run(350)
    assert ward.phase("bert") == "Running"
    assert "PodFailed worker-0" in annotations(ward.job("bert"))[MEMORY]
    ward.run(370)
    assert ward.phase("bert") == "Terminated"
    assert MEMORY not in annotations(ward.job("bert"))


@pytest.mark.parametrize(
    ("action", "phase"), [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_a_command_ends_a_job_and_is_gone(action: str, phase: str) -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2)))
    ward.run(60)
    ward.submit(jobs.command("stop", "bert", action))
    ward.run(120)
    assert ward.phase("bert") == phase
    assert ward.pods() == {}
    assert ward.world.store.items(COMMAND) == []
    assert ward.status("bert")["state"]["lastTransitionTime"] == "2026-01-01T00:01:01Z"


def test_an_aborted_job_can_be_resumed() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2)))
    ward.run(60)
    ward.submit(jobs.command("stop", "bert", "AbortJob"))
    ward.run(120)
    ward.submit(jobs.command("go", "bert", "ResumeJob"))
    ward.run(180)
    assert (ward.phase("bert"), ward.status("bert")["retryCount"]) == ("Running", 1)
    assert conditions(ward, "bert")[2:] == ["Aborting", "Aborted", "Restarting", "Pending", "Running"]


@pytest.mark.parametrize("action", ["ResumeJob", "Explode", "RestartTask"])
def test_a_command_that_means_nothing_is_taken_away_with_a_word(action: str) -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2)))
    ward.run(60)
    ward.submit(jobs.command("odd", "bert", action))
    ward.run(61)
    assert ward.world.store.items(COMMAND) == []
    assert ward.phase("bert") == "Running"
    assert any(told.is_warning and f"action {action!r} means nothing" in told.message for told in ward.told)


@pytest.mark.parametrize(("name", "uid"), [("tomorrow", ""), ("bert", "of-yesterday")])
def test_a_command_for_a_job_that_is_not_here_does_not_wait_for_the_next_one(name: str, uid: str) -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2)))
    ward.run(60)
    command = jobs.command("stop", name, "AbortJob")
    ward.submit({**command, "target": {**command["target"], "uid": uid}})
    ward.run(62)
    assert len(ward.world.store.items(COMMAND)) == 1
    ward.run(70)
    assert ward.world.store.items(COMMAND) == []
    assert ward.phase("bert") == "Running"
    assert [told.reason for told in ward.told if f"Job {name} is not here" in told.message] == ["InvalidCommand"]


def test_a_command_may_come_a_little_before_its_job() -> None:
    ward = jobs.ward()
    ward.submit(jobs.command("stop", "bert", "AbortJob"))
    ward.run(2)
    ward.submit(jobs.job("bert", jobs.task("worker", 2)))
    ward.run(30)
    assert (ward.phase("bert"), ward.world.store.items(COMMAND)) == ("Aborted", [])


def test_a_job_grows_and_shrinks() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2, minAvailable=1), minAvailable=1, plugins={"svc": []}))
    ward.run(60)

    def scale(replicas: int) -> None:
        tasks: list[Any] = [{**ward.job("bert")["spec"]["tasks"][0], "replicas": replicas}]
        ward.change(JOB, "bert", {"spec": {"tasks": tasks}})

    scale(4)
    ward.run(120)
    assert sorted(ward.pods()) == [f"bert-worker-{index}" for index in range(4)]
    assert ward.world.store.get(CONFIG, "default", "bert-svc")["data"]["VC_WORKER_NUM"] == "4"
    scale(1)
    ward.run(180)
    assert ward.pods() == {"bert-worker-0": "Running"}
    assert (ward.phase("bert"), ward.status("bert")["retryCount"]) == ("Running", 0)


def test_enough_successes_end_a_job_and_its_other_pods() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("sweep", jobs.task("fast", duration="5m"), jobs.task("slow", 2, duration="9h"), minSuccess=1))
    ward.run(400)
    assert ward.phase("sweep") == "Completed"
    assert ward.pods() == {"sweep-fast-0": "Succeeded"}


def test_a_finished_job_is_removed_after_its_time() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("train", jobs.task("worker", 2, duration="10m"), ttlSecondsAfterFinished=60))
    ward.run(655)
    assert ward.phase("train") == "Completed"
    ward.run(670)
    assert ward.world.store.items(JOB) == []
    assert ward.pods() == {}


@pytest.mark.parametrize("profile", ["volcano", "phalanx"])
def test_a_task_waits_for_the_tasks_it_depends_on_and_blocks_nobody(profile: str) -> None:
    ward = jobs.ward(policy_of_profile(profile))
    worker = jobs.task("worker", 2, dependsOn={"name": ["ps"]})
    ward.submit(jobs.job("tf", worker, jobs.task("ps", 1)))
    ward.run(0)
    assert "tf-worker-0" not in ward.pods()
    assert ward.group("tf")["spec"]["minMember"] == 1
    ward.run(60)
    assert ward.pods() == dict.fromkeys(("tf-ps-0", "tf-worker-0", "tf-worker-1"), "Running")
    assert ward.group("tf")["spec"]["minMember"] == 3
    assert ward.phase("tf") == "Running"


def test_a_group_that_is_in_an_unknown_state_is_an_event() -> None:
    ward = jobs.ward(nodes=2)
    ward.submit(jobs.job("bert", jobs.task("worker", 2, cpu=8), policies=[jobs.policy("AbortJob", "Unknown")]))
    ward.run(60)
    ward.world.faults.die("node-0")
    ward.run(120)
    assert ward.phase("bert") == "Aborted"


def test_containers_that_restart_too_often_make_a_task_fail() -> None:
    ward = jobs.ward()
    worker = jobs.task("worker", 2, maxRetry=3, policies=[jobs.policy("TerminateJob", "TaskFailed")])
    ward.submit(jobs.job("bert", worker))
    ward.run(60)
    for name, count in (("bert-worker-0", 2), ("bert-worker-1", 1)):
        status = {"containerStatuses": [{"name": "main", "restartCount": count}]}
        ward.change(POD, name, {"status": status}, is_status=True)
    ward.run(90)
    assert ward.phase("bert") == "Terminated"


def test_a_job_that_cannot_be_run_is_set_aside_alone_and_goes_on_when_it_is_mended() -> None:
    ward = jobs.ward()
    ward.world.load([jobs.job("bad", jobs.task("worker", 2), minAvailable=3)])
    ward.submit(jobs.job("good", jobs.task("worker", 2)))
    ward.run(60)
    state = ward.status("bad")["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "Refused")
    assert state["message"].startswith("spec.minAvailable: 3 is more than the 2 replicas of all tasks")
    assert [told.message for told in ward.told if told.is_warning] == [state["message"]]
    assert ward.phase("good") == "Running"
    assert ward.writes("bad") == []
    ward.change(JOB, "bad", {"spec": {"minAvailable": 2}})
    ward.run(120)
    assert ward.phase("bad") == "Running"
    assert "message" not in ward.status("bad")["state"]


def test_a_job_with_a_plugin_that_is_unknown_is_set_aside_and_may_be_made_anew() -> None:
    ward = jobs.ward()
    ward.world.load([jobs.job("bad", jobs.task("worker", 2), plugins={"magic": []})])
    ward.run(60)
    state = ward.status("bad")["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "Refused")
    assert state["message"].startswith("spec.plugins.magic: unknown; write one of env, svc, ssh")
    assert ward.writes("bad") == []
    ward.world.store.delete(JOB, "default", "bad")
    ward.submit(jobs.job("bad", jobs.task("worker", 2), plugins={"env": []}))
    ward.run(120)
    assert ward.phase("bad") == "Running"


def test_asked_again_the_controller_writes_nothing() -> None:
    ward = jobs.ward()
    plugins: dict[str, list[str]] = {"env": [], "svc": [], "ssh": []}
    ward.submit(jobs.job("train", jobs.task("worker", 2, duration="10m"), plugins=plugins))
    for moment in (1, 30, 60, 300, 700, 900):
        ward.run(moment)
        assert ward.writes("train") == []


def test_the_keys_of_a_job_are_made_once_though_every_pair_is_another() -> None:
    made: list[str] = []

    def counted(uid: str) -> KeyPair:
        made.append(uid)
        return new_pair(uid)

    ward = jobs.ward(make_pair=counted)
    ward.submit(jobs.job("train", jobs.task("worker", 2, duration="10m"), plugins={"ssh": []}))
    ward.run(1)
    secret = ward.world.store.get(SECRET, "default", "train-ssh")
    ward.run(900)
    assert ward.writes("train") == []
    assert ward.world.store.get(SECRET, "default", "train-ssh") == secret
    assert made == [ward.job("train")["metadata"]["uid"]]


def test_after_a_crash_between_two_writes_the_next_look_goes_on() -> None:
    ward = jobs.ward()
    ward.submit(jobs.job("bert", jobs.task("worker", 2), policies=RESTART))
    ward.run(60)
    ward.change(JOB, "bert", {"metadata": {"annotations": {MEMORY: "nonsense"}}})
    ward.change(JOB, "bert", {"status": {"state": {"phase": "Restarting"}, "version": 1, "retryCount": 1}}, is_status=True)
    ward.run(120)
    assert (ward.phase("bert"), ward.status("bert")["version"]) == ("Running", 1)
    assert {annotations(ward.pod(name))["volcano.sh/job-version"] for name in ward.pods()} == {"1"}


def test_the_group_of_a_job_says_what_has_to_start_together() -> None:
    ward = jobs.ward(gpus=8)
    worker = jobs.task("worker", 4, minAvailable=2, cpu=2, gpus=1)
    ward.submit(
        jobs.job("llama", jobs.task("ps", cpu=1), worker, annotations={"team": "a", "phalanx.dev/duration": "1h"}, minAvailable=3)
    )
    ward.run(5)
    group = ward.group("llama")
    assert group["spec"] == {
        "minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}, "queue": "default",
        "minResources": {"cpu": "5", "nvidia.com/gpu": "2"},
    }  # fmt: skip
    assert group["metadata"]["annotations"] == {"team": "a", "phalanx.dev/duration": "1h", "volcano.sh/job-version": "0"}
    pod = ward.pod("llama-worker-3")
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["labels"]["volcano.sh/task-index"] == "3"
    assert annotations(pod)["scheduling.k8s.io/group-name"] == group["metadata"]["name"]
    assert pod["metadata"]["ownerReferences"][0]["uid"] == ward.job("llama")["metadata"]["uid"]


def test_volumes_are_claimed_and_mounted() -> None:
    ward = jobs.ward()
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    ward.submit(jobs.job("train", jobs.task("worker"), volumes=[{"mountPath": "/data", "volumeClaim": claim}]))
    ward.run(5)
    found = ward.world.store.items(kind_of({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}))
    assert [item["metadata"]["name"] for item in found] == ["train-volume-0"]
    pod = ward.pod("train-worker-0")
    assert pod["spec"]["volumes"] == [{"name": "train-volume-0", "persistentVolumeClaim": {"claimName": "train-volume-0"}}]
    assert pod["spec"]["containers"][0]["volumeMounts"] == [{"name": "train-volume-0", "mountPath": "/data"}]


def test_priorities_and_host_networks_are_handed_to_pods() -> None:
    ward = jobs.ward()
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 5}
    ward.submit(low, jobs.job("train", jobs.task("worker", spec={"hostNetwork": True}), priorityClassName="low"))
    ward.run(5)
    spec = ward.pod("train-worker-0")["spec"]
    assert (spec["priority"], spec["dnsPolicy"]) == (5, "ClusterFirstWithHostNet")
    assert ward.group("train")["spec"]["priorityClassName"] == "low"
