"""Every rule lets one object pass and refuses another, here as in a cluster."""

import pytest

from phalanx.errors import Invalid
from phalanx.manifests.admission_policies import VALIDATING
from phalanx.manifests.definitions import DEFINITIONS
from phalanx.manifests.openapi import rules_of
from phalanx.model.kinds import Document, kind_of
from phalanx.store.memory import MemoryStore
from tests.support.rule_cases import CRON_JOB, JOB, QUEUE, RULE_CASES, RuleCase

APART = {(QUEUE, "keeps-first-queues")}
"""Rules with a test of their own."""


def put(documents: list[Document]) -> None:
    """Make an object, and change it if there is more than one."""
    store = MemoryStore(lambda: 0.0)
    first, *others = documents
    made = store.create(first)
    for document in others:
        store.replace({**made, "spec": {**made["spec"], **document["spec"]}})


def named(case: RuleCase) -> str:
    return f"{case.kind.kind}-{case.rule}"


@pytest.mark.parametrize("case", RULE_CASES, ids=named)
def test_what_keeps_a_rule_is_accepted(case: RuleCase) -> None:
    put(case.steps[0])


@pytest.mark.parametrize("case", RULE_CASES, ids=named)
def test_what_breaks_a_rule_is_refused_in_its_words(case: RuleCase) -> None:
    with pytest.raises(Invalid) as caught:
        put(case.steps[1])
    assert case.message in str(caught.value)
    assert caught.value.code == 422


def test_every_rule_has_a_case() -> None:
    rules = {(definition.kind, rule.name) for definition in DEFINITIONS for _, rule in rules_of(definition.struct)}
    rules |= {(policy.kind, rule.name) for policy in VALIDATING for rule in policy.rules}
    tried = {(case.kind, case.rule) for case in RULE_CASES} | APART
    of_jobs = {name for kind, name in tried if kind is JOB}
    assert {
        (kind, name) for kind, name in rules - tried if kind.kind not in ("CronJob", "JobTemplate") or name not in of_jobs
    } == set()


def test_the_rules_of_a_job_hold_inside_a_cronjob() -> None:
    jobs = {"spec": {"minAvailable": 3, "tasks": [{"name": "a", "replicas": 2}]}}
    document = {"apiVersion": CRON_JOB.api_version, "kind": CRON_JOB.kind, "metadata": {"name": "it"}}
    with pytest.raises(Invalid, match=r"spec.jobTemplate.spec.minAvailable: Invalid value: more pods are needed"):
        MemoryStore(lambda: 0.0).create({**document, "spec": {"schedule": "@daily", "jobTemplate": jobs}})


@pytest.mark.parametrize("name", ["root", "default"])
def test_the_first_queues_stay(name: str) -> None:
    store = MemoryStore(lambda: 0.0)
    made = store.create({"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name}})
    store.create({**made, "metadata": {"name": "other"}})
    store.delete(kind_of(made), "", "other")
    with pytest.raises(Invalid, match="close a queue that is not to be used"):
        store.delete(kind_of(made), "", name)
