"""Watches who is bound: on which node every pod of a namespace was seen, and how often it became scheduled.

It listens in a thread from the first pod on, so that nothing that happens in between is missed.
"""

import http.client
import threading
from collections.abc import Callable
from typing import Any, Self

from tests.support.store_contract import Api

WATCH_SECONDS = 60
LAST_POD = "end-of-watch"


class BindAudit:
    """Use it in ``with``, before the first pod is made."""

    def __init__(self, api: Api, *, at: int = 0, then: Callable[[], None] = lambda: None) -> None:
        """Watch a namespace; do something at once when so many pods have a node."""
        self._api, self._at, self._then = api, at, then
        self.nodes: dict[str, list[str]] = {}
        """The nodes of each pod that has any, by uid."""
        self.scheduled: dict[str, list[str]] = {}
        """When each pod was scheduled, by uid."""
        self.names: dict[str, str] = {}
        self._is_over, self._thread = threading.Event(), threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """End; a last pod lets the watch see that."""
        self._is_over.set()
        self._api.pod(LAST_POD)
        self._thread.join(WATCH_SECONDS)

    def _watch(self) -> None:
        while not self._is_over.is_set():
            try:
                for event in self._api.watch("pods", seconds=WATCH_SECONDS):
                    if self._is_over.is_set():
                        return
                    self._note(event["object"])
            except (OSError, http.client.HTTPException):
                self._is_over.wait(0.2)

    def _note(self, pod: dict[str, Any]) -> None:
        uid, node = pod["metadata"].get("uid", ""), pod.get("spec", {}).get("nodeName")
        if node is None:
            return
        self.names[uid] = pod["metadata"]["name"]
        _add(self.nodes.setdefault(uid, []), node)
        for condition in pod.get("status", {}).get("conditions", ()):
            if (condition["type"], condition["status"]) == ("PodScheduled", "True"):
                _add(self.scheduled.setdefault(uid, []), condition["lastTransitionTime"])
        if len(self.nodes) == self._at:
            self._at = 0
            self._then()

    @property
    def bound_twice(self) -> list[str]:
        """The pods whose node changed, or that were scheduled more than once."""
        uids = {uid for seen in (self.nodes, self.scheduled) for uid, found in seen.items() if len(found) > 1}
        return sorted(self.names[uid] for uid in uids)


def _add(found: list[str], item: str) -> None:
    if item not in found:
        found.append(item)
