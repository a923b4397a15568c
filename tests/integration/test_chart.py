"""The chart, as Helm renders it: the same objects as `phalanx manifests`, and values that are checked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.config.policies import DEFAULT_PROFILE, policy_of, profile_text
from phalanx.manifests.admission_policies import policy_documents
from phalanx.manifests.definitions import SETS, definition_documents
from phalanx.manifests.deploy_files import KEEP
from phalanx.manifests.install import install_documents
from phalanx.manifests.install_settings import InstallSettings
from phalanx.manifests.monitoring import monitoring_documents
from phalanx.manifests.roles import role_documents, shadow_rules
from tests.support.hardening import faults
from tests.support.helm import rendered, run_helm

CHART = Path(__file__).resolve().parents[2] / "deploy" / "chart"
SETTINGS = InstallSettings(config=profile_text(DEFAULT_PROFILE))
OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/")
WATCHED = ("serviceMonitor.enabled=true", "prometheusRule.enabled=true", "dashboard.enabled=true")
pytestmark = pytest.mark.xdist_group("controlplane")


def values(*said: str) -> list[str]:
    return [word for each in said for word in ("--set", each)]


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what only Helm writes."""
    meta = dict(document["metadata"])
    for table in ("labels", "annotations"):
        meta[table] = {key: text for key, text in meta.get(table, {}).items() if not key.startswith(OF_HELM)}
    return {**document, "metadata": {key: value for key, value in meta.items() if value}}


def keyed(documents: list[Any]) -> dict[tuple[str, str], Any]:
    return {(item["kind"], item["metadata"]["name"]): plain(item) for item in documents}


def kinds(documents: list[Any]) -> set[str]:
    return {item["kind"] for item in documents}


def test_the_chart_has_no_faults() -> None:
    answer = run_helm("lint", "--strict", str(CHART))
    assert (answer.returncode, "[WARNING]" in answer.stdout, "[ERROR]" in answer.stdout) == (0, False, False), answer.stdout


def test_the_chart_holds_what_the_command_prints() -> None:
    expected = [*definition_documents(), *policy_documents(), *role_documents(SETTINGS), *install_documents(SETTINGS)]
    own = ("Namespace", SETTINGS.namespace)
    assert keyed(rendered(CHART)) == {place: item for place, item in keyed(expected).items() if place != own}


def test_alerts_and_the_board_come_when_they_are_asked_for() -> None:
    without, found = keyed(rendered(CHART)), keyed(rendered(CHART, *values(*WATCHED)))
    assert {key: item for key, item in found.items() if key not in without} == keyed(monitoring_documents(SETTINGS))


def test_definitions_stay_when_the_release_goes() -> None:
    found = [item for item in rendered(CHART) if item["kind"] == "CustomResourceDefinition"]
    assert len(found) == len(definition_documents())
    assert [item["metadata"]["name"] for item in found if not KEEP.items() <= item["metadata"]["annotations"].items()] == []


@pytest.mark.parametrize("name", SETS)
def test_definitions_that_are_there_already_can_be_left_out(name: str) -> None:
    left = {item["metadata"]["name"] for item in rendered(CHART) if item["kind"] == "CustomResourceDefinition"}
    found = {item["metadata"]["name"] for item in rendered(CHART, *values(f"crds.{name}=false"))}
    assert left - found == {item["metadata"]["name"] for item in definition_documents(name)}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("crds.install=false", "CustomResourceDefinition"),
        ("policies.install=false", "ValidatingAdmissionPolicy"),
        ("rbac.create=false", "ClusterRole"),
        ("gpuSharing.install=false", "PriorityClass"),
        ("gpuSharing.createNamespace=false", "Namespace"),
        ("podDisruptionBudget.enabled=false", "PodDisruptionBudget"),
    ],
)
def test_parts_can_be_left_out(said: str, kind: str) -> None:
    assert kind in kinds(rendered(CHART))
    assert kind not in kinds(rendered(CHART, *values(said)))


def test_without_ssh_nobody_may_make_secrets() -> None:
    def allows(documents: list[Any]) -> bool:
        return any("secrets" in rule["resources"] for item in documents for rule in item.get("rules", ()))

    assert allows(rendered(CHART))
    assert not allows(rendered(CHART, *values("controllers.volcanoJob.ssh=false")))


def test_nodes_are_kept_from_autoscalers_where_that_is_asked_for() -> None:
    settings = replace(SETTINGS, keeps_nodes=True)
    found = keyed(rendered(CHART, *values("autoscaler.keepNominatedNodes=true")))
    expected = keyed([*role_documents(settings), *install_documents(settings)])
    for place in (place for place in expected if place[0] in ("ClusterRole", "Deployment")):
        assert found[place] == expected[place]


SAFE = ("http.tls.secretName=cert", "http.authentication=token", "serviceMonitor.enabled=true")


@pytest.mark.parametrize("said", [(), SAFE])
def test_the_pods_may_do_nothing_on_their_node(said: tuple[str, ...]) -> None:
    documents = rendered(CHART, *values(*said))
    specs = [item["spec"]["template"]["spec"] for item in documents if item["kind"] in ("Deployment", "DaemonSet", "Job")]
    assert [faults(spec, has_token=True) for spec in specs] == [[]]
    accounts = [item for item in documents if item["kind"] == "ServiceAccount"]
    assert [item["automountServiceAccountToken"] for item in accounts] == [False, False], "a pod that needs a token says so itself"


def test_only_with_tokens_reviews_are_allowed() -> None:
    def reviews(documents: list[Any]) -> bool:
        return any("tokenreviews" in rule.get("resources", ()) for item in documents for rule in item.get("rules", ()))

    assert not reviews(rendered(CHART, *values("http.tls.secretName=cert")))
    assert reviews(rendered(CHART, *values(*SAFE)))


def test_tls_and_tokens_concern_the_program_its_probes_and_prometheus() -> None:
    found = keyed(rendered(CHART, *values(*SAFE)))
    spec = found["Deployment", "phalanx"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    words = container["args"]
    assert words[words.index("--tls-cert-file") + 1] == "/etc/phalanx-tls/tls.crt"
    assert words[words.index("--authentication") + 1] == "token"
    assert {container[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe")} == {"HTTPS"}
    assert {item["name"]: item.get("secret") for item in spec["volumes"]}["tls"] == {"secretName": "cert"}
    (endpoint,) = found["ServiceMonitor", "phalanx"]["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["bearerTokenFile"].endswith("/token")) == ("https", True)
    assert found["ClusterRole", "phalanx-metrics"]["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def test_tokens_without_tls_are_refused() -> None:
    answer = run_helm("template", "phalanx", str(CHART), *values("http.authentication=token"))
    assert "http.tls.secretName: tokens would be sent in the clear" in answer.stderr


def test_a_configuration_takes_the_place_of_the_profile(tmp_path: Path) -> None:
    text = "profile: kai\n"
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({"scheduler": {"config": text}}))
    found = keyed(rendered(CHART, "--values", str(tmp_path / "values.yaml")))["ConfigMap", "phalanx"]
    assert found["data"]["config.yaml"] == text
    chosen = keyed(rendered(CHART, *values("scheduler.profile=volcano")))["ConfigMap", "phalanx"]
    assert policy_of(yaml.safe_load(chosen["data"]["config.yaml"])) == policy_of({"profile": "volcano"})


def test_a_release_of_another_name_names_its_objects_after_itself() -> None:
    found = rendered(CHART, "--set", "fullnameOverride=night", *values(*WATCHED))
    shared = {"CustomResourceDefinition", *kinds(policy_documents())}
    assert {item["metadata"]["name"] for item in found if item["kind"] not in shared} == {
        "night", "night-view", "night-edit", "night-dashboard", "gpu-reservation", "kai-resource-reservation",
    }  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        "replicas=3",
        "replicaCount=0",
        "scheduler.profile=volcan",
        "crds.koordinator=true",
        "image.pullPolicy=Sometimes",
        "http.authentication=basic",
    ],
)
def test_a_wrong_value_is_refused(said: str) -> None:
    answer = run_helm("template", "phalanx", str(CHART), *values(said))
    assert (answer.returncode, "values" in answer.stderr) == (1, True)


def test_an_account_of_somebody_else_has_to_be_named() -> None:
    answer = run_helm("template", "phalanx", str(CHART), *values("serviceAccount.create=false"))
    assert "serviceAccount.name: name an account that is there" in answer.stderr
    found = rendered(CHART, *values("serviceAccount.create=false", "serviceAccount.name=robot"))
    assert {subject["name"] for item in found for subject in item.get("subjects", ())} == {"robot", "gpu-reservation"}


def test_a_shadow_is_one_replica_with_a_role_that_changes_nothing() -> None:
    found = keyed(rendered(CHART, *values("shadow.enabled=true")))
    assert {kind for kind, _ in found} == {
        "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "Service", "ServiceAccount",
    }  # fmt: skip
    ((_, role),) = [(name, item) for (kind, name), item in found.items() if kind == "ClusterRole"]
    assert role["rules"] == shadow_rules()
    (deployment,) = [item for (kind, _), item in found.items() if kind == "Deployment"]
    assert deployment["spec"]["replicas"] == 1
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--shadow" in args
    assert not {"--leader-elect", "--reservation-image", "--authentication"} & set(args)
    assert faults(deployment["spec"]["template"]["spec"], has_token=True) == []


def test_a_shadow_that_would_ask_about_tokens_is_refused() -> None:
    said = values("shadow.enabled=true", "http.authentication=token", "http.tls.secretName=tls")
    answer = run_helm("template", "phalanx", str(CHART), *said)
    assert answer.returncode != 0
    assert "a shadow may not even ask the API server about tokens" in answer.stderr


@pytest.mark.parametrize(("version", "is_taken"), [("1.35", True), ("1.35.2-custom.1", True), ("1.36.3", True), ("1.34.4", False)])
def test_a_cluster_that_refuses_our_definitions_is_refused(version: str, is_taken: bool) -> None:
    answer = run_helm("template", "phalanx", str(CHART), "--kube-version", version)
    assert (answer.returncode == 0) == is_taken, answer.stderr
    assert is_taken or "chart requires kubeVersion" in answer.stderr
