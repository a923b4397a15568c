"""Writes of sessions and controllers, sent to an API server."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from phalanx.controllers.controller import Bind, Create, Delete, Evict, Patch, RecordEvent, Try, Write
from phalanx.controllers.objects import controller_of
from phalanx.errors import ClusterError, Conflict, Exists, Forbidden, Invalid, Missing
from phalanx.live.outbox import Done, Outbox, Rank
from phalanx.model.kinds import POD, Document, Kind, kind_of
from phalanx.store import patches
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror

FAILED_CREATE = "FailedCreate"
"""The reason under which Kubernetes' own controllers tell of what they cannot make."""
Spot = tuple[Kind, str, str]


class _Letter:
    """A patch that waits."""

    def __init__(self, write: Patch) -> None:
        self.write = write

    @property
    def place(self) -> tuple[Spot, bool]:
        return _spot_of_patch(self.write), self.write.is_status

    def add(self, write: Patch) -> None:
        """Let it do what another one does, too."""
        self.write = replace(self.write, patch=joined(self.write.patch, write.patch, is_by_type=write.is_by_type))


class Writer:
    """Sends writes through the outbox; what the server answers is entered into the mirror at once."""

    def __init__(self, client: Client, outbox: Outbox, mirror: Mirror, tell: Callable[[RecordEvent], None]) -> None:
        """Send nothing yet; `tell` is handed every event."""
        self._client, self._outbox, self._mirror, self._tell = client, outbox, mirror, tell
        self._pending: dict[tuple[Spot, bool], _Letter] = {}
        """Patches that nobody waits for and that were not sent yet, all for one object as one."""

    # --- for controllers: one after the other, and what is refused is known ------------------------------------------

    async def write_all(self, writes: Sequence[Write]) -> None:
        """Write one after the other, until one is refused that was only tried."""
        for write in writes:
            if not isinstance(write, Try):
                await self.write(write)
            elif not await self._try(write):
                return

    async def _try(self, trial: Try) -> bool:
        try:
            await self.write(trial.write)
        except ClusterError as refusal:
            await self.write_all(trial.refused(str(refusal)))
            return False
        return True

    async def write(self, write: Write) -> None:
        """Write and wait; a refusal is raised."""
        match write:
            case RecordEvent():
                self._tell(write)
            case Create(document):
                await self._outbox.send(Rank.WRITE, _spot_of(document), lambda: self._create(document))
            case Patch():
                await self._outbox.send(Rank.WRITE, _spot_of_patch(write), lambda: self._patch(write))
            case Delete(kind, namespace, name):
                await self._outbox.send(Rank.WRITE, (kind, namespace, name), lambda: self._delete(write))
            case Evict(namespace, name):
                await self._outbox.send(Rank.EVICT, (POD, namespace, name), lambda: self.evict(write))
            case Bind(namespace, name):
                await self._outbox.send(Rank.BIND, (POD, namespace, name), lambda: self._bind(write))

    # --- for sessions: soon, and a refusal is left to the next session -----------------------------------------------

    def leave(self, write: Write, rank: Rank = Rank.WRITE, *, done: Done | None = None) -> None:
        """Write when there is time; patches of one object that wait are joined. `done` is told what became of a new object."""
        match write:
            case RecordEvent():
                self._tell(write)
            case Patch():
                self._leave_patch(_Letter(write), rank)
            case Create(document):
                self._outbox.put(rank, _spot_of(document), lambda: self._create(document), done)
            case Delete(kind, namespace, name):
                self._outbox.put(rank, (kind, namespace, name), lambda: self._delete(write))

    def _leave_patch(self, letter: "_Letter", rank: Rank) -> None:
        known = self._pending.get(letter.place)
        if known is not None:
            known.add(letter.write)
            return
        self._pending[letter.place] = letter
        self._outbox.put(rank, _spot_of_patch(letter.write), lambda: self._post(letter))

    async def _post(self, letter: "_Letter") -> None:
        if self._pending.get(letter.place) is letter:
            del self._pending[letter.place]
        try:
            await self._patch(letter.write)
        except Missing:
            await self._check_gone(letter.write)

    async def _check_gone(self, write: Patch) -> None:
        """Raise if an object that was not found is there; one that went while its patch was on the way is no fault."""
        spot = _spot_of_patch(write)
        if self._mirror.find(*spot) is None:
            return
        with suppress(Missing):
            await self._client.get(*spot)
            part = "its status" if write.is_status else "it"
            raise ClusterError(
                f"{write.kind.resource} {write.namespace}/{write.name}: {part} cannot be patched, although it is there"
            )

    def forget(self) -> None:
        """Somebody else writes now."""
        self._pending.clear()

    # --- requests ----------------------------------------------------------------------------------------------------

    async def _create(self, document: Document) -> None:
        try:
            made = await self._client.create(document)
        except (Invalid, Forbidden) as refusal:
            self._tell_owner(document, refusal)
            raise
        except Exists:
            if self._mirror.find(*_spot_of(document)) is not None:
                return
            made = await self._client.get(*_spot_of(document))
            if _is_leftover(made, document):
                raise
        self._mirror.put(kind_of(document), {"apiVersion": document["apiVersion"], "kind": document["kind"], **made})

    def _tell_owner(self, document: Document, refusal: ClusterError) -> None:
        """Let the owner of an object that cannot be made say why: whoever wrote the owner is to mend it."""
        owner, namespace = controller_of(document), document["metadata"].get("namespace")
        if owner is None:
            return
        place = {"namespace": namespace} if namespace else {}
        about = {**owner, "metadata": {"name": owner["name"], "uid": owner.get("uid", ""), **place}}
        text = f"{refusal}; {owner['kind']} {owner['name']} waits until that is mended"
        self._tell(RecordEvent(about, FAILED_CREATE, text, is_warning=True))

    async def _patch(self, write: Patch) -> None:
        kind, form = write.kind, patches.STRATEGIC if write.is_by_type else patches.MERGE
        answer = await self._client.patch(*_spot_of_patch(write), write.patch, form=form, is_status=write.is_status)
        if answer.get("kind") == kind.kind:
            self._mirror.put(kind, dict(answer))

    async def _delete(self, write: Delete) -> None:
        with suppress(Missing):
            await self._client.delete(write.kind, write.namespace, write.name, uid=write.uid)

    async def evict(self, write: Evict) -> None:
        """Ask a pod to go, as far as disruption budgets allow; one that is gone is no fault."""
        with suppress(Missing):
            await self._client.evict(write.namespace, write.name, uid=write.uid)

    async def _bind(self, write: Bind) -> None:
        try:
            await self._client.bind(write.namespace, write.name, write.node, uid=write.uid)
        except Conflict as refusal:
            if not is_bound_to(refusal, write.node):
                raise


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
