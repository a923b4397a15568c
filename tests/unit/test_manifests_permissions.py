"""The table of permissions holds what controllers do, and roles allow what it holds and nothing else."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.cli import simulate_run as simulating
from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.controllers.controller import (
    Bind,
    Controller,
    Create,
    Delete,
    Evict,
    Key,
    Patch,
    RecordEvent,
    Result,
    Try,
    View,
    Write,
)
from phalanx.controllers.grouper.controller import PodGrouper
from phalanx.controllers.grouper.group_writers import GROUP_DIALECTS
from phalanx.dialects.cluster import kinds_read
from phalanx.live.watching import UNWATCHED
from phalanx.manifests.definitions import DEFINITIONS
from phalanx.manifests.install_settings import InstallSettings
from phalanx.manifests.permissions import FOLLOW, NODE_METRICS, READ, SESSIONS, TABLE, Permission, kinds_listed, permissions
from phalanx.manifests.roles import (
    edit_rules,
    kept_node_rules,
    lease_rules,
    namespace_rules,
    page_rules,
    reader_documents,
    reader_rules,
    review_rules,
    role_documents,
    rules_of,
    scheduler_rules,
    service_account,
    shadow_rules,
    ssh_rules,
    user,
    view_rules,
)
from phalanx.model.kinds import POD, Document, Kind, kind_of
from phalanx.sim.sshkeys import pair_for

ROOT = Path(__file__).resolve().parents[2]
POLICY = policy_of({"profile": "phalanx", "flags": {"liftsKueueGate": True}})
EVERY = standard_controllers(
    pair_for, ControllerSettings(hypernode_levels=("rack",), scheduler=(POLICY, CATALOGUE)), has_admission=True
)
ACCOUNTS = (("phalanx", "batch"), ("gpu-reservation", "kai-resource-reservation"))
LOOK = "look"
"""In place of the verb where an object was only looked at."""
Done = tuple[str, str]
"""A verb, and the resource as a role names it."""


def named(controller: Controller) -> str:
    return controller.name


def allowed(row: Iterable[Permission], kind: Kind, part: str = "") -> set[str]:
    return {verb for access in row if (access.kind, access.part) == (kind, part) for verb in access.verbs}


def pairs(row: Iterable[Permission]) -> set[Done]:
    return {(verb, f"{access.kind.group}/{access.resource}") for access in row for verb in access.verbs}


# --- what is declared ----------------------------------------------------------------------------------------------------


def test_every_controller_has_a_row_and_every_row_a_controller() -> None:
    assert set(TABLE) == {SESSIONS, *map(named, EVERY)}


@pytest.mark.parametrize("controller", EVERY, ids=named)
def test_a_controller_may_read_what_it_watches(controller: Controller) -> None:
    row = TABLE[controller.name]
    followed = [kind for kind in controller.watches if kind.kind not in UNWATCHED]
    assert [kind for kind in followed if not allowed(row, kind) >= set(FOLLOW)] == []
    assert [kind for kind in controller.watches if kind.kind in UNWATCHED and "get" not in allowed(row, kind)] == []


def test_the_grouper_may_make_groups_in_the_words_of_every_dialect() -> None:
    made = {access.kind for access in TABLE[PodGrouper.name] if {"create", "patch"} <= {*access.verbs}}
    assert {words.kind for words in GROUP_DIALECTS.values()} <= made


def test_sessions_may_read_every_kind_that_they_know() -> None:
    assert POD in kinds_read()
    assert [kind for kind in kinds_read() if "list" not in allowed(TABLE[SESSIONS], kind)] == []
    assert allowed(TABLE[SESSIONS], NODE_METRICS) == {"list"}


# --- what is done --------------------------------------------------------------------------------------------------------


@dataclass
class SeenView:
    """A view that notes which kinds are looked at."""

    view: View
    note: Callable[[str, Kind, str], None]

    @property
    def now(self) -> float:
        return self.view.now

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None:
        self.note(LOOK, kind, "")
        return self.view.find(kind, namespace, name)

    def within(self, kind: Kind, namespace: str = "") -> Sequence[Document]:
        self.note(LOOK, kind, "")
        return self.view.within(kind, namespace)

    def owned(self, uid: str, kind: Kind) -> Sequence[Document]:
        self.note(LOOK, kind, "")
        return self.view.owned(uid, kind)

    def is_hidden(self, kind: Kind) -> bool:
        return self.view.is_hidden(kind)

    def is_served(self, kind: Kind) -> bool:
        return self.view.is_served(kind)


def verbs_of(write: Write) -> Iterator[tuple[str, Kind, str]]:
    match write:
        case Create(document):
            yield "create", kind_of(document), ""
        case Patch(kind, is_status=is_status):
            yield "patch", kind, "status" if is_status and kind.has_status else ""
        case Delete(kind):
            yield "delete", kind, ""
        case Evict():
            yield "create", POD, "eviction"
        case Bind():
            yield "create", POD, "binding"
        case Try(tried, refused):
            yield from (found for each in (tried, *refused("no")) for found in verbs_of(each))
        case RecordEvent():
            return


class Journal:
    """What controllers do, by their names."""

    def __init__(self) -> None:
        self.done: dict[str, set[tuple[str, Kind, str]]] = defaultdict(set)

    def follow(self, *found: Any, **settings: Any) -> Sequence[Controller]:
        """Return the standard controllers, each followed."""
        controllers = standard_controllers(*found, **settings)
        for controller in controllers:
            setattr(controller, "reconcile", self._followed(controller))  # noqa: B010  # it is a method
        return controllers

    def _followed(self, controller: Controller) -> Callable[[View, Key], Result]:
        done, reconcile = self.done[controller.name], controller.reconcile

        def look(view: View, key: Key) -> Result:
            result = reconcile(SeenView(view, lambda *seen: done.add(seen)), key)
            done.update(found for write in result.writes for found in verbs_of(write))
            return result

        return look


FOLDERS = sorted(file.parent for file in (ROOT / "examples").glob("*/scenario.yaml"))


def is_declared(row: Iterable[Permission], verb: str, kind: Kind, part: str) -> bool:
    return bool(allowed(row, kind)) if verb == LOOK else verb in allowed(row, kind, part)


@pytest.mark.timeout(600)
def test_controllers_do_in_the_examples_nothing_that_is_not_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(simulating, "standard_controllers", journal.follow)
    for folder in FOLDERS:
        answer = CliRunner().invoke(main, ["simulate", str(folder)])
        assert answer.exit_code in (0, 3), answer.output
    undeclared = [
        (name, verb, kind.resource, part)
        for name, done in journal.done.items() for verb, kind, part in done
        if not is_declared(TABLE[name], verb, kind, part)
    ]  # fmt: skip
    assert undeclared == []
    assert len([name for name, done in journal.done.items() if any(verb != LOOK for verb, _, _ in done)]) >= 5


# --- roles ---------------------------------------------------------------------------------------------------------------


def granted(rules: Iterable[dict[str, Any]]) -> list[Done]:
    return [
        (verb, f"{group}/{resource}")
        for rule in rules for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
    ]  # fmt: skip


def test_rules_allow_what_the_table_holds_once_and_nothing_else() -> None:
    found = granted(rules_of(permissions()))
    assert set(found) == pairs(access for row in TABLE.values() for access in row if not access.option)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "made",
    [
        scheduler_rules, ssh_rules, kept_node_rules, review_rules, namespace_rules, reader_rules, page_rules, shadow_rules,
        view_rules,
        edit_rules,
    ],
)  # fmt: skip
def test_no_rule_has_a_wildcard_or_lets_anybody_get_more(made: Callable[[], list[dict[str, Any]]]) -> None:
    words = {word for rule in made() for part in ("apiGroups", "resources", "verbs") for word in rule[part]}
    assert not {word for word in words if "*" in word}
    assert not words & {"escalate", "bind", "impersonate", "deletecollection", "roles", "clusterroles", "serviceaccounts/token"}


def test_secrets_are_made_and_never_listed_and_can_be_left_out() -> None:
    assert set(granted(ssh_rules())) == {("get", "/secrets"), ("create", "/secrets")}
    without = role_documents(InstallSettings(config="", has_ssh=False))
    assert not any(resource.endswith("/secrets") for role in without for _, resource in granted(role.get("rules", ())))


def test_nodes_are_patched_only_where_that_was_asked_for() -> None:
    assert set(granted(kept_node_rules())) == {("get", "/nodes"), ("patch", "/nodes")}
    for keeps_nodes in (False, True):
        documents = role_documents(InstallSettings(config="", keeps_nodes=keeps_nodes))
        found = {verb for role in documents for verb, resource in granted(role.get("rules", ())) if resource == "/nodes"}
        assert found == ({"get", "list", "watch", "patch"} if keeps_nodes else {"list", "watch"})


def test_what_a_race_makes_necessary_is_read_one_by_one_and_nothing_else() -> None:
    """A create may find the object there already, and a patch may not find it: then it is looked up."""
    found = set(granted(scheduler_rules()))
    looked_up = {resource for verb, resource in found if verb == "get"}
    written = {resource.removesuffix("/status") for verb, resource in found if verb in ("create", "patch")}
    assert looked_up == {resource for resource in written if resource.count("/") == 1} - {"/events"}


def test_config_maps_are_followed_in_the_namespace_of_the_installation_alone() -> None:
    assert {verb for verb, resource in granted(scheduler_rules()) if resource == "/configmaps"} == {"get", "create", "patch"}
    assert {verb for verb, resource in granted(namespace_rules()) if resource == "/configmaps"} == {"list", "watch"}


def test_the_lease_is_the_only_one_that_can_be_changed() -> None:
    by_verb = {verb: rule.get("resourceNames") for rule in lease_rules() for verb in rule["verbs"]}
    assert by_verb == {"create": None, "get": ["phalanx"], "update": ["phalanx"]}


def test_people_may_look_at_every_kind_that_comes_with_us_and_change_no_queue() -> None:
    seen, changed = set(granted(view_rules())), set(granted(edit_rules()))
    assert {("list", f"{item.kind.group}/{item.kind.plural}") for item in DEFINITIONS} <= seen
    assert {verb for verb, _ in seen} == set(READ)
    assert ("create", "batch.volcano.sh/jobs") in changed
    assert not any("queues" in resource or "bindrequests" in resource for _, resource in changed)


def test_a_role_is_bound_to_the_account_in_its_namespace() -> None:
    roles = role_documents(InstallSettings(config="", namespace="batch"))
    subjects = [subject for role in roles for subject in role.get("subjects", ())]
    ours, theirs = ({"kind": "ServiceAccount", "name": name, "namespace": place} for name, place in ACCOUNTS)
    assert subjects == [ours, ours, theirs]


def test_a_reservation_pod_may_write_on_pods_of_its_namespace_and_nothing_else() -> None:
    roles = [item for item in role_documents(InstallSettings(config="")) if item["metadata"].get("namespace") == ACCOUNTS[1][1]]
    assert [(item["kind"], item.get("rules")) for item in roles] == [
        ("ServiceAccount", None), ("Role", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}]), ("RoleBinding", None),
    ]  # fmt: skip


def test_a_reader_may_list_what_scheduling_depends_on_and_change_nothing() -> None:
    allowed = set(granted(reader_rules()))
    assert {("list", f"{kind.group}/{kind.plural}") for kind in (*kinds_read(), *kinds_listed())} <= allowed
    assert {verb for verb, _ in allowed} == {"list"}
    assert not [resource for _, resource in allowed if resource.endswith(("/secrets", "/configmaps", "/events", "/*"))]


def test_who_serves_the_page_follows_what_it_shows_and_changes_nothing() -> None:
    allowed = set(granted(page_rules()))
    reviews = {("create", "authentication.k8s.io/tokenreviews"), ("create", "authorization.k8s.io/subjectaccessreviews")}
    assert {item for item in allowed if item[0] not in ("list", "watch")} == reviews
    assert {("list", f"{kind.group}/{kind.plural}") for kind in kinds_listed()} | {("list", "/events")} <= allowed
    assert ("watch", "/events") not in allowed
    answer = CliRunner().invoke(main, ["manifests", "reader", "--page", "--service-account", "web:page", "-o", "json"])
    role, binding = json.loads(answer.stdout)["items"]
    assert role["rules"] == page_rules()
    assert (binding["roleRef"]["name"], binding["subjects"]) == ("phalanx-page", [service_account("web", "page")])


def test_a_shadow_may_list_and_watch_and_nothing_else() -> None:
    verbs = {verb for rule in shadow_rules() for verb in rule["verbs"]}
    resources = {resource for rule in shadow_rules() for resource in rule["resources"]}
    assert verbs == {"list", "watch"}
    assert {"pods", "nodes", "podgroups"} <= resources
    assert not {"secrets", "configmaps", "leases"} & resources


def test_the_manifests_of_a_shadow_have_no_role_that_changes_anything() -> None:
    answer = CliRunner().invoke(main, ["manifests", "rbac", "--shadow", "-o", "json"])
    found = json.loads(answer.stdout)["items"]
    assert [item["kind"] for item in found] == ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"]
    assert found[2]["rules"] == shadow_rules()


def test_a_reader_is_bound_to_those_who_are_named() -> None:
    role, binding = reader_documents([user("ada")])
    assert (binding["roleRef"]["name"], binding["subjects"][0]["name"]) == (role["metadata"]["name"], "ada")
    assert [item["kind"] for item in reader_documents()] == ["ClusterRole"]


@pytest.mark.parametrize("account", ["ci", "a:b:c", ":ci"])
def test_a_service_account_without_a_namespace_is_refused(account: str) -> None:
    answer = CliRunner().invoke(main, ["manifests", "reader", "--service-account", account])
    assert answer.exit_code == 2
    assert "write NAMESPACE:NAME, such as default:ci" in answer.stderr
