"""Roles and requests compared, after all other tests on the control plane: whatever is allowed was asked for, and the reverse.

The API server has logged every request of a service account (`tests/support/api_requests.py`). `tests/conftest.py` puts this file
last, and leaves it out where only some of the tests are run.
"""

from collections.abc import Callable

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.manifests.gpu_reservations import reservation_rules
from phalanx.manifests.roles import (
    edit_rules,
    kept_node_rules,
    namespace_rules,
    page_rules,
    reader_rules,
    review_rules,
    scheduler_rules,
    shadow_rules,
    ssh_rules,
    view_rules,
)
from tests.support.api_requests import Access, RequestLog, Rule, allows, granted
from tests.support.shadow_account import SHADOW

pytestmark = pytest.mark.xdist_group("controlplane")
RUN, READER, RESERVATION = "phalanx-system/phalanx", "/guest", "kai-resource-reservation/gpu-reservation"
PAGE, VIEWER, EDITOR = "/page", "/viewer", "/editor"
"""Who serves the page, and people; `test_people_live.py` lets them do what kubectl does with each kind."""
RULES: dict[str, Callable[[], list[Rule]]] = {
    RUN: lambda: [*scheduler_rules(), *ssh_rules(), *kept_node_rules(), *review_rules(), *namespace_rules()],
    READER: lambda: [*reader_rules()],
    RESERVATION: lambda: [*reservation_rules()],
    SHADOW: lambda: [*shadow_rules()],
    PAGE: lambda: [*page_rules()],
    VIEWER: lambda: [*view_rules()],
    EDITOR: lambda: [*edit_rules()],
}  # fmt: skip


def is_looked_up(access: Access, rules: list[Rule]) -> bool:
    """Tell whether it is the read of a single object of a kind that is also created or patched."""
    written = {Access(access.group, f"{access.resource}{part}", verb) for part in ("", "/status") for verb in ("create", "patch")}
    return access.verb == "get" and bool(written & granted(rules))


NEVER_LOGGED: dict[str, Callable[[Access, list[Rule]], bool]] = {
    "asked inside the server, by an admission plugin that is on here: without it, objects that block a deletion are refused":
        lambda access, rules: access.resource.endswith("/finalizers"),
    "asked inside the server, when the status of a ResourceClaim changes: without it, no pod with devices starts":
        lambda access, rules: access == Access("resource.k8s.io", "resourceclaims/binding", "patch"),
    "a create found the object there, or a patch did not: a race that tests/unit/test_live_api_port.py plays": is_looked_up,
    "the same event again after a minute, which no test waits for; tests/unit/test_scheduling_events.py has a clock of its own":
        lambda access, rules: access == Access("", "events", "patch"),
}  # fmt: skip
"""What is granted and not to be found in the log, and why."""


@pytest.fixture(scope="module")
def log(plane: ControlPlane) -> RequestLog:
    return RequestLog(plane.folder)


@pytest.mark.parametrize("account", RULES)
def test_nothing_was_asked_for_that_is_not_granted(account: str, log: RequestLog) -> None:
    rules, mine = RULES[account](), [request for request in log.requests() if request.account.endswith(account)]
    assert mine, "no request was logged"
    assert [request for request in mine if not allows(rules, request)] == []
    switched_off = granted(review_rules())  # a test of the port lets the scheduler ask without this permission
    assert [request for request in mine if request.is_forbidden and request.access not in switched_off] == []


@pytest.mark.parametrize("account", RULES)
def test_nothing_is_granted_that_is_never_asked_for(account: str, log: RequestLog) -> None:
    rules = RULES[account]()
    left = granted(rules) - log.asked_by(account)
    assert sorted(str(item) for item in left if not any(holds(item, rules) for holds in NEVER_LOGGED.values())) == []


@pytest.mark.parametrize("reason", NEVER_LOGGED)
def test_every_exception_is_about_something_that_is_granted(reason: str) -> None:
    rules = RULES[RUN]()
    assert any(NEVER_LOGGED[reason](item, rules) for item in granted(rules))


def test_only_one_lease_is_read_and_written(log: RequestLog) -> None:
    leases = [request for request in log.requests() if request.account == RUN and request.access.resource == "leases"]
    assert {request.name for request in leases} == {"phalanx"}


def test_secrets_and_config_maps_are_never_listed_in_all_namespaces(log: RequestLog) -> None:
    listed = {
        (request.access.resource, bool(request.namespace)) for request in log.requests()
        if request.account == RUN and request.access.verb in ("list", "watch")
    }  # fmt: skip
    assert not {("secrets", True), ("secrets", False), ("configmaps", False)} & listed
    assert ("configmaps", True) in listed
