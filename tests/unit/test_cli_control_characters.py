"""Control characters in names, messages and annotations reach neither a terminal nor a file, whatever the command and the form."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.streams import escaped, guarded_streams, own, sent, visible
from phalanx.live.logs import logger_of, start_logging, stop_logging
from phalanx.model.kinds import Document
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support.http_api import served

NOW = 1_767_225_600.0
AT = ("--now", "2026-01-01T00:00:00Z")
EVIL = "\x1b]0;owned\x07\x9b2J\x7f\x85\u202e\u2066\u2028\r\nFORGED"
"""Sets the title of a terminal, clears it, hides and reorders text, and begins a line of its own."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f]")
GROUP_OF = "scheduling.k8s.io/group-name"
DIALECTS = ("volcano", "kai", "coscheduling", "native", "gates")


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cluster of the one who runs the tests be found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("PHALANX_SERVER", raising=False)


def evil(name: str) -> str:
    return name + EVIL


def planted(document: Document, *, has_evil_names: bool) -> dict[str, Any]:
    """Return an object with escapes in its annotations, labels, conditions and messages."""
    found: dict[str, Any] = json.loads(json.dumps(document))
    found["metadata"].setdefault("annotations", {})[evil("note")] = EVIL
    found["metadata"].setdefault("labels", {})["app"] = EVIL
    if has_evil_names:
        found["metadata"]["uid"] = evil(found["kind"])
    status = found.setdefault("status", {})
    status |= {"message": EVIL, "reason": EVIL}
    if found["kind"] != "Node":
        condition = {"type": "PodScheduled", "status": "False", "reason": EVIL, "message": EVIL}
        status["conditions"] = [condition, {**condition, "type": "Unschedulable", "status": "True"}]
    return found


def objects(*, has_evil_names: bool = True) -> list[dict[str, Any]]:
    """Return a cluster in which one gang runs, one starts and one waits, and an object that is broken."""

    def named(name: str) -> str:
        return evil(name) if has_evil_names else name

    space, queue = named("team"), named("queue")
    waiting = build.gang("waits", tasks=2, gpus=4, queue=queue)
    running = [build.pod_group("runs", phase="Running", queue=queue), build.pod("runs-0", group="runs", on=named("node"), gpus=1)]
    starting = build.gang("starts", tasks=1, gpus=1, queue=queue)
    gangs = [*waiting, *running, *starting]
    for item in gangs:
        item["metadata"] |= {"namespace": space, "name": named(item["metadata"]["name"])}
        notes = item["metadata"].get("annotations", {})
        notes |= {GROUP_OF: named(notes[GROUP_OF])} if GROUP_OF in notes else {}
    node = build.node("node", gpus=4)
    node["metadata"]["name"] = named("node")
    found = [node, build.queue(queue), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, *gangs]
    return [planted(item, has_evil_names=has_evil_names) for item in found]


def broken() -> Document:
    pod = build.pod(evil("broken"), group=evil("none"), gpus=1)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = evil("1")
    return pod


def run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(main, arguments, input=given, prog_name="phalanx")


def text_of(result: Result) -> str:
    assert not isinstance(result.exception, Exception), result.exception
    return f"{result.stdout}\n{result.stderr}"


def forged_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.lstrip(" #-").startswith("FORGED")]


def assert_harmless(result: Result) -> None:
    text = text_of(result)
    assert result.exit_code in (0, 1, 2, 3), text
    assert "internal error" not in text
    assert not RAW.findall(text)
    assert not forged_lines(text)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil")
    (folder / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))
    (folder / "broken.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects(), broken()]}))
    job = build.gang(evil("job"), tasks=2, gpus=9, queue=evil("queue"))
    (folder / "job.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": job}))
    (folder / "scenario.yaml").write_text(
        yaml.safe_dump(
            {"apiVersion": "phalanx.dev/v1alpha1", "kind": "Scenario", "expect": [{"gangs": {evil("x"): {"starts": True}}}]}
        )
    )
    (folder / "config.yaml").write_text(
        yaml.safe_dump({"actions": evil("allocate"), "tiers": [{"plugins": [{"name": evil("gang")}]}]})
    )
    (folder / "text.yaml").write_bytes(f"{EVIL}: [".encode())
    return folder


FORMS = (("-o", "table"), ("-o", "json"), ("-o", "yaml"))
ON_FILES: list[tuple[str, ...]] = [
    *(("schedule", "-f", "CLUSTER", *AT, *form, *more) for form in FORMS for more in ((), ("-v", "5"))),
    *(("schedule", "-f", "BROKEN", *AT, *form) for form in FORMS),
    ("schedule", "-f", "CLUSTER", "--gang", evil("a/b"), "-v", "5"),
    *(("explain", evil("team") + "/" + evil("waits"), "-f", "CLUSTER", *AT, *form) for form in FORMS),
    ("explain", evil("nobody"), "-f", "CLUSTER"),
    *(("try", "-f", "JOB", "--cluster", "CLUSTER", *AT, *form) for form in FORMS),
    ("try", "-f", "BROKEN", "--cluster", "BROKEN"),
    *(("eta", "-f", "BROKEN", *AT, "--assume", "1h", *form) for form in FORMS),
    *(("simulate", "CLUSTER", "--until", "1m", *form) for form in FORMS),
    ("simulate", "CLUSTER", "--until", "1m", "--compare", "phalanx,default-scheduler", "-v", "5"),
    ("simulate", "CLUSTER", "--until", "1m", "--scenario", "SCENARIO"),
    ("simulate", "BROKEN"),
    *(("convert", "-f", "CLUSTER", "--to", dialect, "-o", form) for dialect in DIALECTS for form in ("yaml", "json")),
    ("convert", "-f", "BROKEN", "--to", "kai"),
    *((command, "-f", "TEXT") for command in ("schedule", "apply", "delete")),
    *((command, "-f", evil("nosuch")) for command in ("schedule", "apply", "delete", "eta")),
    ("schedule", "-f", "CLUSTER", "--profile", evil("p")),
    ("schedule", "-f", "CLUSTER", "--config", "CONFIG"),
    ("config", "check", "CONFIG"),
    ("manifests", "all", "--image", EVIL),
    ("get", "pods", "--server", evil("http://127.0.0.1:1/")),
]  # fmt: skip


@pytest.mark.parametrize("arguments", ON_FILES, ids=lambda arguments: escaped(" ".join(arguments)).replace("\n", " "))
def test_commands_on_files_send_none(files: Path, arguments: tuple[str, ...]) -> None:
    paths = {
        "CLUSTER": "cluster.json",
        "BROKEN": "broken.json",
        "JOB": "job.json",
        "TEXT": "text.yaml",
        "SCENARIO": "scenario.yaml",
        "CONFIG": "config.yaml",
    }
    typed = [str(files / paths[word]) if word in paths else word for word in arguments]
    result = run(*typed)
    if "json" in arguments or "yaml" in arguments or arguments[0] == "manifests":
        text = text_of(result)
        assert not RAW.findall(text)
        assert not forged_lines(result.stderr)
        assert "json" not in arguments or json.loads(result.stdout)
        assert list(yaml.safe_load_all(result.stdout))
    else:
        assert_harmless(result)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_programs_read_keeps_the_characters(files: Path, form: str) -> None:
    result = run("convert", "-f", str(files / "cluster.json"), "--to", "kai", "-o", form)
    found = json.loads(result.stdout)["items"] if form == "json" else list(yaml.safe_load_all(result.stdout))
    assert {evil("waits-0"), evil("runs-0"), evil("node")} <= {item["metadata"]["name"] for item in found}


def test_requests_of_a_batch_are_answered_without_them() -> None:
    request = {"id": evil("one"), "objects": objects(), "now": "2026-01-01T00:00:00Z"}
    result = run("schedule", "--batch", given=json.dumps(request) + "\n")
    assert not RAW.findall(text_of(result))
    assert json.loads(result.stdout)["id"] == evil("one")


def test_a_report_has_none(files: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    assert run("simulate", str(files / "cluster.json"), "--until", "1m", "--report", str(report)).exit_code == 0
    assert not RAW.findall(report.read_text())


# --- a cluster -----------------------------------------------------------------------------------------------------------


@contextmanager
def cluster(*, has_evil_names: bool) -> Iterator[str]:
    """Serve objects that no API server would have let in; yields its address."""
    store = MemoryStore(lambda: NOW)
    place = evil("team") if has_evil_names else "team"
    event: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": place},
        "type": EVIL, "reason": EVIL, "message": EVIL,
        "involvedObject": {"kind": "Pod", "name": evil("waits-0") if has_evil_names else "waits-0", "namespace": place},
    }  # fmt: skip
    found = [*objects(has_evil_names=has_evil_names), event]
    for number, item in enumerate(found):
        item["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": str(number + 1)}
    store.restore(found, version=len(found), numbers=len(found))
    with served(store) as connection:
        yield connection.server


KINDS = ("gangs", "pods", "nodes", "podgroups", "queues", "events", "namespaces", "pods,nodes")
GET_FORMS = ("table", "wide", "json", "yaml", "name", "jsonpath={.items[*].metadata.name}")


@pytest.mark.parametrize("has_evil_names", [True, False])
def test_get_sends_none(*, has_evil_names: bool) -> None:
    with cluster(has_evil_names=has_evil_names) as server:
        for kind in KINDS:
            for form in GET_FORMS:
                result = run("get", kind, "-A", "-o", form, "--server", server)
                assert not RAW.findall(text_of(result)), (kind, form)
                assert result.exit_code == 0, (kind, form, result.stderr)
                if form in ("table", "wide", "name"):
                    assert_harmless(result)
                if form == "json":
                    assert json.loads(result.stdout)
                if form == "yaml":
                    assert yaml.safe_load(result.stdout) == json.loads(
                        run("get", kind, "-A", "-o", "json", "--server", server).stdout
                    )


@pytest.mark.parametrize("has_evil_names", [True, False])
def test_other_commands_on_a_cluster_send_none(tmp_path: Path, *, has_evil_names: bool) -> None:
    place, mark = (evil("team"), evil) if has_evil_names else ("team", str)
    manifest = tmp_path / "again.json"
    items = [item for item in objects(has_evil_names=has_evil_names) if item["kind"] in ("Pod", "PodGroup")]
    for item in items:
        item["metadata"].pop("uid", None)
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    commands: list[tuple[str, ...]] = [
        *(("describe", kind, mark(name), "-n", place) for kind, name in (
            ("pod", "waits-0"), ("gang", "waits"), ("node", "node"), ("queue", "queue"), ("podgroup", "runs"), ("pod", "nosuch"))),
        ("schedule", *AT), ("explain", f"{place}/{mark('waits')}", *AT), ("eta", *AT, "--assume", "1h"), ("try", str(manifest)),
        ("apply", "-f", str(manifest)), ("get", "pod", mark("nosuch"), "-n", place),
        ("delete", "pod", mark("waits-0"), mark("nosuch"), "-n", place), ("delete", "gang", mark("starts"), "-n", place),
        ("delete", "-f", str(manifest)),
    ]  # fmt: skip
    with cluster(has_evil_names=has_evil_names) as server:
        for typed in commands:
            result = run(*typed, "--server", server)
            assert not RAW.findall(text_of(result)), typed
            described = result.stdout if typed[0] == "describe" else ""  # strings of several lines are blocks in YAML
            assert not forged_lines(text_of(result).replace(described, "")), typed


# --- the layer itself ----------------------------------------------------------------------------------------------------


def test_what_is_ours_is_sent() -> None:
    assert sent(f"{own(chr(27) + '[32m')}a\x1b[31m{own(chr(13))}") == "\x1b[32ma^[[31m\r"


def test_line_ends_and_tabs_pass_but_not_where_one_line_is_wanted() -> None:
    assert (escaped("a\n\tb\r"), visible("a\n\tb\r")) == ("a\n\tb^M", "a  b ")


def test_letters_of_all_languages_and_signs_pass() -> None:
    text = "größe 大 × ✓ … é नमस्ते 👩‍🔬"
    assert escaped(text) == text


def test_logs_pass_through_it(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded_streams():
        handler = start_logging()
        logger_of("scheduler").warning("gang %s", EVIL)
        stop_logging(handler)
    logged = capsys.readouterr().err
    assert "^[]0;owned^G" in logged
    assert not RAW.findall(logged)
    assert not forged_lines(logged)


def test_half_a_character_is_shown() -> None:
    pods = [{**build.pod("a", gpus=1), "metadata": {"name": "a\ud800"}}]
    result = run("schedule", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    assert_harmless(result)
