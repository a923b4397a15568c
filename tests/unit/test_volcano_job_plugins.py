"""Job plugins: what each adds to pods, and the objects it makes."""

from base64 import b64decode
from typing import Any

import msgspec

from phalanx.controllers.volcano_job.job import ParsedJob
from phalanx.controllers.volcano_job.plugins import objects_for
from phalanx.controllers.volcano_job.pod_builder import pod_of
from phalanx.model.kinds import Document
from phalanx.sim.sshkeys import pair_for
from tests.support import volcano_jobs as jobs


def job(*tasks: dict[str, Any], **plugins: list[str]) -> ParsedJob:
    return jobs.read("train", *tasks, plugins=plugins)


def pod(found: ParsedJob, name: str, index: int = 0) -> Document:
    task = found.task(name)
    assert task is not None
    return pod_of(found, task, index)


def variables(found: Document, group: str = "containers") -> dict[str, str]:
    return {item["name"]: item["value"] for item in found["spec"][group][0].get("env", ()) if "value" in item}


def objects(found: ParsedJob) -> dict[str, Document]:
    return {f"{item['kind']} {item['metadata']['name']}": item for item in objects_for(found, pair_for)}


FIRST = {"initContainers": [{"name": "first", "image": "busybox:1"}]}


def test_env_tells_the_index_to_every_container() -> None:
    found = pod(job(jobs.task("worker", 3, spec=FIRST), env=[]), "worker", 2)
    expected = {"VK_TASK_INDEX": "2", "VC_TASK_INDEX": "2"}
    assert variables(found) == expected
    assert variables(found, "initContainers") == expected


def test_svc_gives_pods_names_and_tells_them_of_each_other() -> None:
    made = job(jobs.task("ps"), jobs.task("data-worker", 2), svc=[])
    spec = pod(made, "data-worker", 1)["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("train-data-worker-1", "train")
    assert spec["volumes"] == [{"name": "train-svc", "configMap": {"name": "train-svc"}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "train-svc", "mountPath": "/etc/volcano"}]
    source = {"configMapKeyRef": {"name": "train-svc", "key": "VC_DATA_WORKER_HOSTS"}}
    assert {"name": "VC_DATA_WORKER_HOSTS", "valueFrom": source} in spec["containers"][0]["env"]


def test_svc_makes_hosts_a_service_and_a_network_policy() -> None:
    found = objects(job(jobs.task("ps"), jobs.task("data-worker", 2), svc=[]))
    assert list(found) == ["ConfigMap train-svc", "Service train", "NetworkPolicy train"]
    assert found["ConfigMap train-svc"]["data"] == {
        "ps.host": "train-ps-0.train", "VC_PS_HOSTS": "train-ps-0.train", "VC_PS_NUM": "1",
        "data_worker.host": "train-data-worker-0.train\ntrain-data-worker-1.train",
        "VC_DATA_WORKER_HOSTS": "train-data-worker-0.train,train-data-worker-1.train", "VC_DATA_WORKER_NUM": "2",
    }  # fmt: skip
    own = {"volcano.sh/job-name": "train", "volcano.sh/job-namespace": "default"}
    assert found["Service train"]["spec"] == {"clusterIP": "None", "selector": own, "publishNotReadyAddresses": False}
    assert found["NetworkPolicy train"]["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": own}}]}]
    assert found["Service train"]["metadata"]["ownerReferences"][0]["uid"] == "u-1"


def test_svc_can_do_without_a_policy_and_publish_early() -> None:
    found = objects(job(jobs.task("ps"), svc=["--disable-network-policy", "--publish-not-ready-addresses=true"]))
    assert list(found) == ["ConfigMap train-svc", "Service train"]
    assert found["Service train"]["spec"]["publishNotReadyAddresses"] is True


def test_a_host_name_of_its_own_is_the_only_host_of_a_task() -> None:
    made = job(jobs.task("worker", 2, spec={"hostname": "box", "subdomain": "lab"}), svc=[])
    assert objects(made)["ConfigMap train-svc"]["data"]["VC_WORKER_HOSTS"] == "box.lab"
    assert pod(made, "worker")["spec"]["hostname"] == "box"


def test_ssh_makes_a_secret_and_mounts_it_for_root() -> None:
    made = job(jobs.task("worker", 1), ssh=["--ssh-port", "2022"])
    data = {name: b64decode(text).decode() for name, text in objects(made)["Secret train-ssh"]["data"].items()}
    assert data["id_rsa"] == pair_for("u-1").private
    assert data["id_rsa.pub"].startswith("ssh-ed25519 ")
    assert data["config"] == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        "Host train-worker-0\n  HostName train-worker-0.train\n  Port 2022\n"
    )  # fmt: skip
    spec = pod(made, "worker")["spec"]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "train-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}]
    secret = spec["volumes"][0]["secret"]
    assert secret["defaultMode"] == 0o600
    assert {"key": "id_rsa.pub", "path": ".ssh/authorized_keys"} in secret["items"]


def test_ssh_keys_go_where_others_than_root_read_them() -> None:
    spec = pod(job(jobs.task("worker"), ssh=["--ssh-key-file-path=/home/me/.ssh"]), "worker")["spec"]
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/home/me/.ssh"
    assert spec["volumes"][0]["secret"]["defaultMode"] == 0o755
    spec = pod(job(jobs.task("worker"), ssh=["--no-root"]), "worker")["spec"]
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/etc/volcano/.ssh"


def test_tensorflow_tells_who_is_who() -> None:
    made = job(jobs.task("ps"), jobs.task("trainer", 2), tensorflow=["--worker=trainer", "--port=3333"])
    config = msgspec.json.decode(variables(pod(made, "trainer", 1))["TF_CONFIG"])
    workers = ["train-trainer-0.train:3333", "train-trainer-1.train:3333"]
    assert config == {"cluster": {"ps": ["train-ps-0.train:3333"], "worker": workers}, "task": {"type": "worker", "index": 1}}


def test_tensorflow_alone_needs_nothing() -> None:
    assert "TF_CONFIG" not in variables(pod(job(jobs.task("worker"), tensorflow=[]), "worker"))


def test_pytorch_tells_where_the_master_is() -> None:
    made = job(jobs.task("master"), jobs.task("worker", 2), pytorch=[])
    found = pod(made, "worker", 1)
    assert variables(found) == {"MASTER_ADDR": "train-master-0.train", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "2"}
    assert found["spec"]["containers"][0]["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456}]
    assert variables(pod(made, "master"))["RANK"] == "0"
    assert "initContainers" not in found["spec"]


def test_pytorch_workers_can_wait_for_the_master() -> None:
    made = job(jobs.task("master"), jobs.task("worker", 2), pytorch=["--wait-master-enabled", "--wait-master-timeout=60"])
    first = pod(made, "worker")["spec"]["initContainers"][0]
    assert first["name"] == "wait-for-master"
    assert "nc -z train-master-0.train 23456" in first["command"][-1]
    assert "-lt 60" in first["command"][-1]
    assert "initContainers" not in pod(made, "master")["spec"]


def test_pytorch_without_a_master_changes_nothing() -> None:
    assert variables(pod(job(jobs.task("worker", 2), pytorch=[]), "worker")) == {}


def test_mpi_tells_the_master_who_the_workers_are() -> None:
    made = job(jobs.task("master", spec=FIRST), jobs.task("worker", 2), mpi=["--port=2022"])
    master = pod(made, "master")
    assert variables(master)["MPI_HOST"] == "train-worker-0.train,train-worker-1.train"
    assert variables(master, "initContainers")["MPI_HOST"] == "train-worker-0.train,train-worker-1.train"
    worker = pod(made, "worker")
    assert "MPI_HOST" not in variables(worker)
    assert worker["spec"]["containers"][0]["ports"] == [{"name": "mpijob-port", "containerPort": 2022}]
    assert {"Secret train-ssh", "Service train"} <= set(objects(made))


def test_a_port_that_is_open_is_not_opened_again() -> None:
    container = {"name": "main", "ports": [{"containerPort": 22, "name": "ssh"}]}
    found = pod(job(jobs.task("master", spec={"containers": [container]}), mpi=[]), "master")
    assert found["spec"]["containers"][0]["ports"] == [{"containerPort": 22, "name": "ssh"}]


def test_ray_starts_a_head_and_workers_that_join_it() -> None:
    head = jobs.task("head", spec={"containers": [{"name": "head"}, {"name": "log"}]})
    worker = jobs.task("worker", 2, spec={"containers": [{"name": "worker"}]})
    made = job(head, worker, ray=["--port=7000"])
    containers = pod(made, "head")["spec"]["containers"]
    ports = "--port=7000 --dashboard-port=8265 --ray-client-server-port=10001"
    assert containers[0]["command"] == ["sh", "-c", f"ray start --head --block --dashboard-host=0.0.0.0 {ports}"]
    assert [port["containerPort"] for port in containers[0]["ports"]] == [7000, 8265, 10001]
    assert "command" not in containers[1]
    command = pod(made, "worker", 1)["spec"]["containers"][0]["command"]
    assert command == ["sh", "-c", "ray start --block --address=train-head-0.train:7000"]
    service = objects(made)["Service train-head-svc"]["spec"]
    assert service["selector"]["volcano.sh/task-spec"] == "head"
    assert [port["targetPort"] for port in service["ports"]] == ["gcs", "dashboard", "client-server"]


def test_hcclrank_writes_the_rank_on_the_pod() -> None:
    made = job(jobs.task("master", 2), jobs.task("worker", 2), jobs.task("other"), hcclrank=[])
    ranks = [pod(made, name, index)["metadata"]["annotations"].get("hccl/rankIndex") for name, index in
             (("master", 1), ("worker", 0), ("worker", 1), ("other", 0))]  # fmt: skip
    assert ranks == ["1", "2", "3", None]


def test_hcclrank_believes_pytorch_and_the_template() -> None:
    made = job(jobs.task("master"), jobs.task("worker", 2), hcclrank=["--worker=none"], pytorch=[])
    assert pod(made, "worker", 1)["metadata"]["annotations"]["hccl/rankIndex"] == "2"
    task = jobs.task("worker", 1)
    task["template"]["metadata"] = {"annotations": {"hccl/rankIndex": "7"}}
    assert pod(job(task, hcclrank=[]), "worker")["metadata"]["annotations"]["hccl/rankIndex"] == "7"


def test_the_template_itself_is_never_changed() -> None:
    made = job(jobs.task("master"), jobs.task("worker", 2), env=[], svc=[], ssh=[], pytorch=[], mpi=[])
    before = msgspec.json.encode(made.document)
    pod(made, "worker")
    assert msgspec.json.encode(made.document) == before
