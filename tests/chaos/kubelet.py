"""Plays the kubelets of all nodes: pods run a moment after they are bound, succeed after their time, and end when told to.

Every write names the uid of its pod, as those of a real kubelet do. kwok writes by name alone, and again after a failure: pods of a
StatefulSet that had just been made anew were deleted with the old ones or ran without a node. So here it keeps the nodes ready, and
its stages for pods are taken out.
"""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Self

import aiohttp
import yaml

from tests.chaos.gangs import DURATION
from tests.support.http_api import PATIENCE_SECONDS, Connection

LONGEST_START, LONGEST_END = 0.5, 1.5
"""Within so many seconds a pod starts that was bound, and ends that was told to."""
DONE = (200, 202, 404, 409, 422)
"""Also: it is gone, there is another one of its name, or it has ended."""
MERGE = "application/merge-patch+json"


def without_pods(stages: Path) -> None:
    """Let kwok leave pods alone."""
    kept = [item for item in yaml.safe_load_all(stages.read_text()) if item and item["spec"]["resourceRef"]["kind"] != "Pod"]
    stages.write_text(yaml.safe_dump_all(kept))


class Kubelet:
    """Use it in ``with``; `notice` may be called from any thread."""

    def __init__(self, connection: Connection, chance: Random) -> None:
        """Write through a connection."""
        self._connection, self._chance = connection, chance
        self._loop, self._is_over = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()), daemon=True)
        self._works: dict[tuple[str, str], asyncio.Task[None]] = {}
        """What is under way, by the uid of a pod and what it is."""

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
        """Do what a pod needs next, if it has a node."""
        phase = pod["status"].get("phase", "Pending")
        if not pod["spec"].get("nodeName") or type_ == "DELETED":
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._later("end", pod, self._chance.uniform(0.1, LONGEST_END))
        elif phase == "Pending":
            self._later("start", pod, self._chance.uniform(0.05, LONGEST_START))
        elif phase == "Running" and (seconds := pod["metadata"].get("annotations", {}).get(DURATION)):
            self._later("succeed", pod, float(seconds.removesuffix("s")))

    # --- inside, on the loop ------------------------------------------------------------------------------------------

    def _later(self, what: str, pod: dict[str, Any], seconds: float) -> None:
        self._loop.call_soon_threadsafe(self._begin, what, pod["metadata"], seconds)

    def _begin(self, what: str, meta: dict[str, Any], seconds: float) -> None:
        if (key := (meta["uid"], what)) not in self._works:
            self._works[key] = self._loop.create_task(self._work(what, meta, seconds))

    async def _run(self) -> None:
        async with aiohttp.ClientSession(self._connection.server, headers=dict(self._connection.headers)) as self._session:
            await self._is_over.wait()
            for task in self._works.values():
                task.cancel()
            await asyncio.gather(*self._works.values(), return_exceptions=True)

    async def _work(self, what: str, meta: dict[str, Any], seconds: float) -> None:
        await asyncio.sleep(seconds)
        while not await self._write(what, meta):
            await asyncio.sleep(0.5)
        del self._works[meta["uid"], what]

    async def _write(self, what: str, meta: dict[str, Any]) -> bool:
        path, uid, tls = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", meta["uid"], self._connection.tls or True
        try:
            if what == "end":
                body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
                async with self._session.delete(path, json=body, ssl=tls) as answer:
                    return answer.status in DONE
            status, headers = {"metadata": {"uid": uid}, "status": _status(what)}, {"Content-Type": MERGE}
            async with self._session.patch(f"{path}/status", json=status, headers=headers, ssl=tls) as answer:
                return answer.status in DONE
        except aiohttp.ClientError:
            return False


def _status(what: str) -> dict[str, Any]:
    now, is_start = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), what == "start"
    ready = {"type": "Ready", "status": "True" if is_start else "False", "lastTransitionTime": now}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    state = {"running": {"startedAt": now}} if is_start else {"terminated": {"exitCode": 0, "finishedAt": now}}
    container = {"name": "main", "image": "train:1", "imageID": "", "ready": is_start, "restartCount": 0, "state": state}
    found = {"phase": "Running" if is_start else "Succeeded", "conditions": [scheduled, ready], "containerStatuses": [container]}
    return found | ({"startTime": now} if is_start else {})
