"""Errors of the API: from our exceptions to Status objects and back."""

from typing import Any

from phalanx import errors
from phalanx.errors import ClusterError
from phalanx.model.kinds import Document

KNOWN: tuple[type[ClusterError], ...] = (
    errors.Missing, errors.Conflict, errors.Exists, errors.Invalid, errors.Unauthorized, errors.Forbidden,
    errors.NotAllowed, errors.WrongForm, errors.TooLarge, errors.Busy, errors.ServerError, errors.Gone, errors.Unreachable,
)  # fmt: skip
BY_REASON = {error.reason: error for error in KNOWN} | {"Gone": errors.Gone}
BY_CODE = {error.code: error for error in reversed(KNOWN)} | {
    409: errors.Conflict,
    502: errors.Unreachable,
    504: errors.Unreachable,
}
REASONS = {
    "Required value": "FieldValueRequired", "Invalid value": "FieldValueInvalid", "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate", "Forbidden": "FieldValueForbidden",
}  # fmt: skip
"""Reasons of faults, by the words that these begin with after their field."""
FIRST_OF_SERVER = 500
"""From this code on the server, or a proxy before it, has failed, and not the client."""


def success(code: int = 200, details: Document | None = None) -> dict[str, Any]:
    """Return the Status of something that was done and has no object to show."""
    return {**_status("Success"), **({"details": details} if details else {}), **({"code": code} if code != 200 else {})}


def status_of(problem: ClusterError) -> dict[str, Any]:
    """Return the Status that says why something was refused."""
    details: dict[str, Any] = {key: value for key, value in (("name", problem.name), ("kind", problem.kind)) if value}
    if problem.cause is not None:
        details["causes"] = [{"reason": problem.cause[0], "message": problem.cause[1]}]
    if isinstance(problem, errors.Invalid) and problem.faults:
        details["causes"] = [_cause(fault) for fault in problem.faults]
    # Clients read the details of what is missing without looking whether there are any.
    extra = {"details": details} if details or isinstance(problem, errors.Missing) else {}
    return {**_status("Failure"), "message": str(problem), "reason": problem.reason, **extra, "code": problem.code}


def _cause(fault: str) -> dict[str, str]:
    field, _, text = fault.partition(": ")
    return {"reason": REASONS.get(text.partition(":")[0], REASONS["Invalid value"]), "message": text, "field": field}


def _status(outcome: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome}


def problem_of(status: Document, code: int) -> ClusterError:
    """Return the error that a Status stands for; `code` is that of the answer, for servers that give no reason."""
    kind = BY_REASON.get(str(status.get("reason", ""))) or _kind_of_code(int(status.get("code") or code))
    details = status.get("details") or {}
    causes = details.get("causes") or [{}]
    cause = (str(causes[0].get("reason", "")), str(causes[0].get("message", ""))) if causes[0] else None
    message = str(status.get("message") or f"the server answered {code}")
    return kind(message, kind=str(details.get("kind", "")), name=str(details.get("name", "")), cause=cause)


def _kind_of_code(code: int) -> type[ClusterError]:
    return BY_CODE.get(code, errors.ServerError if code >= FIRST_OF_SERVER else ClusterError)
