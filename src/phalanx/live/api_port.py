"""The API server as carrying out sees it: what watches have brought to look at, and writes that are sent through the outbox."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

from phalanx.controllers.controller import Bind, Create, Delete, Evict, Patch, RecordEvent, View
from phalanx.controllers.objects import controller_of
from phalanx.errors import ClusterError, Conflict, Exists, Forbidden, Invalid, Missing
from phalanx.live.clock import LoopClock
from phalanx.live.held_events import HeldEvents
from phalanx.live.outbox import Job, Outbox, Rank
from phalanx.model.kinds import EVENT, POD, Document, Kind, kind_of
from phalanx.model.merging import merged
from phalanx.scheduling.binding import OTHER_UID
from phalanx.scheduling.events import EventRecorder
from phalanx.scheduling.port import Done, Effort, SingleWrite
from phalanx.store import patches
from phalanx.store.api_client import ApiClient
from phalanx.store.kube.mirror import Mirror

FAILED_CREATE = "FailedCreate"
"""The reason under which Kubernetes' own controllers record what they cannot make."""
Spot = tuple[Kind, str, str]


class _WaitingPatch:
    """A patch that was not sent yet; others of the same object are joined to it."""

    def __init__(self, write: Patch, done: Done | None) -> None:
        self.write = write
        self.job: Job | None = None
        self._done = [] if done is None else [done]

    @property
    def place(self) -> tuple[Spot, bool]:
        return _spot_of_patch(self.write), self.write.is_status

    def add(self, other: "_WaitingPatch") -> None:
        """Let it do what another one does, too."""
        self.write = replace(self.write, patch=joined(self.write.patch, other.write.patch, is_by_type=other.write.is_by_type))
        self._done += other._done

    def answered(self, problem: ClusterError | None) -> None:
        """Tell everybody who waits for it."""
        for done in self._done:
            done(problem)


class ApiPort:
    """Sends writes through the outbox; what the server answers is entered into the mirror at once."""

    def __init__(self, client: ApiClient, outbox: Outbox, mirror: Mirror, clock: LoopClock, *, instance: str) -> None:
        """`instance` names this process in events."""
        self._client, self._outbox, self._mirror, self._clock = client, outbox, mirror, clock
        self._events = HeldEvents(EventRecorder(self, instance=instance), clock, is_busy=lambda: outbox.is_binding)
        self._waiting: dict[tuple[Spot, bool], _WaitingPatch] = {}
        self.doubted: Callable[[Kind, str, str, str], None] = lambda kind, namespace, name, uid: None
        """Called with an object that is not there, as the server says."""
        self.misplaced: Callable[[], None] = lambda: None
        """Called when a kind has a status subresource that it did not have before, or has none any more."""

    @property
    def view(self) -> View:
        """What watches have brought."""
        return self._mirror

    @property
    def clock(self) -> LoopClock:
        """The time of the event loop."""
        return self._clock

    def send(
        self, write: SingleWrite, done: Done | None = None, *, effort: Effort = Effort.USUAL, is_note: bool = False
    ) -> None:  # fmt: skip
        """Send a write when its turn comes; patches of one object are joined while they wait, where they may be."""
        rank = Rank.NOTE if is_note else Rank.WRITE
        match write:
            case Bind(namespace, name):
                self._put(Rank.BIND, (POD, namespace, name), lambda: self._bind(write), done, effort)
            case RecordEvent():
                self._events.record(write)
                if done is not None:
                    done(None)
            case Patch() if done is None or effort is Effort.JOINED:
                self._send_patch(_WaitingPatch(write, done), rank)
            case Patch():
                self._put(rank, _spot_of_patch(write), lambda: self._patch(write), done, effort)
            case Create(document):
                self._put(rank, _spot_of(document), lambda: self._create(document), done, effort)
            case Delete(kind, namespace, name):
                self._put(rank, (kind, namespace, name), lambda: self._delete(write), done, effort)
            case Evict(namespace, name):
                self._put(Rank.EVICT, (POD, namespace, name), lambda: self._evict(write), done, effort)
            case _:
                assert_never(write)

    def _put(self, rank: Rank, spot: Spot, send: Callable[[], Awaitable[None]], done: Done | None, effort: Effort) -> None:
        is_patient, is_endless = effort is not Effort.ONCE, effort is Effort.ENDLESS
        self._outbox.put(rank, spot, send, done, is_patient=is_patient, is_endless=is_endless)

    def forget(self) -> None:
        """Forget what was not sent: somebody else writes now."""
        self._waiting.clear()
        self._events.forget()

    # --- patches that are joined -------------------------------------------------------------------------------------

    def _send_patch(self, patch: _WaitingPatch, rank: Rank) -> None:
        known = self._waiting.get(patch.place)
        spot = _spot_of_patch(patch.write)
        if known is not None and known.job is not None:
            known.add(patch)
            self._outbox.raise_rank(spot, known.job, rank)
            return
        self._waiting[patch.place] = patch
        patch.job = self._outbox.put(rank, spot, lambda: self._post(patch), patch.answered, is_reported=True)

    async def _post(self, patch: _WaitingPatch) -> None:
        if self._waiting.get(patch.place) is patch:
            del self._waiting[patch.place]
        try:
            await self._patch(patch.write)
        except Missing:
            await self._check_gone(patch.write)

    async def _check_gone(self, write: Patch) -> None:
        """Raise if an object that was not found is there; one that went while its patch was on the way is no fault."""
        spot = _spot_of_patch(write)
        if self._mirror.find(*spot) is None:
            return
        with suppress(Missing):
            await self._client.get(*spot)
            self.misplaced()
            part = "its status" if write.is_status else "it"
            raise ClusterError(
                f"{write.kind.resource} {write.namespace}/{write.name}: {part} cannot be patched, although it is there"
            )

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _create(self, document: Document) -> None:
        try:
            made = await self._client.create(document)
        except (Invalid, Forbidden) as refusal:
            self._record_on_owner(document, refusal)
            raise
        except Exists:
            if self._mirror.find(*_spot_of(document)) is not None:
                return
            made = await self._client.get(*_spot_of(document))
            if _is_leftover(made, document):
                raise
        self._enter(kind_of(document), {"apiVersion": document["apiVersion"], "kind": document["kind"], **made})

    def _enter(self, kind: Kind, answer: dict[str, Any]) -> None:
        if kind is not EVENT:  # nobody looks at events, and no watch says when they go
            self._mirror.put(kind, answer)

    def _record_on_owner(self, document: Document, refusal: ClusterError) -> None:
        """Let the owner of an object that cannot be made say why: whoever wrote the owner is to mend it."""
        owner, namespace = controller_of(document), document["metadata"].get("namespace")
        if owner is None:
            return
        place = {"namespace": namespace} if namespace else {}
        about = {**owner, "metadata": {"name": owner["name"], "uid": owner.get("uid", ""), **place}}
        text = f"{refusal}; {owner['kind']} {owner['name']} waits until that is mended"
        self._events.record(RecordEvent(about, FAILED_CREATE, text, is_warning=True))

    async def _patch(self, write: Patch) -> None:
        kind, form = write.kind, patches.STRATEGIC if write.is_by_type else patches.MERGE
        before = _status_of(self._mirror.find(*_spot_of_patch(write)))
        goes_with_object = (
            write.is_status and not self._client.served.get(kind, kind).has_status
        )  # it may be known better by the answer
        answer = await self._client.patch(*_spot_of_patch(write), write.patch, form=form, is_status=write.is_status)
        if answer.get("kind") == kind.kind:
            self._enter(kind, dict(answer))
            if goes_with_object:
                self._check_status(write, before, _status_of(answer))

    def _check_status(self, write: Patch, before: Document, after: Document) -> None:
        """Raise if a status that was written with its object was left out: the kind has a status subresource by now.

        The server answers such a patch as if all was well. A part that its schema does not know is left out too, not all of them.
        """
        changes = [{name: value} for name, value in _status_of(write.patch).items() if merged(before, {name: value}) != before]
        if changes and not any(merged(after, change) == after for change in changes):
            self.misplaced()
            where = f"{write.kind.resource} {write.namespace}/{write.name}"
            raise ClusterError(f"{where}: its status was left out: its kind has a status subresource by now")

    async def _delete(self, write: Delete) -> None:
        with suppress(Missing):
            await self._client.delete(write.kind, write.namespace, write.name, uid=write.uid)

    async def _evict(self, write: Evict) -> None:
        """Ask a pod to go, as far as disruption budgets allow; one that is gone is no fault."""
        with suppress(Missing):
            await self._client.evict(write.namespace, write.name, uid=write.uid)

    async def _bind(self, write: Bind) -> None:
        """Bind a pod; an earlier attempt that has landed, though nobody answered, is known by the node that the refusal names."""
        try:
            await self._client.bind(write.namespace, write.name, write.node, uid=write.uid, annotations=write.annotations)
        except (Conflict, Missing) as refusal:
            if isinstance(refusal, Missing) or OTHER_UID in str(refusal):
                self.doubted(POD, write.namespace, write.name, write.uid)
            if isinstance(refusal, Missing) or not is_bound_to(refusal, write.node):
                raise


def _status_of(document: Document | None) -> Document:
    return (document or {}).get("status") or {}


def joined(first: Mapping[str, Any], then: Mapping[str, Any], *, is_by_type: bool = False) -> dict[str, Any]:
    """Return one patch that does what two do, one after the other."""
    found = dict(first)
    for name, value in then.items():
        old = found.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            found[name] = joined(old, value, is_by_type=is_by_type)
        elif is_by_type and name == "conditions" and old:
            found[name] = list({item["type"]: item for item in (*old, *value)}.values())
        else:
            found[name] = value
    return found


def _is_leftover(found: Document, wanted: Document) -> bool:
    """Tell whether an object belongs to an earlier owner of the same name, and goes soon because that one has gone."""
    uids = {(item["kind"], item["name"]): item.get("uid") for item in wanted["metadata"].get("ownerReferences") or ()}
    return any(
        item.get("uid") != uids.get((item["kind"], item["name"]), item.get("uid"))
        for item in found["metadata"].get("ownerReferences") or ()
    )


def is_bound_to(refusal: Conflict, node: str) -> bool:
    """Tell whether a bind was refused because an earlier attempt of the same one has come through."""
    return f'is already assigned to node "{node}"' in str(refusal)


def _spot_of_patch(write: Patch) -> Spot:
    return write.kind, write.namespace, write.name


def _spot_of(document: Document) -> Spot:
    kind, meta = kind_of(document), document["metadata"]
    namespace = str(meta.get("namespace") or "default") if kind.is_namespaced else ""
    return kind, namespace, str(meta.get("name") or meta.get("generateName", ""))
