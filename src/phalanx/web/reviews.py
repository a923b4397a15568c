"""Questions about oneself that kubectl asks: who am I, and may I do this? In an embedded cluster everybody may do everything."""

from collections.abc import Mapping
from typing import Any

from phalanx.model.kinds import Document

USER = "phalanx"
EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {"allowed": True},
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": {
        "resourceRules": [EVERYTHING], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}], "incomplete": False,
    },
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": {"userInfo": {"username": USER, "groups": ["system:masters"]}},
}  # fmt: skip
"""The status of each review, by its path."""


def reviewed(path: str, body: Document) -> dict[str, Any]:
    """Return a review with its answer."""
    return {**body, "metadata": body.get("metadata") or {}, "status": ANSWERS[path]}
