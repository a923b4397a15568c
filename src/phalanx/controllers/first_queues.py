"""Makes the queues `default` and `root`, which there must be wherever there are objects of Volcano's.

In Volcano the scheduler makes them, and its controllers wait for them: a Job in a queue that is not there gets no group. So this
goes on where Volcano's own controllers are kept.
"""

from collections.abc import Iterable

from phalanx.controllers.controller import NOTHING, Create, Key, Result, View
from phalanx.model.kinds import GROUP_BY_DIALECT, QUEUE, VOLCANO_JOB, Document, Kind
from phalanx.model.queue import ROOT

GROUP = GROUP_BY_DIALECT["volcano"]
DEFAULT = "default"
FIRST = (DEFAULT, ROOT)
SPEC = {"weight": 1, "reclaimable": True}


class FirstQueues:
    """Makes them with the first object of Volcano's, and again when they are gone."""

    name = "first-queues"
    watches = (QUEUE, GROUP, VOLCANO_JOB)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return those that are missing."""
        return [Key("", name) for name in FIRST if view.find(QUEUE, "", name) is None]

    def reconcile(self, view: View, key: Key) -> Result:
        """Make one, if anybody may need it."""
        if view.find(QUEUE, "", key.name) is not None or not any(view.within(kind) for kind in self.watches):
            return NOTHING
        return Result([Create({"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": key.name}, "spec": SPEC})])
