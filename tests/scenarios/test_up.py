"""A cluster that keeps running: `phalanx up` as a process of its own, and the other commands as people type them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from phalanx.dev.processes import launch
from phalanx.sim.sshkeys import pair_for
from phalanx.testing import build
from tests.support import volcano_jobs as jobs

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 30.0
Run = subprocess.CompletedProcess[str]
PHALANX = [sys.executable, "-m", "phalanx"]


class Site:
    """A folder in which clusters leave their address, and those that were started there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        others = ("PHALANX_SERVER", "KUBERNETES_SERVICE_HOST")
        self.environment = {key: value for key, value in os.environ.items() if key not in others}
        self.environment |= {"XDG_RUNTIME_DIR": str(folder), "PYTHONPATH": str(ROOT / "src"), "KUBECONFIG": str(folder / "none")}
        self._started: list[subprocess.Popen[str]] = []

    def up(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a cluster; return when it says that it is there."""
        process = self.start("up", *arguments)
        self._started.append(process)
        assert " at http://127.0.0.1:" in _stream(process.stdout).readline(), _stream(process.stderr).read()
        return process

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and leave it to the test to end it."""
        return launch([*PHALANX, *arguments], cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def make_settings(self, name: str, colour: str) -> None:
        """Let there be a ConfigMap."""
        file = self.folder / f"{name}.yaml"
        file.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{colour: {colour}}}\n")
        assert self.run("apply", "-f", str(file)).returncode == 0

    def run(self, *arguments: str) -> Run:
        """Run a command to its end."""
        return subprocess.run(
            [*PHALANX, *arguments],
            cwd=ROOT,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def until(self, *arguments: str, shows: Callable[[str], object]) -> str:
        """Run a command again and again until its result is the one that is waited for."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not shows(text := self.run(*arguments).stdout):
            assert time.monotonic() < end, text
            time.sleep(0.2)
        return text

    @staticmethod
    def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End a cluster; return its exit status and its last words."""
        process.send_signal(number)
        _, words = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, words

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def has_row(name: str, status: str) -> Callable[[str], object]:
    return lambda text: re.search(rf"^{name} .*\b{status}\b", text, re.MULTILINE)


def test_a_gang_runs_another_waits_and_is_told_why(site: Site) -> None:
    site.up("examples/deadlock/nodes.yaml")
    applied = site.run("apply", "-f", "examples/deadlock")
    assert applied.returncode == 0
    lines = applied.stdout.splitlines()
    assert "namespace/research created, as it was missing" in lines
    assert "podgroup.scheduling.volcano.sh/bert created" in lines
    assert "node/gpu-1 unchanged" in lines

    table = site.until("get", "gangs", "-n", "research", shows=has_row("bert", r"Runs +3 +3 +3"))
    assert re.search(r"^resnet +volcano +default +Waits +3 +0 +0 .* 0 of 3 tasks fit; 3 more places", table, re.MULTILINE)

    described = site.run("describe", "gang", "resnet", "-n", "research").stdout
    assert "Why:         0 of 3 tasks fit; 3 more places for 1 nvidia.com/gpu" in described
    assert re.search(r"Unschedulable +True +NotEnoughResources", described)
    assert re.search(r"Warning +FailedScheduling +podgroup/resnet", described)
    assert re.search(r"Shares:\n +RESOURCE +DESERVED +ALLOCATED", site.run("describe", "queue", "default").stdout)
    members = site.run("describe", "gang/bert", "-n", "research").stdout
    assert re.search(r"bert-0 +Running +gpu-\d", members)
    assert "Successfully assigned research/bert-0 to gpu-" in members

    assert site.run("delete", "gang", "bert", "-n", "research").returncode == 0
    site.until("get", "gangs", "-n", "research", shows=has_row("resnet", r"Runs +3 +3 +3"))


RUNAWAY = """
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack}
spec: {tier: 1, members: [{type: Node, selector: {regexMatch: {pattern: "^(a+)+b$"}}}]}
"""


def test_a_hypernode_with_a_pattern_that_other_engines_never_finish_stops_nobody(site: Site, tmp_path: Path) -> None:
    nodes, rack = tmp_path / "nodes.yaml", tmp_path / "rack.yaml"
    nodes.write_text(json.dumps(build.node("a" * 63, cpu=64, memory="512Gi", gpus=8)))
    rack.write_text(RUNAWAY)
    process = site.up(str(nodes))
    assert site.run("apply", "-f", str(rack)).stdout == "hypernode.topology.volcano.sh/rack created\n"
    site.run("apply", "-f", "examples/deadlock/jobs.yaml")
    site.until("get", "gangs", "-n", "research", shows=has_row("bert", r"Runs +3 +3 +3"))
    assert site.stop(process)[0] == 0


def test_applying_twice_changes_nothing_and_a_change_is_applied(site: Site, tmp_path: Path) -> None:
    site.up("--nodes", "1")
    manifest = tmp_path / "queue.yaml"
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: team, labels: {a: b}}\nspec: {weight: 2}\n"
    manifest.write_text(queue)
    assert site.run("apply", "-f", str(manifest)).stdout == "queue.scheduling.volcano.sh/team created\n"
    assert site.run("apply", "-f", str(manifest)).stdout == "queue.scheduling.volcano.sh/team unchanged\n"
    manifest.write_text(queue.replace("weight: 2", "weight: 5").replace(", labels: {a: b}", ""))
    assert site.run("apply", "-f", str(manifest)).stdout == "queue.scheduling.volcano.sh/team configured\n"
    found = json.loads(site.run("get", "queue", "team", "-o", "json").stdout)
    assert found["spec"]["weight"] == 5
    assert not found["metadata"].get("labels")
    assert site.run("delete", "-f", str(manifest)).stdout == "queue.scheduling.volcano.sh/team deleted\n"


def test_a_node_that_offers_more_is_configured(site: Site, tmp_path: Path) -> None:
    site.up("--nodes", "0")
    manifest = tmp_path / "node.yaml"
    for amount, word in (("8", "created"), ("16", "configured")):
        manifest.write_text(f"apiVersion: v1\nkind: Node\nmetadata: {{name: big}}\nstatus: {{allocatable: {{cpu: '{amount}'}}}}\n")
        assert site.run("apply", "-f", str(manifest)).stdout == f"node/big {word}\n"
    assert json.loads(site.run("get", "node/big", "-o", "json").stdout)["status"]["allocatable"] == {"cpu": "16"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_everything_is_there_again_after_a_restart(site: Site, tmp_path: Path, number: signal.Signals) -> None:
    state = tmp_path / "state.json"
    first = site.up("examples/deadlock", "--state", str(state))
    site.until("get", "gangs", "-n", "research", shows=has_row("bert", "Runs"))
    before = json.loads(site.run("get", "pods", "-A", "-o", "json").stdout)["items"]
    status, words = site.stop(first, number)
    assert (status, words.splitlines()[-1]) == (0, f"stopped; the state is in {state}")

    site.up("--state", str(state))
    after = json.loads(site.run("get", "pods", "-A", "-o", "json").stdout)["items"]
    assert [(item["metadata"]["uid"], item["spec"].get("nodeName")) for item in after] == [
        (item["metadata"]["uid"], item["spec"].get("nodeName")) for item in before
    ]
    assert site.run("get", "nodes", "-o", "name").stdout.splitlines() == ["node/gpu-1", "node/gpu-2", "node/gpu-3"]
    applied = site.run("apply", "-f", "examples/full-queue").stdout
    uids = [item["metadata"]["uid"] for item in json.loads(site.run("get", "pods", "-A", "-o", "json").stdout)["items"]]
    assert "pod/whisper-0 created" in applied
    assert len(uids) == len(set(uids))


def test_the_address_is_taken_back_at_the_end(site: Site) -> None:
    process = site.up()
    assert site.run("get", "nodes", "-o", "name").stdout.splitlines() == [f"node/node-{number}" for number in range(1, 5)]
    assert site.stop(process)[0] == 0
    refused = site.run("get", "nodes")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert re.fullmatch(
        r"error: no cluster at .*: start one with 'phalanx up', or name one with --server or --kubeconfig\n", refused.stderr
    )


def test_a_watch_shows_changes_until_it_is_interrupted(site: Site) -> None:
    site.up("--nodes", "1")
    watch = site.start("get", "namespaces", "-w")
    lines = _stream(watch.stdout)
    while not lines.readline().startswith("kube-system"):
        pass
    site.until("apply", "-n", "one", "-f", "examples/deadlock", shows=lambda text: "namespace/research" in text)
    assert lines.readline().startswith("research ")
    watch.send_signal(signal.SIGINT)
    assert watch.communicate(timeout=PATIENCE_SECONDS)[1] == ""
    assert watch.returncode == 0


def test_a_watch_of_named_objects_shows_no_others(site: Site) -> None:
    site.up("--nodes", "0")
    for name in ("other", "seen"):
        site.make_settings(name, "red")
    watch = site.start("get", "configmap/seen", "-o", "name", "-w")
    lines = _stream(watch.stdout)
    assert lines.readline() == "configmap/seen\n"
    for name in ("other", "seen"):
        site.make_settings(name, "blue")
    assert lines.readline() == "configmap/seen\n"
    watch.send_signal(signal.SIGINT)
    assert watch.communicate(timeout=PATIENCE_SECONDS) == ("", "")


def test_time_can_pass_faster(site: Site, tmp_path: Path) -> None:
    site.up("--nodes", "1", "--speed", "600x")
    manifest = tmp_path / "short.yaml"
    manifest.write_text("""
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: short, annotations: {phalanx.dev/duration: 20m}}
spec: {minMember: 1, queue: default}
---
apiVersion: v1
kind: Pod
metadata: {name: short-0, annotations: {scheduling.k8s.io/group-name: short}}
spec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {nvidia.com/gpu: 8}}}]}
""")
    assert site.run("apply", "-f", str(manifest)).returncode == 0
    site.until("get", "gangs", shows=has_row("short", "Completed"))


def test_keys_of_a_job_do_not_follow_from_its_uid(site: Site, tmp_path: Path) -> None:
    manifest = tmp_path / "job.yaml"
    manifest.write_text(json.dumps(jobs.job("train", jobs.task("worker"), plugins={"ssh": []})))
    site.up("--nodes", "1")
    assert site.run("apply", "-f", str(manifest)).returncode == 0
    secret = json.loads(site.until("get", "secret", "train-ssh", "-o", "json", shows=lambda text: "id_rsa.pub" in text))
    job = json.loads(site.run("get", "vcjob", "train", "-o", "json").stdout)
    assert b64decode(secret["data"]["id_rsa.pub"]).decode() != pair_for(job["metadata"]["uid"]).public


def test_profile_kai_decides_too(site: Site) -> None:
    site.up("examples/kai-fair-share", "--profile", "kai")
    site.until("get", "gangs", "-A", shows=lambda text: "Runs" in text)


# --- what is wrong -------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_refused(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = site.run("up", "--port", str(port))
    assert refused.returncode == 1
    assert (
        refused.stderr == f"error: port {port} of 127.0.0.1 cannot be opened: address already in use; port 0 takes any free one\n"
    )


def test_what_is_not_there_or_not_known_is_told(site: Site, tmp_path: Path) -> None:
    site.up("examples/deadlock")
    assert site.run("get", "pdos").stderr == "error: unknown kind 'pdos'; did you mean 'pods'?\n"
    assert site.run("get", "pod", "nobody").stderr == 'error: pods "nobody" not found\n'
    elsewhere = "not found in this namespace; there is one with -n research\n"
    assert site.run("get", "pod", "bert-0").stderr == f'error: pods "bert-0" {elsewhere}'
    assert site.run("describe", "gang", "bert").stderr == f'error: gang "bert" {elsewhere}'
    empty = site.run("get", "pods")
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "no pods in namespace default; -A shows all namespaces\n")
    assert site.run("delete", "pod", "nobody").returncode == 1


def test_a_broken_manifest_is_refused_whole_and_a_refused_object_alone(site: Site, tmp_path: Path) -> None:
    site.up("--nodes", "1")
    broken = tmp_path / "broken.yaml"
    broken.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: [\n")
    refused = site.run("apply", "-f", str(broken))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: {broken}, line ")
    mixed = tmp_path / "mixed.yaml"
    mixed.write_text(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
    )
    partly = site.run("apply", "-f", str(mixed))
    assert (partly.returncode, partly.stdout) == (1, "configmap/b created\n")
    assert partly.stderr.startswith(f"error: {mixed}, document 1: no kind 'Ingress' in group 'networking.k8s.io' is served here")


def test_a_gang_that_pods_alone_make_is_shown_like_any_other(site: Site) -> None:
    site.up("--nodes", "1", "--gpus", "3")
    site.run("apply", "-f", "examples/yunikorn-timeout/applications.yaml")
    site.until("get", "gangs", "-n", "research", shows=lambda text: re.search(r"strict .* Waits .*3 of 4 tasks fit", text))
    described = site.run("describe", "gang", "strict", "-n", "research").stdout
    assert re.search(r"Group: +made by its pods \(yunikorn\)", described)
    assert re.search(r"Phase: +Accepted", described)
    assert re.search(r"strict-worker-3 +Pending", described)
    assert site.run("delete", "gang", "strict", "-n", "research").returncode == 0
    site.until("get", "gangs", "-n", "research", shows=lambda text: "strict" not in text)


def test_a_gang_that_was_given_up_says_so(site: Site) -> None:
    site.up("--nodes", "1", "--gpus", "3", "--speed", "600x")
    site.run("apply", "-f", "examples/yunikorn-timeout/applications.yaml")
    described = site.until("describe", "gang", "patient", "-n", "research", shows=lambda text: "GangDegraded" in text)
    assert re.search(
        r"GangDegraded +True +ResourceReservationTimeout +there was no room for the whole application within 600 s", described
    )
    assert re.search(r"Warning +GangDegraded +pod/patient-worker-0", described)


def test_a_second_cluster_does_not_take_over_from_the_first(site: Site) -> None:
    first = site.up("--nodes", "1")
    second = site.up("--nodes", "2")
    assert site.run("get", "nodes", "-o", "name").stdout == "node/node-1\n"
    code, words = site.stop(second)
    note = re.search(r"note: other commands go to the cluster at (\S+) \(process (\d+)\), .*add --server (\S+)\n", words)
    assert code == 0
    assert note is not None, words
    assert int(note[2]) == first.pid
    assert site.run("get", "nodes", "-o", "name").stdout == "node/node-1\n"


def test_two_clusters_cannot_use_one_state(site: Site, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    first = site.up("--nodes", "1", "--state", str(state))
    second = site.run("up", "--nodes", "2", "--state", str(state))
    assert (second.returncode, second.stdout) == (1, "")
    user = f"the 'phalanx up' with process id {first.pid}"
    assert second.stderr == f"error: {state}: is used by {user}; end that, or name another file\n"
    assert site.stop(first)[0] == 0
    again = site.up("--state", str(state))
    assert site.run("get", "nodes", "-o", "name").stdout == "node/node-1\n"
    again.kill()
    again.wait()
    assert site.stop(site.up("--state", str(state)))[0] == 0


def test_a_state_is_a_file_of_its_own(site: Site) -> None:
    refused = site.run("up", "--state", "/dev/full")
    assert (refused.returncode, refused.stderr) == (1, "error: /dev/full: is no regular file; name a file of its own\n")


def test_a_job_is_suspended_and_resumed_and_its_queue_closed_and_opened(site: Site) -> None:
    site.up("examples/volcano-job/nodes.yaml")
    assert site.run("apply", "-f", "examples/volcano-job").returncode == 0
    at_work = ("get", "vcjob", "wide-deep", "-n", "ads")
    site.until(*at_work, shows=has_row("wide-deep", "Running"))
    assert site.run("suspend", "wide-deep", "-n", "ads").stdout == "job.batch.volcano.sh/wide-deep suspended\n"
    site.until(*at_work, shows=has_row("wide-deep", "Aborted"))
    assert site.run("get", "pods", "-n", "ads").stdout == ""
    assert site.run("queue", "close", "default").stdout.startswith("queue.scheduling.volcano.sh/default ")
    assert site.run("resume", "wide-deep", "-n", "ads").stdout == "job.batch.volcano.sh/wide-deep resumed\n"
    assert site.run("queue", "open", "default").stdout == "queue.scheduling.volcano.sh/default opened\n"
    site.until(*at_work, shows=has_row("wide-deep", "Running"))
    refused = site.run("queue", "close", "root")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "root: stays open: it is above all other queues; close those below it" in refused.stderr


def test_wait_returns_when_a_gang_runs_and_when_it_is_gone(site: Site) -> None:
    site.up("examples/deadlock/nodes.yaml")
    assert site.run("diff", "-f", "examples/deadlock").returncode == 1
    assert site.run("apply", "-f", "examples/deadlock").returncode == 0
    runs = site.run("wait", "gang/bert", "-n", "research", "--for=condition=Running", "--timeout=20s")
    assert (runs.returncode, runs.stdout) == (0, "gang/bert condition met\n")
    waits = site.run("wait", "gang/resnet", "-n", "research", "--for=condition=Scheduled", "--timeout=0")
    assert (waits.returncode, waits.stderr) == (1, "error: timed out waiting for the condition on gang/resnet\n")
    assert site.run("delete", "gang", "bert", "-n", "research").returncode == 0
    assert site.run("wait", "gang/bert", "-n", "research", "--for=delete", "--timeout=20s").returncode == 0
    started = site.run("wait", "gang/resnet", "-n", "research", "--for=condition=Scheduled", "--timeout=20s")
    assert started.stdout == "gang/resnet condition met\n"
