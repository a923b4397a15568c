"""Ends pods that were told to go, as a kubelet does: a moment later, and never another pod of the same name.

kwok would delete by name alone, and again after a failure: pods of a StatefulSet that had just been made anew went with the old
ones, for minutes. So its stage for that is taken out, and everything else is left to it.
"""

import asyncio
import threading
from pathlib import Path
from random import Random
from typing import Any, Self

import aiohttp
import yaml

from tests.support.http_api import PATIENCE_SECONDS, Connection

LONGEST_GRACE = 1.5
"""Within so many seconds a pod ends that was told to."""
DONE = (200, 202, 404, 409)
"""It is gone, or there is another one of its name."""
STAGE = "pod-delete"


def without_deletion(stages: Path) -> None:
    """Let kwok delete no pods any more."""
    kept = [item for item in yaml.safe_load_all(stages.read_text()) if item and item["metadata"]["name"] != STAGE]
    stages.write_text(yaml.safe_dump_all(kept))


class Kubelet:
    """Use it in ``with``; `notice` may be called from any thread."""

    def __init__(self, connection: Connection, chance: Random) -> None:
        """Delete through a connection."""
        self._connection, self._chance = connection, chance
        self._loop, self._is_over, self._ending = asyncio.new_event_loop(), asyncio.Event(), dict[str, asyncio.Task[None]]()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()), daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        """End."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def notice(self, type_: str, pod: dict[str, Any]) -> None:
        """End a pod, if it is to go."""
        meta = pod["metadata"]
        if type_ != "DELETED" and meta.get("deletionTimestamp") and pod["spec"].get("nodeName"):
            self._loop.call_soon_threadsafe(self._begin, meta["uid"], f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")

    def _begin(self, uid: str, path: str) -> None:
        if uid not in self._ending:
            self._ending[uid] = self._loop.create_task(self._end(uid, path))

    async def _run(self) -> None:
        async with aiohttp.ClientSession(self._connection.server, headers=dict(self._connection.headers)) as self._session:
            await self._is_over.wait()
            for task in self._ending.values():
                task.cancel()
            await asyncio.gather(*self._ending.values(), return_exceptions=True)

    async def _end(self, uid: str, path: str) -> None:
        await asyncio.sleep(self._chance.uniform(0.1, LONGEST_GRACE))
        while not await self._delete(uid, path):
            await asyncio.sleep(0.5)
        del self._ending[uid]

    async def _delete(self, uid: str, path: str) -> bool:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        try:
            async with self._session.delete(path, json=body, ssl=self._connection.tls or True) as answer:
                return answer.status in DONE
        except aiohttp.ClientError:
            return False
