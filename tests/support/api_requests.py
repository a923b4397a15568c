"""What accounts ask of a real API server, as its audit log tells, and what the rules of roles allow of that."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

POLICY, LOG = "audit-policy.yaml", "audit.log"
ACCOUNTS = "system:serviceaccounts"
OF_KUBERNETES = f"{ACCOUNTS}:kube-system"
DECISION = "authorization.k8s.io/decision"
BLOCKED = "cannot set blockOwnerDeletion"
"""How the admission plugin below refuses."""
ALSO_ADMITTED_BY = "OwnerReferencesPermissionEnforcement"
"""Some distributions admit by this too: whoever makes an object that blocks its owner's deletion must be allowed to do that."""
Rule = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """A verb on a resource of an API group; the resource has its part, such as `pods/status`."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        """Say it as people do."""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request of an account."""

    account: str
    """Its namespace and name."""
    access: Access
    namespace: str
    name: str
    is_forbidden: bool
    """Roles do not allow it. Admission may refuse what roles allow, such as a new object in a namespace that goes."""


def audit_flags(folder: Path) -> list[str]:
    """Write a policy into a folder, and return the flags with which a server logs there what service accounts ask.

    Those of Kubernetes' own controllers are left out, and so is everybody else, since they may do anything.
    """
    rules = [
        {"level": "None", "userGroups": [OF_KUBERNETES]}, {"level": "Metadata", "userGroups": [ACCOUNTS]}, {"level": "None"},
    ]  # fmt: skip
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    (folder / POLICY).write_text(yaml.safe_dump(policy))
    return [
        f"--audit-policy-file={folder / POLICY}", f"--audit-log-path={folder / LOG}",
        f"--enable-admission-plugins={ALSO_ADMITTED_BY}",
    ]  # fmt: skip


class RequestLog:
    """What a server has logged in a folder so far."""

    def __init__(self, folder: Path) -> None:
        """Begin with the first request."""
        self._file, self._offset = folder / LOG, 0
        self._found: list[ApiRequest] = []

    def requests(self) -> list[ApiRequest]:
        """Return the requests for objects, the last ones too."""
        with self._file.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # being written
                self._offset += len(line)
                event = json.loads(line)
                self._found += [_request(event)] if "objectRef" in event else []
        return self._found

    def asked_by(self, account: str) -> set[Access]:
        """Return what an account has asked for; it is named by its namespace and name, or by the end of that."""
        return {request.access for request in self.requests() if request.account.endswith(account)}


def _request(event: Mapping[str, Any]) -> ApiRequest:
    target = event["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return ApiRequest(
        event["user"]["username"].removeprefix("system:serviceaccount:").replace(":", "/"),
        Access(target.get("apiGroup", ""), resource, event["verb"]),
        target.get("namespace", ""), target.get("name", ""), _is_forbidden(event),
    )  # fmt: skip


def _is_forbidden(event: Mapping[str, Any]) -> bool:
    """Tell whether somebody lacks a permission: by the roles, or where an admission plugin asks for one more."""
    says = str(event.get("responseStatus", {}).get("message", ""))
    return event.get("annotations", {}).get(DECISION) == "forbid" or BLOCKED in says


def granted(rules: Iterable[Rule]) -> set[Access]:
    """Return what rules allow, whatever the names of the objects."""
    return {
        Access(group, resource, verb)
        for rule in rules for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
    }  # fmt: skip


def allows(rules: Iterable[Rule], request: ApiRequest) -> bool:
    """Tell whether some rule allows a request; one that names objects allows no others."""
    return any(request.access in granted([rule]) and request.name in rule.get("resourceNames", [request.name]) for rule in rules)
