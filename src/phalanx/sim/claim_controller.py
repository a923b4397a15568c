"""What Kubernetes' controller of claims does: pods that are gone or done are taken off claims, and devices with the last one."""

from phalanx.controllers.binder.claims import FINALIZER, claims_of
from phalanx.controllers.objects import inside, is_leaving, key_of, meta_of
from phalanx.model.kinds import POD, RESOURCE_CLAIM, Document
from phalanx.model.task_status import ENDED
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.store.memory import MemoryStore


class ClaimKeeping:
    """Follows pods that use claims, and claims that are to go."""

    def __init__(self, store: MemoryStore, time: VirtualTime) -> None:
        """Begin to listen."""
        self._store, self._time = store, time
        store.listen(self._hear)

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is RESOURCE_CLAIM and event.type != DELETED and is_leaving(event.object):
            self._later(event.object["metadata"]["namespace"], event.object["metadata"]["name"], "")
        elif event.kind is POD and (event.type == DELETED or inside(event.object, "status", "phase") in ENDED):
            key = key_of(event.object)
            for name in claims_of(event.object).values():
                self._later(key.namespace, name, str(meta_of(event.object).get("uid", "")))

    def _later(self, namespace: str, name: str, uid: str) -> None:
        self._time.after(0, Precedence.CONTROLLER, lambda: self._take_off(namespace, name, uid))

    def _take_off(self, namespace: str, name: str, uid: str) -> None:
        """Take a pod off a claim; what nobody uses any more gives its devices back, and may go."""
        claim = self._store.find(RESOURCE_CLAIM, namespace, name)
        if claim is None:
            return
        users = list(inside(claim, "status", "reservedFor") or ())
        left = [user for user in users if user.get("uid") != uid]
        if len(left) < len(users):
            status = {"reservedFor": left} if left else {"reservedFor": None, "allocation": None}
            self._store.patch(RESOURCE_CLAIM, namespace, name, {"status": status}, is_status=True)
        if not left:
            self._unprotect(claim)

    def _unprotect(self, claim: Document) -> None:
        meta = meta_of(claim)
        rest = [name for name in meta.get("finalizers") or () if name != FINALIZER]
        if len(rest) < len(meta.get("finalizers") or ()):
            self._store.patch(RESOURCE_CLAIM, meta["namespace"], meta["name"], {"metadata": {"finalizers": rest}})
