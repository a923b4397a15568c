"""Families of changes that may start a gang, in the order in which they are shown: what its user can change comes first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from phalanx.whatif.families import bounds, more_nodes, node_offers, others, own_pods, own_size
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate


@dataclass(frozen=True, slots=True)
class Family:
    """Changes of one kind."""

    title: str
    candidates: Callable[[Question], Iterator[Candidate]]
    is_one_enough: bool = False
    """The first that starts the gang is the best of the family; the others are not tried."""
    is_chained: bool = False
    """Where one is not enough, two of the family are tried together, whatever else starts the gang: both bounds of a queue."""


FAMILIES: tuple[Family, ...] = (
    Family("more pods of the gang", own_size.more_pods),
    Family("scheduling gates", own_pods.gates),
    Family("another scheduler name", own_pods.scheduler_name),
    Family("a smaller minMember", own_size.smaller_minimum),
    Family("tolerations", own_pods.tolerations),
    Family("node selectors and affinity", own_pods.node_selectors),
    Family("rules about other pods", own_pods.rules_about_pods),
    Family("smaller requests", own_size.smaller_requests),
    Family("a wider topology", own_size.wider_topology, is_one_enough=True),
    Family("a smaller minResources", own_size.without_min_resources),
    Family("volume claims", own_pods.bound_claims),
    Family("a higher priority", own_size.higher_priority),
    Family("preemption", own_pods.preemption),
    Family("another queue", bounds.another_queue),
    Family("its queue", bounds.queue_state),
    Family("larger bounds of queues", bounds.larger_bounds, is_chained=True),
    Family("larger quotas of the namespace", bounds.larger_quotas),
    Family("gangs that end", others.gangs_that_end, is_one_enough=True),
    Family("reclaimable queues and preemptable gangs", others.victims_allowed),
    Family("disruption budgets", others.budgets),
    Family("nodes that are cordoned or not ready", more_nodes.closed_nodes),
    Family("taints and labels of nodes", more_nodes.marked_nodes),
    Family("resources that no node offers", node_offers.offered_devices),
    Family("more nodes", more_nodes.more_nodes, is_one_enough=True),
)
