"""`phalanx run`: what is typed wrongly is told in a sentence, and a cluster that is not there is waited for."""

import json
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.run import CONTROLLER_SETS, RunOptions, _chosen
from phalanx.controllers.builtin import standard_controllers
from phalanx.controllers.jobflow import JobTemplateController
from phalanx.dev.processes import launch, wait_until
from phalanx.sim.sshkeys import pair_for
from phalanx.store.kube.client import Client
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import volcano_jobs as jobs
from tests.support.http_api import Connection, served

PATIENCE_SECONDS = 20.0
PODS = "/api/v1/pods"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    return written(tmp_path, "http://127.0.0.1:1")


def written(folder: Path, server: str) -> Path:
    """Write a kubeconfig with one context."""
    file = folder / "kubeconfig"
    clusters, contexts = [{"name": "c", "cluster": {"server": server}}], [{"name": "here", "context": {"cluster": "c"}}]
    file.write_text(yaml.safe_dump({"current-context": "here", "clusters": clusters, "contexts": contexts}))
    return file


class Named(JobTemplateController):
    """A controller under another name."""

    def __init__(self, name: str) -> None:
        self.name = name


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments], prog_name="phalanx")


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--context", "there"], 1, "no context 'there'; did you mean 'here'?\n"),
        (["--controllers", "dance"], 1, "error: --controllers: no controller is called 'dance'; write some of binder, "),
        (["--controllers", "-dance"], 1, "no controller is called '-dance'"),
        (["--profile", "volcan"], 1, "error: profile: unknown profile 'volcan'; did you mean 'volcano'?\n"),
        (["--config", "nowhere.yaml"], 1, "error: nowhere.yaml: no such file; 'phalanx config show' prints one to begin with\n"),
        (["--config", "-"], 2, "--config: the configuration is read again when it changes; name a file instead of '-'"),
        (["--config", "a", "--profile", "b"], 2, "--config and --profile exclude each other"),
        (["--group-defaults", "groups"], 2, "--group-defaults: 'groups' is no place; write for example phalanx-system/groups"),
        (["--http", "nowhere"], 2, "--http: 'nowhere' is no address; write for example 0.0.0.0:8080"),
        (["--http", "127.0.0.1:99999"], 2, "--http: '127.0.0.1:99999' is no address; write for example 0.0.0.0:8080"),
        (["--http", "203.0.113.7:80"], 1, "error: port 80 of 203.0.113.7 cannot be opened: "),
        (["--tls-cert-file", "a", "--http", ":0"], 2, "a certificate and its key go together; name both"),
        (["--authentication", "token"], 2, "nothing is served; add --http HOST:PORT"),
        (["--authentication", "token", "--http", ":0"], 2, "tokens would be sent in the clear; add --tls-cert-file"),
        (
            ["--http", ":0", "--tls-cert-file", "/no/a", "--tls-private-key-file", "/no/b"],
            1,
            "error: /no/a: cannot be read: No such",
        ),
        (["--lease-duration", "1"], 2, "--lease-duration: leases are renewed every few seconds; write 3 or more"),
        (["--lease-duration", "soon"], 2, "'soon' is not a valid float"),
        (["--scheduler-name", ""], 2, "--scheduler-name: empty; write what pods have as spec.schedulerName, for example volcano"),
        (["--log-format", "xml"], 2, "'xml' is not one of 'text', 'json'"),
        (["-v", "10"], 2, "10 is not in the range 0<=x<=9"),
        (["-v", "2", "--gang", "ml/bert"], 2, "--gang: it narrows the trace; add -v 3, -v 4 or -v 5"),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(kubeconfig: Path, arguments: list[str], status: int, sentence: str) -> None:
    refused = run("--kubeconfig", str(kubeconfig), *arguments)
    assert (refused.exit_code, refused.stdout) == (status, "")
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    refused = run("--kubeconfig", "/no/such/file")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: /no/such/file: ")
    assert refused.stderr.endswith("; name another file with --kubeconfig or $KUBECONFIG\n")


def test_without_any_cluster_it_says_how_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    refused = run()
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: no cluster: ")
    assert "name a file with --kubeconfig" in refused.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("actions: dance\n", "actions: unknown action 'dance'; known: allocate"),
        ("actions: [", ", line 2, column 1: "),
        ("", "empty; see 'phalanx config show' for a whole configuration"),
    ],
)
def test_a_broken_configuration_is_told_with_its_place(kubeconfig: Path, tmp_path: Path, text: str, sentence: str) -> None:
    config = tmp_path / "phalanx.yaml"
    config.write_text(text)
    refused = run("--kubeconfig", str(kubeconfig), "--config", str(config))
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"error: {config}")
    assert sentence in refused.stderr


@pytest.mark.parametrize(
    ("typed", "host", "port"), [(":8080", "0.0.0.0", 8080), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:9", "::1", 9)]
)
def test_an_address_is_a_host_and_a_port(typed: str, host: str, port: int) -> None:
    address = RunOptions(
        kubeconfig=None, context=None, config=None, profile=None, gates=(), names=("phalanx",), leader_elect=True,
        lease_name="a", lease_namespace="b", lease_duration=15.0, http=typed, tls_cert_file=None, tls_private_key_file=None,
        authentication="none",
        verbosity=0, gangs=(), log_format="text", controllers="*", group_as="kai", group_defaults="", levels=(),
        pod_events=True, reservation_image=None, placeholder_image=None,
    ).address(Client("http://127.0.0.1:1"))  # fmt: skip
    assert address is not None
    assert (address.host, address.port) == (host, port)


@pytest.mark.parametrize(
    ("words", "names"),
    [("*", "a b c"), ("a, c", "a c"), ("-b", "a c"), ("*,-a,-b", "c"), ("a,b,-b", "a"), ("", "")],
)
def test_controllers_are_chosen_by_their_names(words: str, names: str) -> None:
    controllers = [Named(name) for name in "abc"]
    assert [item.name for item in _chosen(words, controllers)] == names.split()


HARMLESS = ("queue-status", "provisioning", "first-queues")
"""Controllers that only read what the controllers of Volcano keep, or do what its scheduler does."""


def test_one_name_switches_off_what_the_controllers_of_volcano_do() -> None:
    every = standard_controllers(pair_for, has_admission=True)
    left = {item.name for item in _chosen("-volcano", every)}
    assert {item.name for item in every} - left == set(CONTROLLER_SETS["volcano"])
    kinds = {kind for item in every if item.name in left and item.name not in HARMLESS for kind in item.watches}
    assert {kind.kind for kind in kinds if "volcano" in kind.group} == {"HyperNode", "PodGroup"}
    page = Path(__file__).parents[2] / "docs" / "howto" / "run-on-a-cluster.md"
    assert all(f"`{name}`" in page.read_text() for name in CONTROLLER_SETS["volcano"])


def test_help_shows_examples_and_every_option() -> None:
    text = run("--help").stdout
    assert "phalanx run --kubeconfig ~/.kube/config --scheduler-name volcano" in text
    for option in ("--lease-duration SECONDS", "--http HOST:PORT", "--controllers NAMES", "--no-pod-events"):
        assert option in text


# --- running -------------------------------------------------------------------------------------------------------------


@contextmanager
def running(log: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run it beside the test; its log goes to a file."""
    with log.open("w") as stream:
        process = launch([sys.executable, "-m", "phalanx", "run", *arguments], stderr=stream)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def until(is_so: Callable[[], object]) -> None:
    assert wait_until(is_so, PATIENCE_SECONDS), "waited in vain"


def ended(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE_SECONDS)


def test_an_api_server_that_is_not_there_is_told_of_and_waited_for(kubeconfig: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(log, "--kubeconfig", str(kubeconfig), "--no-leader-elect") as process:
        until(lambda: log.read_text().count("discovery: no cluster at http://127.0.0.1:1: ") >= 2)
        assert process.poll() is None
        assert "; tried again every 1 s" in log.read_text()
        assert ended(process) == 0
    assert "Traceback" not in log.read_text()


def bound(connection: Connection) -> list[str]:
    return [item["spec"].get("nodeName", "") for item in connection.ask("GET", PODS).body["items"]]


def test_a_gang_of_the_schedulers_that_were_named_is_bound_and_sigterm_ends_it(tmp_path: Path) -> None:
    log, store = tmp_path / "log", MemoryStore(time.time)
    group, *pods = build.gang("train", tasks=2, cpu=1)
    for pod in pods:
        pod["spec"]["schedulerName"] = "volcano"
    for document in (build.queue("default"), build.node("n0"), group, *pods):
        store.load(document)
    with served(store) as connection:
        names = ("--scheduler-name", "volcano", "--lease-namespace", "default", "--log-format", "json", "-v", "2")
        with running(log, "--kubeconfig", str(written(tmp_path, connection.server)), *names) as process:
            until(lambda: bound(connection) == ["n0", "n0"])
            assert ended(process) == 0
        lease = connection.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/phalanx").body
        assert lease["spec"]["holderIdentity"] == ""
    assert all(json.loads(line) for line in log.read_text().splitlines())


SSH_SECRET = "/api/v1/namespaces/default/secrets/train-ssh"
CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/train-volume-0"


def test_ssh_keys_of_a_job_cannot_be_computed_from_what_everybody_reads_and_survive_a_restart(tmp_path: Path) -> None:
    store = MemoryStore(time.time)
    volume = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteMany"]}}
    store.create(build.queue("default"))
    uid = store.create(jobs.job("train", jobs.task("worker"), plugins={"ssh": []}, volumes=[volume]))["metadata"]["uid"]
    with served(store) as connection:
        command = ("--kubeconfig", str(written(tmp_path, connection.server)), "--no-leader-elect")
        with running(tmp_path / "first", *command):
            until(lambda: connection.ask("GET", CLAIM).code == 200)
        secret = connection.ask("GET", SSH_SECRET).body
        assert b64decode(secret["data"]["id_rsa.pub"]).decode() != pair_for(uid).public, "the key follows from the uid"
        # Secrets are not watched. The claim is made after the secret: when it is back, the new process has looked at both.
        connection.ask("DELETE", CLAIM)
        with running(tmp_path / "second", *command):
            until(lambda: connection.ask("GET", CLAIM).code == 200)
        assert connection.ask("GET", SSH_SECRET).body == secret
