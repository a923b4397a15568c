"""Planted bugs of the mirror, its reflectors, and the discovery."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from phalanx.errors import ClusterError, Gone
from phalanx.live import watching
from phalanx.live.app import Live
from phalanx.live.watching import Watching
from phalanx.model.kinds import Kind
from phalanx.model.watch_event import DELETED
from phalanx.store.api_client import ApiClient, Change
from phalanx.store.kube import discovery, mirror
from phalanx.store.kube.mirror import Mirror
from phalanx.store.kube.reflector import Reflector
from tests.storm.mutants import binds_blindly, planted

STALE = (
    "could start", "over-commitment", "no reason", "untrue status", "half-started", "not at rest", "failed", "unfit node",
    "evicted in vain", "queue limit", "killed a healthy gang",
)  # fmt: skip
"""What comes of deciding on a picture that is not true."""
EVERY = 7


@planted("watch event lost", breaks=STALE)
def _event_lost(patch: pytest.MonkeyPatch) -> None:
    """Every seventh event of watches gets lost."""
    on_change, numbers = Reflector._on_change, count(1)

    def lossy(self: Reflector, change: Change) -> None:
        if next(numbers) % EVERY:
            on_change(self, change)

    patch.setattr(Reflector, "_on_change", lossy)


@planted("deletions ignored", breaks=STALE)
def _deletions_ignored(patch: pytest.MonkeyPatch) -> None:
    """What is deleted stays in the mirror."""
    on_change = Reflector._on_change

    def deaf(self: Reflector, change: Change) -> None:
        if change.type == DELETED:
            self._version = change.object["metadata"]["resourceVersion"]
        else:
            on_change(self, change)

    patch.setattr(Reflector, "_on_change", deaf)


@planted("Gone without a list", breaks=STALE, needs=("expired", "compact", "silent", "cut"))
def _gone_without_list(patch: pytest.MonkeyPatch) -> None:
    """After 410 Gone a reflector watches on from now, and misses what was in between."""
    watch = Reflector._watch

    async def watched(self: Reflector) -> None:
        try:
            await watch(self)
        except Gone:
            self._version = (await self._client.list(self.kind, self._namespace, fields=self._fields)).version

    patch.setattr(Reflector, "_watch", watched)


@planted("older versions win", breaks=(*STALE, "bound twice"), needs=("repeated", "late", "twice", "expired", "compact"))
def _older_versions_win(patch: pytest.MonkeyPatch) -> None:
    """An event from before the version that is known takes the object back in time."""
    patch.setattr(mirror, "_is_newer", lambda before, document, *, is_last_word: False)


@planted("undone writes are believed", breaks=STALE, needs=("restore",), is_rare=True)
def _undone_writes(patch: pytest.MonkeyPatch) -> None:
    """What we know from answers to our own writes outlives that the server was set back, if only another kind shows that."""
    patch.setattr(Reflector, "distrust", lambda self: None)
    patch.setattr(Mirror, "newest", lambda self, kind: 0)


@planted("versions of two histories are compared", breaks=STALE, needs=("restore",), is_rare=True)
def _histories_compared(patch: pytest.MonkeyPatch) -> None:
    """Another object with the same version, made after the server was set back, is taken for the one we know."""
    patch.setattr(mirror, "_is_of_other_history", lambda before, document: False)


@planted("an outage is noticed at once or not at all", breaks=STALE, needs=("restore",), is_rare=True)
def _outage_at_once(patch: pytest.MonkeyPatch) -> None:
    """Watches that are cut later than others by the same outage, because they were silent, count by themselves."""
    after_outage = Watching._list_after_outage

    def forgetful(self: Watching) -> None:
        after_outage(self)
        self._lost.clear()

    patch.setattr(Watching, "_list_after_outage", forgetful)


@planted("lists keep what is gone", breaks=STALE, needs=("expired", "compact", "silent", "cut", "kill", "stop", "freeze"))
def _lists_keep(patch: pytest.MonkeyPatch) -> None:
    """A new list adds and changes objects, and removes none."""

    def replace(self: Mirror, kind: Kind, documents: Iterable[dict[str, Any]], **others: Any) -> None:
        for document in documents:
            self._put_listed(kind, document, is_last_word=False)

    patch.setattr(Mirror, "replace", replace)


@planted("re-listed objects ignored", breaks=STALE, needs=("hide group",))
def _relisted_ignored(patch: pytest.MonkeyPatch) -> None:
    """Objects of a kind that was not served for a while are taken for deleted for ever."""
    patch.setattr(Mirror, "_put_listed", lambda self, kind, document, *, is_last_word: self.put(kind, document))


@planted("V1: silent group not served", breaks=STALE, needs=("discovery", "refused"))
def _silent_not_served(patch: pytest.MonkeyPatch) -> None:
    """A group whose discovery fails once is taken for not served, and its objects for deleted."""

    async def nothing(client: ApiClient, problem: ClusterError) -> frozenset[str]:
        return frozenset()

    patch.setattr(discovery, "_unanswered", nothing)
    binds_blindly(patch)
    patch.setattr(watching, "MISSED_SECONDS", 0.0)  # which came later, and helps against this too
    patch.setattr(Mirror, "_put_listed", lambda self, kind, document, *, is_last_word: self.put(kind, document))


@planted("answers to own writes prove nothing", breaks=STALE, needs=("restore",), is_rare=True)
def _answers_prove_nothing(patch: pytest.MonkeyPatch) -> None:
    """A list that is older than the answer to a write of ours does not show that the server was set back."""
    patch.setattr(Mirror, "newest", lambda self, kind: 0)


@planted("writes are believed after an outage", breaks=("untrue status", "no reason"), needs=("restore",), is_rare=True)
def _writes_believed(patch: pytest.MonkeyPatch) -> None:
    """What a server has said yes to is taken for written for good."""
    connect = Live._connect

    def believing(self: Live) -> None:
        connect(self)
        self.watching.on_outage = lambda: None

    patch.setattr(Live, "_connect", believing)


@planted("status subresource taken for granted", breaks=("untrue status", "not at rest"), needs=("lose status",))
def _status_taken_for_granted(patch: pytest.MonkeyPatch) -> None:
    """The status of a kind is written to its subresource, though its definition has none."""
    adjust = Watching._adjust

    def granted(self: Watching, found: discovery.Discovery, tasks: asyncio.TaskGroup) -> None:
        adjust(self, found, tasks)
        self._client.served = {own: replace(kind, has_status=own.has_status) for own, kind in self._client.served.items()}

    patch.setattr(Watching, "_adjust", granted)


@planted("objects of a kind that is missed are gone at once", breaks="over-commitment", is_rare=True)
def _missed_kinds_given_up(patch: pytest.MonkeyPatch) -> None:
    """The room of bind requests is given away while a server does not know their kind for a moment."""
    binds_blindly(patch)
    patch.setattr(watching, "MISSED_SECONDS", 0.0)
