"""The kubelets of all nodes: pods that were bound start after a while, pods that are leaving are gone after a while."""

from collections.abc import Callable
from random import Random

from phalanx.errors import Missing
from phalanx.model.kinds import POD, Document
from phalanx.model.moment import moment_text
from phalanx.model.task_status import ENDED
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.settings import Settings
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.store.memory import MemoryStore


class Kubelets:
    """Follows the pods of a store."""

    def __init__(self, store: MemoryStore, time: VirtualTime, settings: Settings, chance: Random) -> None:
        """Begin to listen."""
        self._store, self._time, self._settings, self._chance = store, time, settings, chance
        self._known: dict[str, str] = {}
        self.dead: set[str] = set()
        """Nodes that do nothing any more."""
        self.lost: list[Callable[[Document], None]] = []
        """Told of pods that were bound to such a node."""
        store.listen(self._hear)

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is not POD:
            return
        pod, uid = event.object, event.object["metadata"]["uid"]
        state = "gone" if event.type == DELETED else _state(pod)
        if self._known.get(uid) == state:
            return
        self._known[uid] = state
        if state == "gone":
            del self._known[uid]
        elif state == "bound":
            self._time.after(self._starting_time(), Precedence.KUBELET, lambda: self._start(pod))
        elif state == "leaving" and pod["metadata"].get("deletionGracePeriodSeconds") != 0:
            self._time.after(self._stopping_time(pod), Precedence.KUBELET, lambda: self._stop(pod))

    def _starting_time(self) -> float:
        delays = self._settings.delays
        return delays.pull.draw(self._chance) + delays.start.draw(self._chance)

    def _stopping_time(self, pod: Document) -> float:
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds", 0))
        return min(self._settings.delays.stop.draw(self._chance), grace)

    def _start(self, pod: Document) -> None:
        if self._known.get(pod["metadata"]["uid"]) != "bound":
            return
        if pod["spec"]["nodeName"] in self.dead:
            for listener in self.lost:
                listener(pod)
            return
        moment = moment_text(int(self._time.now))
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
        found = self._store.find(POD, pod["metadata"]["namespace"], pod["metadata"]["name"]) or pod
        conditions = [*found["status"].get("conditions", ()), ready]
        running = _containers(pod, {"running": {"startedAt": moment}}, is_ready=True)
        self.write(pod, {"phase": "Running", "startTime": moment, "conditions": conditions, "containerStatuses": running})

    def _stop(self, pod: Document) -> None:
        meta = pod["metadata"]
        if self._known.get(meta["uid"]) == "leaving":
            self._store.delete(POD, meta["namespace"], meta["name"], grace=0, uid=meta["uid"])

    def succeed(self, pod: Document) -> None:
        """Let all containers of a pod end well."""
        end = {"exitCode": 0, "reason": "Completed", "finishedAt": moment_text(int(self._time.now))}
        self.write(pod, {"phase": "Succeeded", "containerStatuses": _containers(pod, {"terminated": end}, is_ready=False)})

    def write(self, pod: Document, status: Document) -> None:
        """Write parts of a pod's status, if the pod is still there."""
        meta = pod["metadata"]
        try:
            self._store.patch(POD, meta["namespace"], meta["name"], {"status": status}, is_status=True)
        except Missing:
            self._known.pop(meta["uid"], None)


def _containers(pod: Document, state: Document, *, is_ready: bool) -> list[Document]:
    """Return all containers of a pod in the same state, as a kubelet reports them."""
    return [
        {"name": item["name"], "image": item.get("image", ""), "restartCount": 0, "ready": is_ready, "state": state}
        for item in pod["spec"].get("containers") or ()
    ]


def _state(pod: Document) -> str:
    phase = pod.get("status", {}).get("phase", "Pending")
    if phase in ENDED:
        return "ended"
    if "deletionTimestamp" in pod["metadata"]:
        return "leaving"
    if phase == "Running":
        return "running"
    return "bound" if pod["spec"].get("nodeName") else "waiting"
