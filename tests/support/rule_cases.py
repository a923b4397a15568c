"""Objects that keep and break every rule of our kinds, for tests of whoever keeps objects: the embedded cluster, or a real one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phalanx.dialects.pods import GPU_CONTAINER
from phalanx.manifests.admission_policies import HIERARCHY, HIERARCHY_WEIGHTS, MAX_UNAVAILABLE, MIN_AVAILABLE, VALIDATING
from phalanx.manifests.definitions import DEFINITIONS
from phalanx.manifests.openapi import rules_of
from phalanx.model.kinds import POD, Document, Kind, kind_at

Spec = Mapping[str, Any]

GROUP, QUEUE = kind_at("scheduling.volcano.sh", "podgroups"), kind_at("scheduling.volcano.sh", "queues")
JOB, CRON_JOB = kind_at("batch.volcano.sh", "jobs"), kind_at("batch.volcano.sh", "cronjobs")
JOB_FLOW, HYPERNODE = kind_at("flow.volcano.sh", "jobflows"), kind_at("topology.volcano.sh", "hypernodes")
KAI_GROUP, KAI_QUEUE = kind_at("scheduling.run.ai", "podgroups"), kind_at("scheduling.run.ai", "queues")
TOPOLOGY = kind_at("kai.scheduler", "topologies")
CONTAINERS = [{"name": "main", "image": "train:1"}]
POD_SPEC = {"containers": CONTAINERS}
OUR_POD_SPEC = {**POD_SPEC, "schedulerName": "phalanx"}


@dataclass(frozen=True)
class RuleCase:
    """A rule with the specs of an object that keeps it, and of one that breaks it; `before` is what it was changed from."""

    kind: Kind
    rule: str
    kept: Spec
    broken: Spec
    before: Spec | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    broken_meta: Mapping[str, Any] | None = None

    @property
    def steps(self) -> tuple[list[Document], list[Document]]:
        """What is written one after the other: all of it is accepted, or the last of it refused."""
        first = [] if self.before is None else [self._document(self.before, self.meta)]
        kept, broken = self._document(self.kept, self.meta), self._document(self.broken, self.broken_meta or self.meta)
        return [*first, kept], [*first, broken]

    def _document(self, spec: Spec, meta: Mapping[str, Any]) -> Document:
        written = {**(self.before or {}), **spec}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": {"name": "it", **meta}, "spec": written}

    @property
    def message(self) -> str:
        """What the rule says."""
        structs = [definition.struct for definition in DEFINITIONS if definition.kind is self.kind]
        found = [rule for struct in structs for _, rule in rules_of(struct)]
        found += [rule for policy in VALIDATING if policy.kind is self.kind for rule in policy.rules]
        return next(rule.message for rule in found if rule.name == self.rule)


def _job(*tasks: Spec, **spec: Any) -> Spec:
    return {"tasks": [{"name": f"t{place}", **task} for place, task in enumerate(tasks or ({"replicas": 2},))], **spec}


def _reacting(*policies: Spec) -> Spec:
    return _job(policies=[{"action": "RestartJob", **policy} for policy in policies])


def _cron(**spec: Any) -> Spec:
    return {"schedule": "30 2 * * 1-5", "jobTemplate": {"spec": _job()}, **spec}


def _flow(**targets: list[str]) -> Spec:
    return {"flows": [{"name": name, **({"dependsOn": {"targets": names}} if names else {})} for name, names in targets.items()]}


def _member(selector: Spec, kind: str = "Node") -> Spec:
    return {"tier": 1, "members": [{"type": kind, "selector": selector}]}


def _bounded(**spec: Any) -> Spec:
    return {"guarantee": {"resource": {"cpu": 2}}, "deserved": {"cpu": "4"}, "capability": {"cpu": "8000m"}, **spec}


def _levels(*labels: str) -> Spec:
    return {"levels": [{"nodeLabel": label} for label in labels]}


def _parts(**parents: str) -> Spec:
    named = [{"name": name, "minMember": 1, **({"parent": parent} if parent else {})} for name, parent in parents.items()]
    return {"minMember": 1, "subGroups": named}


def _marks(**annotations: str) -> dict[str, Any]:
    return {"annotations": annotations}


TIER, TIER_NAME = {"highestTierAllowed": 1}, {"highestTierName": "rack"}
TWO_PARTS = {"totalPartitions": 2, "partitionSize": 2}
EXACT, PATTERN = {"exactMatch": {"name": "n1"}}, {"regexMatch": {"pattern": "^n[0-9]+$"}}
LABELS = {"labelMatch": {"matchLabels": {"rack": "1"}}}
CLAIM = {"volumeClaimName": "data"}
HOST = "kubernetes.io/hostname"

RULE_CASES = [
    RuleCase(GROUP, "one-tier", {"networkTopology": TIER}, {"networkTopology": TIER | TIER_NAME}),
    RuleCase(QUEUE, "no-own-parent", {"parent": "root"}, {"parent": "it"}),
    RuleCase(QUEUE, "root-stays", {"weight": 2}, {"weight": 3}, before={"weight": 2}, meta={"name": "root"}),
    RuleCase(QUEUE, "deserved-covers-guarantee", _bounded(), _bounded(guarantee={"resource": {"cpu": "4001m"}})),
    RuleCase(QUEUE, "capability-covers-deserved", _bounded(), _bounded(deserved={"cpu": 9})),
    RuleCase(QUEUE, "capability-covers-guarantee", _bounded(), _bounded(guarantee={"resource": {"cpu": 9}})),
    RuleCase(JOB, "pod-names-fit", _job({"replicas": 10}), _job({"name": "t" * 58, "replicas": 10})),
    RuleCase(JOB, "minimum-within-job", _job(minAvailable=2), _job(minAvailable=3)),
    RuleCase(JOB, "known-plugins", _job(plugins={"svc": []}), _job(plugins={"pytroch": []})),
    RuleCase(JOB, "task-names-once", _job({"name": "a"}, {"name": "b"}), _job({"name": "a"}, {"name": "a"})),
    RuleCase(JOB, "dependencies-exist", _job({}, {"dependsOn": {"name": ["t0"]}}), _job({}, {"dependsOn": {"name": ["t2"]}})),
    RuleCase(JOB, "minimum-within-replicas", _job({"replicas": 2, "minAvailable": 2}), _job({"replicas": 2, "minAvailable": 3})),
    RuleCase(JOB, "partitions-make-replicas", _job({"replicas": 4, "partitionPolicy": TWO_PARTS}),
             _job({"replicas": 5, "partitionPolicy": TWO_PARTS})),
    RuleCase(JOB, "no-own-dependency", _job({}, {"dependsOn": {"name": ["t0"]}}), _job({}, {"dependsOn": {"name": ["t1"]}})),
    RuleCase(JOB, "events-once", _reacting({"event": "PodFailed"}, {"events": ["PodEvicted", "Unknown"]}),
             _reacting({"event": "PodFailed"}, {"events": ["PodEvicted", "PodFailed"]})),
    RuleCase(JOB, "events-once", _reacting({"event": "PodFailed"}), _reacting({"events": ["PodFailed", "PodFailed"]})),
    RuleCase(JOB, "any-event-alone", _reacting({"event": "*"}, {"exitCode": 3}), _reacting({"event": "*"}, {"event": "PodFailed"})),
    RuleCase(JOB, "exit-codes-once", _reacting({"exitCode": 3}, {"exitCode": 4}), _reacting({"exitCode": 3}, {"exitCode": 3})),
    RuleCase(JOB, "event-or-exit-code", _reacting({"exitCode": 3}), _reacting({})),
    RuleCase(JOB, "not-event-and-exit-code", _reacting({"exitCode": 3}), _reacting({"exitCode": 3, "event": "PodFailed"})),
    RuleCase(JOB, "exit-code-of-failure", _reacting({"exitCode": 1}), _reacting({"exitCode": 0})),
    RuleCase(JOB, "pending-needs-timeout", _reacting({"event": "PodPending", "timeout": "10m"}),
             _reacting({"event": "PodPending"})),
    RuleCase(JOB, "minimum-within-partitions", _job({"replicas": 4, "partitionPolicy": TWO_PARTS | {"minPartitions": 2}}),
             _job({"replicas": 4, "minAvailable": 4, "partitionPolicy": TWO_PARTS | {"minPartitions": 3}})),
    RuleCase(JOB, "one-tier", _job(networkTopology=TIER_NAME), _job(networkTopology=TIER | TIER_NAME)),
    RuleCase(JOB, "paths-once", _job(volumes=[{"mountPath": "/a", **CLAIM}, {"mountPath": "/b", **CLAIM}]),
             _job(volumes=[{"mountPath": "/a", **CLAIM}, {"mountPath": "/a", **CLAIM}])),
    RuleCase(JOB, "one-claim", _job(volumes=[{"mountPath": "/a", "volumeClaim": {}}]), _job(volumes=[{"mountPath": "/a"}])),
    RuleCase(JOB, "one-claim", _job(volumes=[{"mountPath": "/a", **CLAIM}]),
             _job(volumes=[{"mountPath": "/a", "volumeClaim": {}, **CLAIM}])),
    RuleCase(JOB, "job-stays", _job(minAvailable=1, priorityClassName="high"), _job(queue="other"), before=_job()),
    RuleCase(JOB, "tasks-stay", _job({"replicas": 5, "minAvailable": 1}),
             _job({"replicas": 2, "template": {"spec": {"containers": CONTAINERS}}}), before=_job()),
    RuleCase(CRON_JOB, "room-for-job-names", _cron(), _cron(), meta={"name": "c" * 52}, broken_meta={"name": "c" * 53}),
    RuleCase(CRON_JOB, "schedule-reads", _cron(schedule="@daily"), _cron(schedule="daily")),
    RuleCase(CRON_JOB, "schedule-reads", _cron(schedule="*/5 * * * *"), _cron(schedule="TZ=UTC 30 2 * * *")),
    RuleCase(CRON_JOB, "zone-by-name", _cron(timeZone="Europe/Berlin"), _cron(timeZone="Local")),
    RuleCase(JOB_FLOW, "flow-names-once", _flow(a=[], b=[]), {"flows": [{"name": "a"}, {"name": "a"}]}),
    RuleCase(JOB_FLOW, "targets-exist", _flow(a=[], b=["a"]), _flow(a=[], b=["c"])),
    RuleCase(JOB_FLOW, "no-own-target", _flow(a=[], b=["a"]), _flow(a=[], b=["b"])),
    RuleCase(HYPERNODE, "labels-mean-nodes", _member(LABELS), _member(LABELS, "HyperNode")),
    RuleCase(HYPERNODE, "one-selector", _member(EXACT), _member({})),
    RuleCase(HYPERNODE, "one-selector", _member(PATTERN), _member(EXACT | PATTERN)),
    RuleCase(HYPERNODE, "pattern-compiles", _member(PATTERN), _member({"regexMatch": {"pattern": "(n"}})),
    RuleCase(KAI_GROUP, "sub-group-names-once", _parts(a="", b="a"), {"subGroups": [{"name": "a"}, {"name": "a"}]}),
    RuleCase(KAI_GROUP, "parents-exist", _parts(a="", b="a"), _parts(a="", b="c")),
    RuleCase(KAI_GROUP, "no-own-parent", _parts(a="", b="a"), _parts(a="", b="b")),
    RuleCase(KAI_GROUP, "members-or-sub-groups", {"minMember": 0, "minSubGroup": 1}, {"minMember": 2, "minSubGroup": 1}),
    RuleCase(KAI_GROUP, "pods-or-sub-groups", {"subGroups": [{"name": "a", "minSubGroup": 0}]},
             {"subGroups": [{"name": "a", "minSubGroup": 1, "minMember": 1}]}),
    RuleCase(KAI_QUEUE, "no-own-parent", {"resources": {}, "parentQueue": "root"}, {"resources": {}, "parentQueue": "it"}),
    RuleCase(KAI_QUEUE, "amount-or-unlimited", {"resources": {"gpu": {"quota": -1, "limit": 0.5}}},
             {"resources": {"gpu": {"quota": -2}}}),
    RuleCase(TOPOLOGY, "levels-stay", _levels("zone", "rack"), _levels("zone"), before=_levels("zone", "rack")),
    RuleCase(TOPOLOGY, "levels-once", _levels("zone", "rack"), _levels("zone", "zone")),
    RuleCase(TOPOLOGY, "hostname-last", _levels("zone", HOST), _levels(HOST, "zone")),
    RuleCase(QUEUE, "path-and-weights", {}, {}, meta=_marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/2"}),
             broken_meta=_marks(**{HIERARCHY: "root/a"})),
    RuleCase(QUEUE, "weight-per-step", {}, {}, meta=_marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/2"}),
             broken_meta=_marks(**{HIERARCHY: "root/a/b", HIERARCHY_WEIGHTS: "1/2"})),
    RuleCase(QUEUE, "weights-positive", {}, {}, meta=_marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/2.5"}),
             broken_meta=_marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/0"})),
    RuleCase(POD, "one-disruption-bound", POD_SPEC, POD_SPEC, meta=_marks(**{MIN_AVAILABLE: "2"}),
             broken_meta=_marks(**{MIN_AVAILABLE: "2", MAX_UNAVAILABLE: "2"})),
    RuleCase(POD, "disruption-bound-reads", POD_SPEC, POD_SPEC, meta=_marks(**{MAX_UNAVAILABLE: "50%"}),
             broken_meta=_marks(**{MAX_UNAVAILABLE: "100%"})),
    RuleCase(POD, "names-container", OUR_POD_SPEC, OUR_POD_SPEC, meta=_marks(**{GPU_CONTAINER: "main"}),
             broken_meta=_marks(**{GPU_CONTAINER: "other"})),
]  # fmt: skip
