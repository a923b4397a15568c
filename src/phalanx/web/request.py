"""Requests to the API server: what each asks for, read from its path, query, headers and body."""

from typing import Any

import msgspec
import yaml
from aiohttp import web

from phalanx.dialects.yaml_reader import read_yaml
from phalanx.errors import ClusterError, Forbidden, Invalid, Missing, NotAllowed, TooLarge, WrongForm
from phalanx.model.bounds import BODY_BYTES, NESTING, is_too_deep
from phalanx.model.kinds import POD, Document, kind_of
from phalanx.store import patches
from phalanx.store.memory import BACKGROUND, ORPHAN
from phalanx.store.paths import NOWHERE, ResourcePath, resource_path
from phalanx.store.selection import Selection, check_fields, selection
from phalanx.web import protobuf
from phalanx.web.containers import is_about_containers
from phalanx.web.scale import SCALED
from phalanx.web.tables import included_in_rows, wants_table
from phalanx.web.watches import LONGEST, WatchRequest

JSON_FORMS = ("application/json", "application/octet-stream", *patches.FORMS)
"""A client that names no form sends octets."""
APPLIED = "application/apply-patch+yaml"
LOCAL = ("localhost", "127.0.0.1", "::1")
YES = ("1", "true", "True")
IGNORE, WARN, STRICT = FIELD_VALIDATIONS = ("Ignore", "Warn", "Strict")
VERBS = {"GET": "read", "POST": "create", "PUT": "replace", "PATCH": "patch", "DELETE": "delete"}


class ApiRequest:
    """One request to the API, parsed."""

    def __init__(self, request: web.Request, body: Any) -> None:
        self.query, self.body = request.query, body
        self.form, self._agent = request.content_type, request.headers.get("User-Agent", "")
        self.is_table = wants_table(request.headers.get("Accept", ""))
        self.included = included_in_rows(self.query.get("includeObject", "") if self.is_table else "")
        self.target = resource_path(_as_binding(request.path, body))
        self.verb = _verb(request.method, self.target)

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in YES

    @property
    def is_status(self) -> bool:
        return self.target.subresource == "status"

    @property
    def chosen(self) -> Selection:
        chosen = selection(self.target.namespace, self.query.get("labelSelector", ""), self.query.get("fieldSelector", ""))
        check_fields(self.target.kind.kind, chosen)
        return chosen

    @property
    def watch(self) -> WatchRequest:
        query = self.query
        return WatchRequest(
            self.target.kind, self.chosen, str(self.number("resourceVersion")), self.number("timeoutSeconds") or LONGEST,
            query.get("allowWatchBookmarks") in YES, query.get("sendInitialEvents") in YES,
        )  # fmt: skip

    def number(self, name: str) -> int:
        text = self.query.get(name, "0")
        if not text.isdigit():
            raise ClusterError(f"{name}: expected a whole number, got {text!r}")
        return int(text)

    @property
    def is_trial(self) -> bool:
        listed = self.options.get("dryRun") or ()
        asked = self.query.get("dryRun") or next(iter(listed), "")
        if asked not in ("", "All"):
            raise Invalid(f'dryRun: Unsupported value: "{asked}": supported values: "All"')
        return asked == "All"

    @property
    def manager(self) -> str:
        """Who owns what the request writes: as it says, or the program that sends it."""
        return str(self.query.get("fieldManager") or self._agent.partition("/")[0] or "unknown")

    @property
    def is_forced(self) -> bool:
        """Tell whether what others own is taken from them."""
        return self.query.get("force") in YES

    @property
    def field_validation(self) -> str:
        """What becomes of fields that the kind does not have."""
        asked = str(self.query.get("fieldValidation") or WARN)
        if asked not in FIELD_VALIDATIONS:
            known = ", ".join(f'"{name}"' for name in ("", *sorted(FIELD_VALIDATIONS)))
            raise Invalid(f'fieldValidation: Unsupported value: "{asked}": supported values: {known}')
        return asked

    @property
    def options(self) -> Document:
        """How to delete: the body of a deletion, or a part of an eviction."""
        body = self.body if isinstance(self.body, dict) else {}
        if self.target.subresource == "eviction":
            return body.get("deleteOptions") or {}
        return body if self.verb == "delete" else {}

    @property
    def grace(self) -> int | None:
        found = self.options.get("gracePeriodSeconds", self.query.get("gracePeriodSeconds"))
        return None if found is None else int(found)

    @property
    def uid(self) -> str:
        return str((self.options.get("preconditions") or {}).get("uid") or "")

    @property
    def propagation(self) -> str:
        """What becomes of the dependents of an object that is deleted."""
        found = self.options.get("propagationPolicy") or self.query.get("propagationPolicy")
        return str(found or (ORPHAN if self.options.get("orphanDependents") else BACKGROUND))

    @property
    def document(self) -> dict[str, Any]:
        """The object in the body, at the place that the path names."""
        body, target = self.body, self.target
        if not isinstance(body, dict):
            raise ClusterError("the body of the request is empty or no object; send the object as JSON")
        meta = dict(body.get("metadata") or {})
        if target.kind.is_namespaced and meta.setdefault("namespace", target.namespace) != target.namespace:
            raise ClusterError("the namespace of the provided object does not match the namespace sent on the request")
        if target.name and meta.setdefault("name", target.name) != target.name:
            raise ClusterError(f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})")
        found = {"apiVersion": target.kind.api_version, "kind": target.kind.kind, **body, "metadata": meta}
        if kind_of(found) is not target.kind:
            raise ClusterError(f"{found['kind']} in version {found['apiVersion']} cannot be handled as a {target.kind.kind}")
        return found


def refuse_strangers(request: web.Request) -> None:
    """Refuse requests that a page of another site may have sent.

    Somebody who means this server uses a local name or its address; a page whose name was rebound to this address does not.
    """
    local = request.transport.get_extra_info("sockname")[0] if request.transport is not None else ""
    host = (request.url.host or "").lower()
    if local in LOCAL and host not in (*LOCAL, local):
        raise Forbidden(f"host {host!r} is not this server; call it localhost or {local}")
    origin = request.headers.get("Origin", "")
    if origin and origin != f"{request.scheme}://{request.host}":
        raise Forbidden(f"requests from pages of {origin!r} are not allowed")


async def body_of(request: web.Request) -> Any:
    """Return the body as data; None if there is none."""
    text = await _read(request)
    if not text:
        return None
    if request.content_type == protobuf.FORM:
        return protobuf.decoded(text)
    if request.content_type == APPLIED:
        return _of_yaml(text)
    if request.content_type not in JSON_FORMS:
        known = ", ".join((*JSON_FORMS, APPLIED, protobuf.FORM))
        raise WrongForm(f"the body of the request was in an unknown format - accepted media types include: {known}")
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise ClusterError(f"the body of the request is not JSON: {problem}") from problem
    except RecursionError:
        raise ClusterError(f"the body of the request is nested too deeply: {NESTING.text}") from None
    if is_too_deep(found):
        raise ClusterError(f"the body of the request is nested too deeply: {NESTING.text}")
    return found


def _of_yaml(text: bytes) -> Any:
    try:
        found = read_yaml(text)
    except yaml.YAMLError as problem:
        raise ClusterError(f"the body of the request is not YAML: {problem}") from problem
    return found[0] if len(found) == 1 else None


async def _read(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge(f"the body of the request is too large: {BODY_BYTES.text}") from None
    except web.RequestPayloadError:
        raise ClusterError("the body of the request is not what its headers say") from None


def _as_binding(path: str, body: Any) -> str:
    """Return the path of a pod's binding for one that is sent to all bindings of a namespace."""
    if path.endswith("/bindings") and isinstance(body, dict):
        return f"{path.removesuffix('bindings')}pods/{body.get('metadata', {}).get('name', '')}/binding"
    return path


def _verb(method: str, target: ResourcePath) -> str:
    if target.subresource == "scale" and target.kind in SCALED and method in ("GET", "PUT", "PATCH"):
        return "read" if method == "GET" else "scale"
    if is_about_containers(method, target):
        return "connect"
    if target.subresource not in ("", "status"):
        if target.kind is not POD or target.subresource not in ("binding", "eviction") or method != "POST":
            raise Missing(NOWHERE)
        return target.subresource
    needs_name = {"GET": None, "POST": False}.get(method, True)
    if method not in VERBS or needs_name not in (None, bool(target.name)):
        raise NotAllowed("the server does not allow this method on the requested resource")
    return VERBS[method]
