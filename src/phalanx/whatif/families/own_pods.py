"""What the user of a gang can change about its pods: what they tolerate, which nodes they ask for, what holds them back."""

from collections import Counter
from collections.abc import Iterator

from phalanx.explain.parts_of_labels import taint_text
from phalanx.model.shape import Shape
from phalanx.model.storage import VolumeClaim
from phalanx.state.snapshot import Surroundings
from phalanx.whatif.changes.claims import ClaimChange
from phalanx.whatif.changes.gangs import GangChange
from phalanx.whatif.changes.object_change import NONE
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate

MOST_TAINTS = MOST_VALUES = 3
OF_NODE_STATE = "node.kubernetes.io/"
"""Taints of nodes that are cordoned, not ready or short of something: nobody should tolerate them for a job."""
OUR_SCHEDULER = "phalanx"


def own(question: Question, field: str, value: str, key: str = "") -> GangChange:
    """Return a change of the gang itself."""
    return GangChange(question.key, field, key, value)


def gates(question: Question) -> Iterator[Candidate]:
    """Scheduling gates removed."""
    names = sorted({name for task in question.waiting for name in task.task.gates})
    if names:
        yield Candidate.fixed(f"without the scheduling gates {', '.join(names)}", own(question, "gates", "none"))


def scheduler_name(question: Question) -> Iterator[Candidate]:
    """Pods that wait for another scheduler, or for several."""
    ours = question.snapshot.surroundings.schedulers
    if ours and (any(task.task.is_foreign for task in question.waiting) or any(question.refused("SeveralSchedulers"))):
        name = OUR_SCHEDULER if OUR_SCHEDULER in ours else min(ours)
        yield Candidate.fixed(f"with schedulerName {name}", own(question, "schedulerName", name))


def tolerations(question: Question) -> Iterator[Candidate]:
    """Taints tolerated that keep pods away."""
    found = [taint for taint in question.repelling() if not taint.key.startswith(OF_NODE_STATE)]
    for taint in found[:MOST_TAINTS]:
        text = taint_text(taint)
        yield Candidate.fixed(f"with a toleration of {text}", own(question, "tolerations", text))


def node_selectors(question: Question) -> Iterator[Candidate]:
    """Another value of a label that is asked for, or none; node affinity dropped."""
    values: dict[str, set[str]] = {}
    for shape in question.shapes:
        for key, value in shape.node_selector.items():
            values.setdefault(key, set()).add(value)
    for key, asked in values.items():
        value = min(asked)
        for other in _values(question, key, value):
            yield Candidate.fixed(f"with the node selector {key}={other}", own(question, "nodeSelector", other, key))
        dropped = f"{key}={value}" if len(asked) == 1 else key
        yield Candidate.fixed(f"without the node selector {dropped}", own(question, "nodeSelector", "none", key))
    if any(shape.node_terms is not None for shape in question.shapes):
        yield Candidate.fixed("without its node affinity", own(question, "affinity", "none", "nodeAffinity"))


def _values(question: Question, key: str, asked: str) -> list[str]:
    counts = Counter(node.labels[key] for node in question.snapshot.nodes.nodes if key in node.labels)
    return [value for value, _ in counts.most_common() if value not in (asked, NONE)][:MOST_VALUES]


def rules_about_pods(question: Question) -> Iterator[Candidate]:
    """Affinity to other pods, spreading and host ports dropped."""
    shapes = question.shapes
    if any(shape.anti_affinity.required for shape in shapes):
        yield Candidate.fixed("without its pod anti-affinity", own(question, "affinity", "none", "podAntiAffinity"))
    if any(shape.affinity.required for shape in shapes):
        yield Candidate.fixed("without its pod affinity", own(question, "affinity", "none", "podAffinity"))
    if any(rule.hard for shape in shapes for rule in shape.spread):
        yield Candidate.fixed("without its topology spread constraints", own(question, "topologySpreadConstraints", "none"))
    ports = sorted({port.port for shape in shapes for port in shape.host_ports})
    if ports:
        yield Candidate.fixed(f"without host port {', '.join(map(str, ports))}", own(question, "hostPort", "none"))


def bound_claims(question: Question) -> Iterator[Candidate]:
    """Volume claims that are missing or not bound."""
    if not any(shape.volume_claims for shape in question.shapes):
        return
    names = _claims(question.shapes, question)
    if names:
        changes = [ClaimChange(name, value="bound") for name in names]
        yield Candidate.fixed(f"with the volume claim{'s' if len(names) > 1 else ''} {', '.join(names)} bound", *changes)


def _claims(shapes: list[Shape], question: Question) -> list[str]:
    """Return the claims without a volume, or with one that is gone."""
    world = question.snapshot.surroundings
    keys = dict.fromkeys(f"{shape.namespace}/{claim}" for shape in shapes for claim in shape.volume_claims)
    claims = {key: world.volume_claims.get(key) for key in keys}
    return [key for key, claim in claims.items() if claim is None or not _has_volume(claim, world)]


def _has_volume(claim: VolumeClaim, world: Surroundings) -> bool:
    return claim.is_bound and claim.volume in world.volumes and not claim.is_lost and not claim.is_deleting


def preemption(question: Question) -> Iterator[Candidate]:
    """Pods that may not preempt others; a gang that has to stay within its quota because nobody may preempt it."""
    if any(question.refused("NonPreemptibleOverQuota")):
        yield Candidate.fixed("if others could preempt it", own(question, "preemptable", "true"))
    if any(not task.task.may_preempt for task in question.waiting):
        yield Candidate.fixed(
            "with preemptionPolicy PreemptLowerPriority", own(question, "preemptionPolicy", "PreemptLowerPriority")
        )
