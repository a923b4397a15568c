"""Every command in the documentation is run as its reader would type it, and shows what the page shows.

A page's ```console blocks are typed one after the other in a copy of the project in which `phalanx` is the one under test: see
tests/support/desk.py. Those of the pages on operators are typed beside their operators, by tests/operators/test_pages_live.py.
Commands that cannot be run here stand in ```sh blocks and in the table below, with the reason. Synopses stand in ```text blocks.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from _pytest.mark import ParameterSet

from phalanx.cli import ENTRIES_BY_NAME
from phalanx.config.policies import policy_of
from phalanx.store.snapshot_command import SNAPSHOT_COMMAND
from tests.support.desk import ROOT, Command, Desk, blocks, by_key, commands_of
from tests.support.doc_transcripts import first_missing

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BESIDE_OPERATORS = ROOT / "docs" / "howto" / "operators"
PROGRAMS = ("phalanx", "kubectl", "make", "pip", "python", "python3", "source")
OTHER_FENCES = {"yaml", "json", "python", "text"}

NOT_RUN = {
    f"{SNAPSHOT_COMMAND} > cluster.yaml": "needs a cluster",
    "kubectl get configmap volcano-scheduler-configmap -n volcano-system -o yaml | phalanx config check -": "needs a cluster",
    "kubectl --server http://127.0.0.1:PORT get pods -A": "needs kubectl",
    "kubectl --server http://127.0.0.1:PORT apply -f job.yaml": "needs kubectl",
    "kubectl --server http://127.0.0.1:PORT get gangs -A": "needs kubectl",
    "make controlplane": "is what runs before the tests",
    "helm install phalanx deploy/chart -n phalanx-system --create-namespace "
    "--set image.repository=registry.example.com/phalanx": "needs a cluster",
    "helm upgrade phalanx deploy/chart -n phalanx-system --set serviceMonitor.enabled=true "
    "--set prometheusRule.enabled=true": "needs a cluster",
    "helm upgrade phalanx deploy/chart -n phalanx-system --set http.tls.secretName=phalanx-tls "
    "--set http.authentication=token": "needs a cluster",
    "kubectl create clusterrole phalanx-metrics --verb=get --non-resource-url=/metrics": "needs a cluster",
    "kubectl create clusterrolebinding phalanx-metrics --clusterrole=phalanx-metrics "
    "--serviceaccount=monitoring:prometheus": "needs a cluster",
    "kubectl apply --server-side -k deploy/kustomize/base": "needs a cluster",
    "phalanx manifests all --image registry.example.com/phalanx:0.2.0 | kubectl apply --server-side -f -": "needs a cluster",
    "kubectl -n phalanx-system rollout status deployment/phalanx": "needs a cluster",
    "kubectl plugin list": "needs kubectl",
    "kubectl phalanx get gangs -A": "needs a cluster",
    "kubectl phalanx get gangs -n research -o wide --watch": "needs a cluster",
    "kubectl phalanx describe gang resnet -n research": "needs a cluster",
    "kubectl phalanx explain research/resnet -f cluster.yaml": "needs the snapshot of a cluster",
    "phalanx run --kubeconfig ~/.kube/config --context staging --scheduler-name phalanx -v 2": "needs a cluster",
    "kubectl -n volcano-system scale deployment volcano-scheduler volcano-controllers --replicas 0": "needs a cluster",
    "phalanx run --scheduler-name volcano --config volcano-scheduler.conf": "needs a cluster",
    "phalanx run --scheduler-name volcano --controllers -volcano": "needs a cluster",
    "phalanx run --scheduler-name kai-scheduler --profile kai --controllers -binder,-gpu-reservations,"
    "-pod-grouper": "needs a cluster",
    "phalanx run --scheduler-name kai-scheduler --profile kai": "needs a cluster",
    "phalanx run --scheduler-name phalanx": "needs a cluster",
    "phalanx ui --context my-cluster --open": "needs a cluster",
    "phalanx ui --log recording --at 03:12": "needs the recording of a night: tests/browser",
    "phalanx ui --host 0.0.0.0 --port 8443 --tls-cert-file tls.crt --tls-private-key-file tls.key": "needs a cluster",
    "kubectl taint nodes gpu-1 gpu-2 example.com/gangs=true:NoSchedule": "needs a cluster: tests/integration",
    "kubectl label nodes gpu-1 gpu-2 example.com/gangs=true": "needs a cluster: tests/integration",
    "phalanx run --config batch.yaml --scheduler-name batch --lease-name phalanx-batch": "needs a cluster",
    "phalanx run --config serving.yaml --scheduler-name serving --lease-name phalanx-serving "
    "--controllers -volcano-job": "needs a cluster",
    "phalanx run --lease-duration 6": "needs a cluster",
    "phalanx simulate --workload generated:jobs=10000,nodes=1000,load=1.1 --until 7d --seeds 1..100 --compare volcano,kai,phalanx "
    "--on dask://scheduler.example.com:8786": "needs a Dask cluster",
    "pip install 'phalanx[tune]'": "is installed already",
    "phalanx tune work.yaml --jitter 0.1 --minimise 'p90 wait' --subject-to 'fairness >= 0.95' --trials 400 --seeds 1..10 "
    "--state search.json "
    "--on dask://scheduler.example.com:8786": "needs a Dask cluster",
    "phalanx replay recording --snapshot cluster.yaml": "needs a recording with a difference",
    "phalanx schedule -f cluster.yaml --step": "needs a recording with a difference",
    "phalanx run --record /var/lib/phalanx/recording": "needs a cluster",
    "phalanx record recording --context my-cluster --for 24h": "needs a cluster",
    "phalanx describe research/whisper --context my-cluster": "needs a cluster",
    "kubectl get provisioningrequests,podtemplates -n research": "needs a cluster; tests/integration/test_provisioning_live.py",
    "kubectl annotate nodes --all phalanx.dev/kept-for- phalanx.dev/kept-by- "
    "cluster-autoscaler.kubernetes.io/scale-down-disabled- karpenter.sh/do-not-disrupt-": "needs a cluster",
    "phalanx run --shadow --context my-cluster": "needs a cluster",
    "helm install shadow deploy/chart --namespace phalanx-system --create-namespace --set shadow.enabled=true": "needs a cluster",
    "phalanx shadow report phalanx-shadow": "needs a recording of a cluster",
    "phalanx explain research/whisper --log recording --at 03:12": "needs a recording of a cluster",
    "phalanx eta research/whisper --context staging": "needs a cluster",
    "phalanx simulate --workload philly:traces/philly,nodes=100": "needs a trace",
    "phalanx schedule --context my-cluster": "needs a cluster",
    "phalanx explain research/whisper --context my-cluster": "needs a cluster",
    "phalanx try -f job.yaml --context my-cluster": "needs a cluster",
    "phalanx schedule --context my-cluster -f train.yaml": "needs a cluster",
    "phalanx schedule --context my-cluster --profile kai": "needs a cluster",
    "phalanx schedule --context my-cluster --config volcano-scheduler.conf": "needs a cluster",
    ".venv/bin/phalanx run --shadow --context my-cluster": "needs a cluster",
    "kubectl phalanx schedule --context my-cluster": "needs a cluster",
}
"""Commands in ```sh blocks, and why no test runs them."""


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def case(page: Path) -> ParameterSet:
    """Return a page, with the mark of tests that need a control plane if it starts one."""
    needs_it = any(command.text.startswith("phalanx dev cluster up") for command in commands_of(page))
    return pytest.param(page, id=title(page), marks=[pytest.mark.xdist_group("controlplane")] if needs_it else [])


@pytest.mark.parametrize("page", [case(page) for page in PAGES if commands_of(page) and page.parent != BESIDE_OPERATORS])
def test_the_commands_of_a_page_show_what_it_says(page: Path, tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        for command in commands_of(page):
            desk.type(command)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_every_fence_says_what_it_holds(page: Path) -> None:
    known = {"console", "sh", *OTHER_FENCES}
    assert {block.language for block in blocks(page)} <= known


def lines_that_look_like_commands(page: Path) -> Iterator[str]:
    """Yield lines of a program and its arguments outside ```console, ```sh and ```text blocks."""
    text = re.sub(r"^```(console|sh|text)\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(rf"^(?: {{4}}|\$ )?((?:{'|'.join(PROGRAMS)}) \S.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_no_command_hides_where_it_is_not_run(page: Path) -> None:
    assert list(lines_that_look_like_commands(page)) == []


def test_commands_that_are_not_run_are_those_of_the_table() -> None:
    marked = ["\n".join(block.lines) for page in PAGES for block in blocks(page) if block.language == "sh"]
    assert {line for text in marked for line in text.replace("\\\n", "").splitlines()} == set(NOT_RUN)


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_text_block_holds_a_synopsis_of_a_command_that_exists_or_no_command(page: Path) -> None:
    for block in (block for block in blocks(page) if block.language == "text"):
        typed = [line.split() for line in block.lines if line.startswith(tuple(f"{program} " for program in PROGRAMS))]
        assert all(words[0] == "phalanx" and words[1] in ENTRIES_BY_NAME for words in typed)
        assert not typed or "[" in block.lines[0], f"{block.lines[0]!r} is no synopsis; write it as a ```console block"


def configurations_of(page: Path) -> list[str]:
    texts = ["\n".join(block.lines) for block in blocks(page) if block.language == "yaml"]
    return [text for text in texts if re.search("^(profile|actions|tiers):", text, re.MULTILINE)]


@pytest.mark.parametrize("page", [page for page in PAGES if configurations_of(page)], ids=title)
def test_the_configurations_of_a_page_are_valid(page: Path) -> None:
    for text in configurations_of(page):
        assert policy_of(yaml.safe_load(text)).actions


def python_of(page: Path) -> str:
    return "\n".join(line for block in blocks(page) if block.language == "python" for line in [*block.lines, ""])


@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=title)
def test_the_python_of_a_page_runs(page: Path) -> None:
    exec(compile(python_of(page), title(page), "exec"), {"__name__": "page"})


# --- the test itself -----------------------------------------------------------------------------------------------------


def test_output_is_compared_line_by_line_and_in_order() -> None:
    assert first_missing(["one", "... two", "..."], "one\nand two\nthree\n") is None
    assert first_missing(["two", "one"], "one\ntwo\n") == "one"
    assert first_missing(["one t"], "one two\n") == "one t"


def test_what_a_key_shows_is_compared_with_the_answer_to_this_key() -> None:
    shown = ["begin", "(step) s", "one", "(step) s", "two"]
    for output, is_right in (
        (["begin", "(step) s", "one", "(step) s", "two"], True), (["begin", "(step) s", "two", "(step) s", "one"], False),
        (["begin", "(step) s", "one"], False), (["begin", "(step) b", "one", "(step) s", "two"], False),
    ):  # fmt: skip
        found = [first_missing(part, "\n".join(answered)) is None for part, answered in by_key(shown, output)]
        assert all(found) is is_right


def test_a_command_that_ends_otherwise_is_found(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk, pytest.raises(AssertionError, match="ended with 3"):
        desk.type(Command("phalanx schedule -f examples/deadlock"))
