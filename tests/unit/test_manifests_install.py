"""What is installed is as safe as it can be, and the files below deploy/ are those that the code would write."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from phalanx import __version__
from phalanx.cli import main
from phalanx.config.policies import DEFAULT_PROFILE, policy_of, profile_names, profile_text
from phalanx.controllers.binder.reservation_pod import reservation
from phalanx.controllers.controller import Key
from phalanx.controllers.placeholders import placeholder
from phalanx.dialects.yunikorn import TaskGroupRead
from phalanx.manifests.admission_policies import policy_documents
from phalanx.manifests.dashboard import ROWS, board
from phalanx.manifests.definitions import DEFINITIONS, SETS, definition_documents
from phalanx.manifests.deploy_files import BASE, CHART, MONITORING, deploy_files
from phalanx.manifests.install import install_documents
from phalanx.manifests.install_settings import InstallSettings
from phalanx.manifests.monitoring import ALERTS
from phalanx.manifests.roles import role_documents
from tests.support.hardening import faults

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
FILES = deploy_files({name: profile_text(name) for name in profile_names()}, DEFAULT_PROFILE)
SETTINGS = InstallSettings(config=profile_text(DEFAULT_PROFILE))
METRICS = {
    "phalanx_build_info", "phalanx_cycle_duration_seconds", "phalanx_action_duration_seconds", "phalanx_plugin_duration_seconds",
    "phalanx_snapshot_duration_seconds", "phalanx_gang_schedule_attempts_total", "phalanx_gang_scheduling_duration_seconds",
    "phalanx_pending_gangs", "phalanx_preemption_victims", "phalanx_evictions_total", "phalanx_binds_total",
    "phalanx_bind_duration_seconds", "phalanx_queue_resources", "phalanx_watch_events_total", "phalanx_leader",
    "phalanx_config_last_reload_successful", "phalanx_pods_scheduled_total", "podgroup_scheduling_timeout_total",
    "podgroup_waiting_pods",
}  # fmt: skip


def printed(*words: str) -> list[Any]:
    answer = CliRunner().invoke(main, ["manifests", *words])
    assert answer.exit_code == 0, answer.output
    return list(yaml.safe_load_all(answer.stdout))


def by_kind(documents: list[Any]) -> dict[str, Any]:
    return {document["kind"]: document for document in documents}


# --- the command ---------------------------------------------------------------------------------------------------------


def test_everything_is_the_definitions_the_policies_the_roles_and_what_runs() -> None:
    assert printed("all") == [
        *definition_documents(), *policy_documents(), *role_documents(SETTINGS), *install_documents(SETTINGS),
    ]  # fmt: skip


def test_json_holds_the_same_objects_as_yaml() -> None:
    answer = CliRunner().invoke(main, ["manifests", "all", "-o", "json"])
    assert msgspec.json.decode(answer.stdout)["items"] == printed("all")


def test_no_object_stands_twice() -> None:
    places = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in printed("all")]
    assert len(places) == len(set(places))


def test_namespace_image_and_profile_are_those_that_were_named() -> None:
    found = by_kind(printed("deployment", "-n", "batch", "--image", "example/phalanx:7", "--profile", "volcano"))
    assert {item["metadata"]["namespace"] for item in found.values()} == {"batch"}
    assert found["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"] == "example/phalanx:7"
    assert found["ConfigMap"]["data"]["config.yaml"] == profile_text("volcano")


def test_an_unknown_profile_is_an_error_that_names_the_nearest() -> None:
    answer = CliRunner().invoke(main, ["manifests", "deployment", "--profile", "volcan"])
    assert (answer.exit_code, "did you mean 'volcano'?" in answer.output) == (1, True)


def test_every_definition_is_in_one_set() -> None:
    found = [item["metadata"]["name"] for name in SETS for item in printed("crds", "--of", name)]
    assert sorted(found) == sorted(definition.kind.resource for definition in DEFINITIONS)


# --- what runs -----------------------------------------------------------------------------------------------------------


def pod() -> Any:
    return by_kind(install_documents(SETTINGS))["Deployment"]["spec"]["template"]["spec"]


def test_the_program_may_do_nothing_on_its_node() -> None:
    assert faults(pod(), has_token=True) == []


def test_the_pods_that_it_makes_may_do_nothing_on_their_node_either() -> None:
    originator = {"metadata": {"name": "spark", "namespace": "ml", "uid": "1"}, "spec": {"schedulerName": "phalanx"}}
    group = TaskGroupRead(name="workers", min_resource={"cpu": "1", "memory": "1Gi"})
    held = placeholder(Key("ml", "spark"), {"apiVersion": "v1", "kind": "Pod", **originator}, group, number=0, image="pause")
    assert faults(held["spec"], has_token=False) == []
    assert faults(reservation("group", "n0", "phalanx")["spec"], has_token=True) == [], "it writes on itself which GPU it got"


UNSAFE: list[tuple[str, dict[str, Any], str]] = [
    ("pod", {"automountServiceAccountToken": False}, "automountServiceAccountToken is not True"),
    ("pod", {"hostNetwork": True}, "hostNetwork is on"),
    ("pod", {"securityContext": {"runAsNonRoot": True}}, "no seccomp profile"),
    ("pod", {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, "volume root is no part of the pod"),
    ("container", {"runAsUser": 0}, "phalanx: may be root"),
    ("container", {"readOnlyRootFilesystem": False}, "phalanx: writes on its root file system"),
    ("container", {"allowPrivilegeEscalation": True}, "phalanx: may gain privileges"),
    ("container", {"capabilities": {"add": ["NET_ADMIN"]}}, "phalanx: has capabilities"),
]


@pytest.mark.parametrize(("place", "change", "fault"), UNSAFE)
def test_what_a_pod_should_not_be_able_to_do_is_found(place: str, change: dict[str, Any], fault: str) -> None:
    spec = pod()
    (container,) = spec["containers"]
    if place == "pod":
        changed = {**spec, **change}
    else:
        changed = {**spec, "containers": [{**container, "securityContext": {**container["securityContext"], **change}}]}
    assert faults(changed, has_token=True) == [fault]


def test_the_program_does_not_wait_for_itself() -> None:
    assert (pod()["schedulerName"], pod()["priorityClassName"]) == ("default-scheduler", "system-cluster-critical")


def test_selectors_select_the_pods_and_probes_go_to_the_port() -> None:
    found = by_kind(install_documents(SETTINGS))
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    budget, service = found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"], found["Service"]["spec"]["selector"]
    assert budget.items() <= labels
    assert service.items() <= labels
    ports = {port["name"] for port in pod()["containers"][0]["ports"]}
    assert {pod()["containers"][0][probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} <= ports


def test_the_configuration_stands_where_the_program_reads_it() -> None:
    arguments, mount = pod()["containers"][0]["args"], pod()["containers"][0]["volumeMounts"][0]
    (name, text), *_ = by_kind(install_documents(SETTINGS))["ConfigMap"]["data"].items()
    assert f"{mount['mountPath']}/{name}" == arguments[arguments.index("--config") + 1]
    assert policy_of(yaml.safe_load(text)).actions


# --- alerts and the board ------------------------------------------------------------------------------------------------


def expressions() -> Iterator[str]:
    yield from (alert.expression for alert in ALERTS)
    yield from (line.expression for _, panels in ROWS for panel in panels for line in panel.queries)


def test_alerts_and_the_board_ask_for_metrics_that_there_are() -> None:
    found = {name for text in expressions() for name in re.findall(r"\b(?:phalanx|podgroup)_\w+", text)}
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in found} == METRICS


@pytest.mark.parametrize("text", list(expressions()))
def test_brackets_of_an_expression_are_closed(text: str) -> None:
    assert [text.count(sign) for sign in "([{"] == [text.count(sign) for sign in ")]}"]


def test_alerts_have_names_of_their_own_and_say_what_to_do() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    assert [alert.name for alert in ALERTS if not (alert.summary.endswith(".") and alert.description.endswith("."))] == []


def test_no_panel_of_the_board_lies_on_another() -> None:
    places = [panel["gridPos"] for panel in board()["panels"]]
    cells = [(x, y) for place in places for x in range(place["x"], place["x"] + place["w"])
             for y in range(place["y"], place["y"] + place["h"])]  # fmt: skip
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


# --- files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES)
def test_a_file_is_as_the_code_would_write_it(path: str) -> None:
    assert (DEPLOY / path).read_text() == FILES[path], f"deploy/{path} is not up to date; run scripts/manifests"


def test_there_is_no_file_that_nobody_writes() -> None:
    there = {str(file.relative_to(DEPLOY)) for folder in (CHART, BASE, MONITORING) for file in (DEPLOY / folder).rglob("*.*")}
    assert there == set(FILES)


def test_the_kustomize_base_holds_what_the_command_prints() -> None:
    names = yaml.safe_load((DEPLOY / BASE / "kustomization.yaml").read_text())["resources"]
    found = [item for name in names for item in yaml.safe_load_all((DEPLOY / BASE / name).read_text())]
    expected = printed("all")
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((DEPLOY / "chart" / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_values_know_every_profile() -> None:
    schema = msgspec.json.decode((DEPLOY / "chart" / "values.schema.json").read_text())
    assert schema["properties"]["scheduler"]["properties"]["profile"]["enum"] == profile_names()


@pytest.mark.parametrize("what", ["rbac", "deployment", "monitoring", "all"])
@pytest.mark.parametrize("name", ["Bad NS", "-x", "a-", "a.b", "a" * 64])
def test_a_name_that_no_namespace_can_have_is_refused(what: str, name: str) -> None:
    answer = CliRunner().invoke(main, ["manifests", what, "-n", name])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"{name!r} is not a name for a namespace; write at most 63 of a-z, 0-9 and '-'" in answer.stderr


def test_a_name_that_a_namespace_can_have_is_taken() -> None:
    for name in ("a", "batch-2", "a" * 63):
        answer = CliRunner().invoke(main, ["manifests", "rbac", "-n", name])
        assert f"name: {name}\n" in answer.stdout
