"""Paths of the API, refusals on the wire, and columns of a table."""

import pytest

from phalanx import errors
from phalanx.errors import Busy, ClusterError, Conflict, Exists, Gone, Missing
from phalanx.model.kinds import KINDS, Kind, kind_at
from phalanx.store.paths import ResourcePath, resource_path
from phalanx.store.status_errors import problem_of, status_of, success
from phalanx.web.columns import age

POD, NAMESPACE = kind_at("", "pods"), kind_at("", "namespaces")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
@pytest.mark.parametrize("rest", [(), ("a",), ("a", "status")], ids=["list", "object", "status"])
def test_a_path_leads_back_to_what_it_names(kind: Kind, rest: tuple[str, ...]) -> None:
    target = ResourcePath(kind, "team" if kind.is_namespaced else "", *rest)
    assert resource_path(target.path) == target


def test_a_list_of_all_namespaces_has_a_path() -> None:
    assert ResourcePath(POD).path == "/api/v1/pods"
    assert resource_path("/api/v1/pods") == ResourcePath(POD)


def test_a_namespace_is_an_object_too() -> None:
    assert resource_path("/api/v1/namespaces/team") == ResourcePath(NAMESPACE, "", "team")
    assert resource_path("/api/v1/namespaces/team/status") == ResourcePath(NAMESPACE, "", "team", "status")


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/api", "/api/v2/pods", "/apis/policy/v1", "/apis/policy/v1/pods", "/api/v1/pods/a"),
        *("/api/v1/namespaces/x/nodes/a", "/api/v1/namespaces/x/pods/a/b/c"),
    ],
)
def test_a_path_that_names_nothing_is_not_found(path: str) -> None:
    with pytest.raises(Missing):
        resource_path(path)


@pytest.mark.parametrize("kind", [Missing, Conflict, Exists, Gone, Busy, errors.Invalid, errors.Forbidden, errors.ServerError])
def test_a_refusal_survives_the_wire(kind: type[ClusterError]) -> None:
    sent = kind("no", kind="pods", name="a", cause=("Because", "of that"))
    found = problem_of(status_of(sent), 500)
    assert type(found) is kind
    assert (str(found), found.kind, found.name, found.cause) == ("no", "pods", "a", ("Because", "of that"))


def test_a_refusal_without_a_reason_is_known_by_its_code() -> None:
    assert type(problem_of({}, 409)) is Conflict
    assert type(problem_of({"code": 410}, 200)) is Gone
    assert type(problem_of({}, 418)) is ClusterError
    assert [type(problem_of({}, code)) for code in (502, 503, 504)] == [errors.Unreachable] * 3
    assert [type(problem_of({}, code)) for code in (500, 507)] == [errors.ServerError] * 2
    assert str(problem_of({}, 418)) == "the server answered 418"


def test_success_has_a_code_where_something_was_created() -> None:
    assert success(201)["code"] == 201
    assert "code" not in success()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m")),
        *((7200, "2h0m"), (12_000, "3h20m"), (36_000, "10h"), (172_800, "2d")),
    ],
)
def test_an_age_has_two_digits_or_so(seconds: int, text: str) -> None:
    assert age("2026-01-01T00:00:00Z", 1_767_225_600 + seconds) == text


def test_an_unknown_age_is_said_to_be_unknown() -> None:
    assert age("", 0.0) == "<unknown>"
