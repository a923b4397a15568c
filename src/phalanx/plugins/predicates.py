"""Kubernetes' filters: which nodes a task may go to at all. Loading this plugin also makes placements of the session visible to
Kubernetes' filters and scores.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from phalanx.kubernetes.claims import ClaimBook
from phalanx.kubernetes.nodeselection import allowed_nodes
from phalanx.kubernetes.once_pod_claims import OncePodClaims
from phalanx.kubernetes.podaffinity import AffinityBook
from phalanx.kubernetes.ports import TAKEN, PortBook
from phalanx.kubernetes.spread import SpreadBook
from phalanx.kubernetes.taints import closed_by_cordon, closed_by_taint
from phalanx.kubernetes.volumes import VolumeBook
from phalanx.model.shape import Shape
from phalanx.placement import Counts, Index, Mask
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import CoupledFilter, Layer
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from phalanx.state.label_domains import closed_by_label
from phalanx.state.verdict import YES, Verdict

TOO_MANY_PODS = "node(s) pod number exceeded"
CORDONED = "node(s) were unschedulable"
WRONG_NODE = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"

SWITCHES = ("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "NodeVolumeLimits", "VolumeZone", "PodTopologySpread",
            "VolumeBinding", "DynamicResourceAllocation")  # fmt: skip


class PredicatesPlugin:
    """Asks the filters in kube-scheduler's order."""

    name = "predicates"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read which filters are on."""
        settings = Arguments(self.name, policy.arguments)
        self._on = {name for name in SWITCHES if settings.switch(f"predicate.{name}Enable", True)}
        self._evictions_free_devices = settings.switch("predicate.EvictionsFreeDevices", False)
        # Volcano has no such filter, and its configurations do not ask for it.
        self._restricts_volumes = settings.switch("predicate.VolumeRestrictionsEnable", False)
        settings.switch("predicate.CacheEnable", False)
        settings.done()
        self._static: dict[Shape, list[Layer]] = {}

    def open(self, session: Session) -> None:
        """Let the session's placements count in the book of Kubernetes' filters."""
        session.books_are_live = True
        frees = self._evictions_free_devices or session.policy.evictions_free_devices
        self._claims = partial(ClaimBook, evictions_free=frees)
        self._affinity = AffinityBook(session)
        self._spread = SpreadBook(session)

    def close(self, session: Session) -> None:
        """Say which claims pods get or leave."""
        if session.snapshot.surroundings.resource_claims and "DynamicResourceAllocation" in self._on:
            session.decisions.claims.update(session.book(self._claims).outcomes(session.decisions))

    def couples_nodes(self, session: Session, shape: Shape) -> bool:
        """Tell whether a placement elsewhere can change what the filters say about a node."""
        affinity = "PodAffinity" in self._on and self._affinity.concerns(shape)
        return affinity or ("PodTopologySpread" in self._on and bool(shape.spread))

    def prefilter(self, session: Session, task: TaskState) -> Verdict:
        """Refuse what no node can take, in the words users know."""
        for name, verdict in self._prefilters(session, task.task.shape):
            if not verdict.ok:
                message = f"plugin {name} pre-predicates failed {verdict.message}"
                return Verdict.refuse(self.name, verdict.reason, message, **verdict.numbers, cause=verdict.message)
        return YES

    def _prefilters(self, session: Session, shape: Shape) -> Iterator[tuple[str, Verdict]]:
        if "NodeAffinity" in self._on and shape.node_terms:
            yield "NodeAffinity", _node_names(shape)
        if shape.volume_claims and "VolumeZone" in self._on:
            yield "VolumeZone", session.book(VolumeBook).zone_prefilter(shape)
        if shape.volume_claims and "VolumeBinding" in self._on:
            yield "VolumeBinding", session.book(VolumeBook).binding_prefilter(shape)
        if shape.resource_claims and "DynamicResourceAllocation" in self._on:
            yield "DynamicResources", session.book(self._claims).prefilter(shape)

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Return the filters' answers in order."""
        full = session.ledger.pods[nodes] >= session.snapshot.nodes.max_pods[nodes]
        layers = [Layer(full, TOO_MANY_PODS), *_at(self._stable(session, shape), nodes)]
        if shape.host_ports and "NodePorts" in self._on:
            layers.append(Layer(session.book(PortBook).taken(shape)[nodes], TAKEN))
        if "PodAffinity" in self._on and self._affinity.concerns(shape):
            layers += _at(self._affinity.layers(shape), nodes)
        if shape.volume_claims:
            layers += self._volume_layers(session, shape, nodes)
        if shape.spread and "PodTopologySpread" in self._on:
            layers += _at(self._spread.layers(shape), nodes)
        if shape.volume_claims and "VolumeBinding" in self._on:
            layers += session.book(VolumeBook).binding_layers(shape, nodes)
        if shape.resource_claims and "DynamicResourceAllocation" in self._on:
            layers += session.book(self._claims).layers(shape, nodes)
        return layers

    def coupled_filters(self, session: Session, shape: Shape) -> list[CoupledFilter]:
        """Return the filters that look at other pods."""
        found: list[CoupledFilter] = []
        if "PodAffinity" in self._on and self._affinity.concerns(shape):
            found.append(self._affinity.coupled_filter(shape))
        if any(constraint.hard for constraint in shape.spread) and "PodTopologySpread" in self._on:
            found.append(self._spread.coupled_filter(shape))
        return found

    def task_screen(self, session: Session, task: TaskState, nodes: Index | slice) -> Sequence[Layer] | None:
        """Keep the members of a gang on nodes that share a value of a label, if it asks for that."""
        label = task.gang.gang.label
        if not label:
            return None
        closed = closed_by_label(task.gang, session.snapshot.nodes)
        return [Layer(closed[nodes], f"node(s) don't share the group's value of {label}")]

    def _volume_layers(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        book, layers = session.book(VolumeBook), list[Layer]()
        if self._restricts_volumes:
            layers += session.book(OncePodClaims).layers(shape, nodes)
        if "NodeVolumeLimits" in self._on:
            layers += book.limit_layers(shape, nodes)
        if "VolumeZone" in self._on:
            layers += book.zone_layers(shape, nodes)
        return layers

    def node_room(self, session: Session, shape: Shape, nodes: Index | slice) -> Counts:
        """Return how many more pods each node may run."""
        return np.asarray(session.snapshot.nodes.max_pods[nodes] - session.ledger.pods[nodes], dtype=np.int64)

    def node_waits(self, session: Session, shape: Shape) -> Mask | None:
        """Return the nodes whose devices evicted pods still use."""
        if not shape.resource_claims or "DynamicResourceAllocation" not in self._on:
            return None
        return session.book(self._claims).waits_on(shape)

    def _stable(self, session: Session, shape: Shape) -> list[Layer]:
        """Return the filters whose answers do not change during the session."""
        if shape not in self._static:
            table = session.snapshot.nodes
            layers = [Layer(closed_by_cordon(shape, table), CORDONED, is_final=True)]
            if "NodeAffinity" in self._on:
                layers.append(Layer(~allowed_nodes(shape, table), WRONG_NODE, is_final=True))
            if "TaintToleration" in self._on:
                layers.append(Layer(closed_by_taint(shape, table), TAINTED, is_final=True))
            self._static[shape] = [layer for layer in layers if layer.refused.any()]
        return self._static[shape]


def _node_names(shape: Shape) -> Verdict:
    names = [term.names() for term in shape.node_terms or ()]
    if all(found is not None for found in names) and not frozenset().union(*(found or () for found in names)):
        return Verdict.refuse("predicates", "NodeAffinityConflict", "pod affinity terms conflict")
    return YES


def _at(layers: list[Layer], nodes: Index | slice) -> list[Layer]:
    return [Layer(layer.refused[nodes], layer.reason, layer.is_final, layer.is_prepared, layer.is_recounted) for layer in layers]
