"""Every rule lets one object pass and refuses another, here as in a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from phalanx.errors import Invalid
from phalanx.manifests.definitions import DEFINITIONS
from phalanx.manifests.policies import HIERARCHY, HIERARCHY_WEIGHTS, MAX_UNAVAILABLE, MIN_AVAILABLE, VALIDATING
from phalanx.manifests.schema import rules_of
from phalanx.model.kinds import kind_of
from phalanx.store.memory import MemoryStore

Spec = Mapping[str, Any]

API_BY_KIND = {
    "VolcanoPodGroup": ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    "VolcanoQueue": ("scheduling.volcano.sh/v1beta1", "Queue"),
    "Job": ("batch.volcano.sh/v1alpha1", "Job"),
    "CronJob": ("batch.volcano.sh/v1alpha1", "CronJob"),
    "JobFlow": ("flow.volcano.sh/v1alpha1", "JobFlow"),
    "HyperNode": ("topology.volcano.sh/v1alpha1", "HyperNode"),
    "KaiPodGroup": ("scheduling.run.ai/v2alpha2", "PodGroup"),
    "KaiQueue": ("scheduling.run.ai/v2", "Queue"),
    "Topology": ("kai.scheduler/v1alpha1", "Topology"),
    "Pod": ("v1", "Pod"),
}
CONTAINERS = [{"name": "main", "image": "train:1"}]


@dataclass(frozen=True)
class Case:
    """A rule with the specs of an object that keeps it, and of one that breaks it; `before` is what it was changed from."""

    kind: str
    rule: str
    kept: Spec
    broken: Spec
    before: Spec | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    broken_meta: Mapping[str, Any] | None = None


def job(*tasks: Spec, **spec: Any) -> Spec:
    return {"tasks": [{"name": f"t{place}", **task} for place, task in enumerate(tasks or ({"replicas": 2},))], **spec}


def reacting(*policies: Spec) -> Spec:
    return job(policies=[{"action": "RestartJob", **policy} for policy in policies])


def cron(**spec: Any) -> Spec:
    return {"schedule": "30 2 * * 1-5", "jobTemplate": {"spec": job()}, **spec}


def flow(**targets: list[str]) -> Spec:
    return {"flows": [{"name": name, **({"dependsOn": {"targets": names}} if names else {})} for name, names in targets.items()]}


def member(kind: str = "Node", **selector: Any) -> Spec:
    return {"tier": 1, "members": [{"type": kind, "selector": selector}]}


def bounded(**spec: Any) -> Spec:
    return {"guarantee": {"resource": {"cpu": 2}}, "deserved": {"cpu": "4"}, "capability": {"cpu": "8000m"}, **spec}


def levels(*labels: str) -> Spec:
    return {"levels": [{"nodeLabel": label} for label in labels]}


def parts(**parents: str) -> Spec:
    named = [{"name": name, "minMember": 1, **({"parent": parent} if parent else {})} for name, parent in parents.items()]
    return {"minMember": 1, "subGroups": named}


def marks(**annotations: str) -> dict[str, Any]:
    return {"annotations": annotations}


TIER, TIER_NAME = {"highestTierAllowed": 1}, {"highestTierName": "rack"}
TWO_PARTS = {"totalPartitions": 2, "partitionSize": 2}
EXACT, PATTERN = {"exactMatch": {"name": "n1"}}, {"regexMatch": {"pattern": "^n[0-9]+$"}}
LABELS = {"labelMatch": {"matchLabels": {"rack": "1"}}}
CLAIM = {"volumeClaimName": "data"}
HOST = "kubernetes.io/hostname"

CASES = [
    Case("VolcanoPodGroup", "one-tier", {"networkTopology": TIER}, {"networkTopology": TIER | TIER_NAME}),
    Case("VolcanoQueue", "no-own-parent", {"parent": "root"}, {"parent": "it"}),
    Case("VolcanoQueue", "root-stays", {"weight": 2}, {"weight": 3}, before={"weight": 2}, meta={"name": "root"}),
    Case("VolcanoQueue", "deserved-covers-guarantee", bounded(), bounded(guarantee={"resource": {"cpu": "4001m"}})),
    Case("VolcanoQueue", "capability-covers-deserved", bounded(), bounded(deserved={"cpu": 9})),
    Case("VolcanoQueue", "capability-covers-guarantee", bounded(), bounded(guarantee={"resource": {"cpu": 9}})),
    Case("Job", "pod-names-fit", job({"replicas": 10}), job({"name": "t" * 58, "replicas": 10})),
    Case("Job", "minimum-within-job", job(minAvailable=2), job(minAvailable=3)),
    Case("Job", "known-plugins", job(plugins={"svc": []}), job(plugins={"pytroch": []})),
    Case("Job", "task-names-once", job({"name": "a"}, {"name": "b"}), job({"name": "a"}, {"name": "a"})),
    Case("Job", "dependencies-exist", job({}, {"dependsOn": {"name": ["t0"]}}), job({}, {"dependsOn": {"name": ["t2"]}})),
    Case("Job", "minimum-within-replicas", job({"replicas": 2, "minAvailable": 2}), job({"replicas": 2, "minAvailable": 3})),
    Case("Job", "partitions-make-replicas", job({"replicas": 4, "partitionPolicy": TWO_PARTS}),
         job({"replicas": 5, "partitionPolicy": TWO_PARTS})),
    Case("Job", "no-own-dependency", job({}, {"dependsOn": {"name": ["t0"]}}), job({}, {"dependsOn": {"name": ["t1"]}})),
    Case("Job", "events-once", reacting({"event": "PodFailed"}, {"events": ["PodEvicted", "Unknown"]}),
         reacting({"event": "PodFailed"}, {"events": ["PodEvicted", "PodFailed"]})),
    Case("Job", "events-once", reacting({"event": "PodFailed"}), reacting({"events": ["PodFailed", "PodFailed"]})),
    Case("Job", "any-event-alone", reacting({"event": "*"}, {"exitCode": 3}), reacting({"event": "*"}, {"event": "PodFailed"})),
    Case("Job", "exit-codes-once", reacting({"exitCode": 3}, {"exitCode": 4}), reacting({"exitCode": 3}, {"exitCode": 3})),
    Case("Job", "event-or-exit-code", reacting({"exitCode": 3}), reacting({})),
    Case("Job", "not-event-and-exit-code", reacting({"exitCode": 3}), reacting({"exitCode": 3, "event": "PodFailed"})),
    Case("Job", "exit-code-of-failure", reacting({"exitCode": 1}), reacting({"exitCode": 0})),
    Case("Job", "pending-needs-timeout", reacting({"event": "PodPending", "timeout": "10m"}), reacting({"event": "PodPending"})),
    Case("Job", "minimum-within-partitions", job({"replicas": 4, "partitionPolicy": TWO_PARTS | {"minPartitions": 2}}),
         job({"replicas": 4, "minAvailable": 4, "partitionPolicy": TWO_PARTS | {"minPartitions": 3}})),
    Case("Job", "one-tier", job(networkTopology=TIER_NAME), job(networkTopology=TIER | TIER_NAME)),
    Case("Job", "paths-once", job(volumes=[{"mountPath": "/a", **CLAIM}, {"mountPath": "/b", **CLAIM}]),
         job(volumes=[{"mountPath": "/a", **CLAIM}, {"mountPath": "/a", **CLAIM}])),
    Case("Job", "one-claim", job(volumes=[{"mountPath": "/a", "volumeClaim": {}}]), job(volumes=[{"mountPath": "/a"}])),
    Case("Job", "one-claim", job(volumes=[{"mountPath": "/a", **CLAIM}]), job(volumes=[{"mountPath": "/a", "volumeClaim": {}, **CLAIM}])),
    Case("Job", "job-stays", job(minAvailable=1, priorityClassName="high"), job(queue="other"), before=job()),
    Case("Job", "tasks-stay", job({"replicas": 5, "minAvailable": 1}), job({"replicas": 2, "template": {"spec": {"containers": CONTAINERS}}}),
         before=job()),
    Case("CronJob", "room-for-job-names", cron(), cron(), meta={"name": "c" * 52}, broken_meta={"name": "c" * 53}),
    Case("CronJob", "schedule-reads", cron(schedule="@daily"), cron(schedule="daily")),
    Case("CronJob", "schedule-reads", cron(schedule="*/5 * * * *"), cron(schedule="TZ=UTC 30 2 * * *")),
    Case("CronJob", "zone-by-name", cron(timeZone="Europe/Berlin"), cron(timeZone="Local")),
    Case("JobFlow", "flow-names-once", flow(a=[], b=[]), {"flows": [{"name": "a"}, {"name": "a"}]}),
    Case("JobFlow", "targets-exist", flow(a=[], b=["a"]), flow(a=[], b=["c"])),
    Case("JobFlow", "no-own-target", flow(a=[], b=["a"]), flow(a=[], b=["b"])),
    Case("HyperNode", "labels-mean-nodes", member(**LABELS), member("HyperNode", **LABELS)),
    Case("HyperNode", "one-selector", member(**EXACT), member()),
    Case("HyperNode", "one-selector", member(**PATTERN), member(**EXACT, **PATTERN)),
    Case("HyperNode", "pattern-compiles", member(**PATTERN), member(regexMatch={"pattern": "(n"})),
    Case("KaiPodGroup", "sub-group-names-once", parts(a="", b="a"), {"subGroups": [{"name": "a"}, {"name": "a"}]}),
    Case("KaiPodGroup", "parents-exist", parts(a="", b="a"), parts(a="", b="c")),
    Case("KaiPodGroup", "no-own-parent", parts(a="", b="a"), parts(a="", b="b")),
    Case("KaiQueue", "no-own-parent", {"resources": {}, "parentQueue": "root"}, {"resources": {}, "parentQueue": "it"}),
    Case("KaiQueue", "amount-or-unlimited", {"resources": {"gpu": {"quota": -1, "limit": 0.5}}}, {"resources": {"gpu": {"quota": -2}}}),
    Case("Topology", "levels-stay", levels("zone", "rack"), levels("zone"), before=levels("zone", "rack")),
    Case("Topology", "levels-once", levels("zone", "rack"), levels("zone", "zone")),
    Case("Topology", "hostname-last", levels("zone", HOST), levels(HOST, "zone")),
    Case("VolcanoQueue", "path-and-weights", {}, {}, meta=marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/2"}),
         broken_meta=marks(**{HIERARCHY: "root/a"})),
    Case("VolcanoQueue", "weight-per-step", {}, {}, meta=marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/2"}),
         broken_meta=marks(**{HIERARCHY: "root/a/b", HIERARCHY_WEIGHTS: "1/2"})),
    Case("VolcanoQueue", "weights-positive", {}, {}, meta=marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/2.5"}),
         broken_meta=marks(**{HIERARCHY: "root/a", HIERARCHY_WEIGHTS: "1/0"})),
    Case("Pod", "one-disruption-bound", {"containers": CONTAINERS}, {"containers": CONTAINERS}, meta=marks(**{MIN_AVAILABLE: "2"}),
         broken_meta=marks(**{MIN_AVAILABLE: "2", MAX_UNAVAILABLE: "2"})),
    Case("Pod", "disruption-bound-reads", {"containers": CONTAINERS}, {"containers": CONTAINERS}, meta=marks(**{MAX_UNAVAILABLE: "50%"}),
         broken_meta=marks(**{MAX_UNAVAILABLE: "100%"})),
]  # fmt: skip
APART = {("VolcanoQueue", "keeps-first-queues")}
"""Rules with a test of their own."""


def message_of(case: Case) -> str:
    """Return what the rule of a case says."""
    group, name = (
        kind_of({"apiVersion": API_BY_KIND[case.kind][0], "kind": API_BY_KIND[case.kind][1]}).group,
        API_BY_KIND[case.kind][1],
    )
    structs = [definition.struct for definition in DEFINITIONS if (definition.kind.group, definition.kind.kind) == (group, name)]
    found = [rule for struct in structs for _, rule in rules_of(struct)]
    found += [rule for policy in VALIDATING if (policy.kind.group, policy.kind.kind) == (group, name) for rule in policy.rules]
    return next(rule.message for rule in found if rule.name == case.rule)


def put(case: Case, spec: Spec, meta: Mapping[str, Any]) -> None:
    """Make an object, or change it from what it was before."""
    store = MemoryStore(lambda: 0.0)
    api_version, kind = API_BY_KIND[case.kind]
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", **meta}}
    if case.before is None:
        store.create({**document, "spec": spec})
        return
    made = store.create({**document, "spec": case.before})
    store.replace({**made, "spec": {**made["spec"], **spec}})


def named(case: Case) -> str:
    return f"{case.kind}-{case.rule}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_what_keeps_a_rule_is_accepted(case: Case) -> None:
    put(case, case.kept, case.meta)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_what_breaks_a_rule_is_refused_in_its_words(case: Case) -> None:
    with pytest.raises(Invalid) as caught:
        put(case, case.broken, case.meta if case.broken_meta is None else case.broken_meta)
    assert message_of(case) in str(caught.value)
    assert caught.value.code == 422


def test_every_rule_has_a_case() -> None:
    rules = {(definition.kind, rule.name) for definition in DEFINITIONS for _, rule in rules_of(definition.struct)}
    rules |= {(policy.kind, rule.name) for policy in VALIDATING for rule in policy.rules}
    tried = {(kind_of({"apiVersion": API_BY_KIND[kind][0], "kind": API_BY_KIND[kind][1]}), rule)
             for kind, rule in {(case.kind, case.rule) for case in CASES} | APART}  # fmt: skip
    inherited = {name for definition in DEFINITIONS if definition.kind.kind == "Job" for _, name in
                 ((place, rule.name) for place, rule in rules_of(definition.struct))}  # fmt: skip
    left = {(kind, name) for kind, name in rules - tried if not (kind.kind in ("CronJob", "JobTemplate") and name in inherited)}
    assert left == set()


def test_the_rules_of_a_job_hold_inside_a_cronjob() -> None:
    document = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "it"}}
    with pytest.raises(Invalid, match=r"spec.jobTemplate.spec.minAvailable: Invalid value: more pods are needed"):
        MemoryStore(lambda: 0.0).create({**document, "spec": cron(jobTemplate={"spec": job(minAvailable=3)})})


@pytest.mark.parametrize("name", ["root", "default"])
def test_the_first_queues_stay(name: str) -> None:
    store = MemoryStore(lambda: 0.0)
    made = store.create({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}})
    store.create({**made, "metadata": {"name": "other"}})
    store.delete(kind_of(made), "", "other")
    with pytest.raises(Invalid, match="close a queue that is not to be used"):
        store.delete(kind_of(made), "", name)
