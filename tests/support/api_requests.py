"""What accounts ask of a real API server, as its audit log tells, and what the rules of roles allow of that."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

POLICY, LOG = "audit-policy.yaml", "audit.log"
ACCOUNTS = "system:serviceaccounts"
OF_KUBERNETES = f"{ACCOUNTS}:kube-system"
FORBIDDEN = 403
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
    code: int


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


def logged(folder: Path) -> Iterator[ApiRequest]:
    """Yield the requests for objects that a server has logged in a folder."""
    with (folder / LOG).open() as lines:
        for line in lines:
            event = json.loads(line) if line.endswith("\n") else {}
            if "objectRef" in event:
                yield _request(event)


def _request(event: Mapping[str, Any]) -> ApiRequest:
    target = event["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return ApiRequest(
        event["user"]["username"].removeprefix("system:serviceaccount:").replace(":", "/"),
        Access(target.get("apiGroup", ""), resource, event["verb"]),
        target.get("namespace", ""), target.get("name", ""), event.get("responseStatus", {}).get("code", 0),
    )  # fmt: skip


def granted(rules: Iterable[Rule]) -> set[Access]:
    """Return what rules allow, whatever the names of the objects."""
    return {
        Access(group, resource, verb)
        for rule in rules for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
    }  # fmt: skip


def allows(rules: Iterable[Rule], request: ApiRequest) -> bool:
    """Tell whether some rule allows a request; one that names objects allows no others."""
    return any(request.access in granted([rule]) and request.name in rule.get("resourceNames", [request.name]) for rule in rules)
