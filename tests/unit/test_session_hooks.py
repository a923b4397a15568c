"""The contract between sessions and plugins: every hook is declared once, and every plugin keeps to it."""

import re
from inspect import getmembers, getsource, isroutine

import pytest

from phalanx.config.builtin import CATALOGUE, KAI_CATALOGUE
from phalanx.errors import ConfigError
from phalanx.session import combine, questions, session
from phalanx.session.contract import hooks_of
from phalanx.session.cycle import Catalogue, open_session
from phalanx.session.hooks import HOOKS
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import YES, Verdict
from phalanx.testing import build
from tests.support import plugin_hooks

TABLE = {
    "gang_order": ("enableJobOrder", "first difference"),
    "queue_order": ("enableQueueOrder", "first difference"),
    "task_order": ("enableTaskOrder", "first difference"),
    "subgroup_order": ("enabledSubJobOrder", "first difference"),
    "victim_queue_order": (None, "first difference"),
    "giving_order": (None, "first difference"),
    "gang_valid": (None, "first refusal"),
    "gang_ready": ("enableJobReady", "all agree"),
    "subgroup_ready": ("enabledSubJobReady", "all agree"),
    "gang_pipelined": ("enableJobPipelined", "vote"),
    "subgroup_pipelined": ("enabledSubJobPipelined", "vote"),
    "gang_enqueueable": ("enableJobEnqueued", "vote"),
    "gang_enqueued": ("enableJobEnqueued", "told"),
    "gang_starving": ("enableJobStarving", "first tier agrees"),
    "tolerated_gap": (None, "first answer"),
    "queue_overused": ("enabledOverused", "any refusal"),
    "tasks_until_overused": ("enabledOverused", "smallest"),
    "queue_room": ("enabledAllocatable", "smallest"),
    "queue_limits": ("enabledAllocatable", "collected"),
    "queue_preemptive": ("enablePreemptive", "all agree"),
    "queue_surplus": (None, "smallest"),
    "prefilter": ("enablePredicate", "first refusal"),
    "screen": ("enablePredicate", "collected"),
    "task_screen": ("enablePredicate", "collected"),
    "node_room": ("enablePredicate", "smallest"),
    "node_waits": ("enablePredicate", "collected"),
    "node_scores": ("enableNodeOrder", "sum"),
    "batch_scores": ("enableNodeOrder", "sum"),
    "task_scores": ("enableNodeOrder", "sum"),
    "scores_by_leaf": ("enableNodeOrder", "collected"),
    "hypernode_scores": ("enabledHyperNodeOrder", "sum"),
    "placement_scores": (None, "sum"),
    "node_subsets": (None, "first answer"),
    "hypernode_gradients": ("enabledHyperNodeGradient", "first answer"),
    "preemptable": ("enablePreemptable", "victims"),
    "reclaimable": ("enableReclaimable", "victims"),
    "evictable": (None, "victims"),
    "why_protected": (None, "first refusal"),
    "victim_tasks": ("enabledVictim", "first tier together"),
    "changed": (None, "told"),
    "open": (None, "told"),
    "close": (None, "told"),
    "avoided_nodes": (None, "first answer"),
    "couples_nodes": (None, "any"),
    "coupled_filters": ("enablePredicate", "sum"),
    "coupled_scores": ("enableNodeOrder", "sum"),
}
"""The switch of every hook and how its answers combine: what configurations and plugins rely on."""
RULES = {
    "first difference": (combine.first_difference, combine.sort_key),
    "first refusal": (combine.first_refusal,),
    "all agree": (combine.first_refusal,),
    "any refusal": (combine.first_refusal,),
    "vote": (combine.vote,),
    "told": (combine.told,),
    "any": (combine.any_says_so,),
    "first tier agrees": (combine.first_tier_agrees,),
    "smallest": (combine.smallest, combine.smallest_room, combine.lowest),
    "collected": (combine.collected, combine.collected_by_plugin),
    "sum": (combine.added, combine.added_pairs, combine.chained),
    "first answer": (combine.first_answer,),
    "victims": (combine.victims,),
    "first tier together": (combine.first_tier_together,),
}
"""The functions that combine in each of these ways; several where the answers differ in form."""
PLUGINS = [*CATALOGUE.plugins.values(), *KAI_CATALOGUE.plugins.values()]


def test_every_hook_has_the_switch_and_the_rule_that_configurations_rely_on() -> None:
    assert {name: hook.switch for name, hook in HOOKS.items()} == {name: switch for name, (switch, _) in TABLE.items()}
    assert [name for name, hook in HOOKS.items() if hook.rule not in RULES[TABLE[name][1]]] == []


@pytest.mark.parametrize("name", HOOKS)
def test_the_type_checker_sees_every_plugin_that_answers_a_hook(name: str) -> None:
    assert set(getattr(plugin_hooks, name.upper())) == {plugin for plugin in PLUGINS if hasattr(plugin, name)}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_public_method_of_a_plugin_is_a_hook_and_not_a_misspelt_one(plugin: type) -> None:
    methods = {name for name, _ in getmembers(plugin, isroutine) if not name.startswith("_")}
    assert methods == {hook.name for hook in hooks_of(plugin)}


@pytest.mark.parametrize("name", HOOKS)
def test_a_session_asks_every_hook_that_is_declared(name: str) -> None:
    assert re.search(rf"hooks\.{name.upper()}\b", getsource(questions) + getsource(session))


class _Named:
    name = "hold"

    def __init__(self, policy: PluginPolicy) -> None:
        pass


class _ForgetsTheGang(_Named):
    def gang_valid(self, session: Session) -> Verdict:
        return YES


class _WantsMore(_Named):
    def gang_valid(self, session: Session, gang: GangState, *, why: str) -> Verdict:
        return YES


class _OwnWords(_Named):
    def gang_valid(self, session: Session, job: GangState, strict: bool = False) -> Verdict:
        return Verdict.refuse(self.name, "Held", "held back")


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (_ForgetsTheGang, "plugin 'hold', hook 'gang_valid': takes (self, session); write (self, session, gang)"),
        (_WantsMore, "plugin 'hold', hook 'gang_valid': takes (self, session, gang, why); write (self, session, gang)"),
    ],
)
def test_a_plugin_that_cannot_be_asked_is_refused_by_the_catalogue(plugin: type[_Named], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Catalogue(plugins={"hold": plugin})
    assert str(caught.value) == message


def test_a_plugin_that_a_function_makes_is_refused_by_the_session() -> None:
    catalogue = Catalogue(plugins={"hold": lambda policy: _ForgetsTheGang(policy)})
    with pytest.raises(ConfigError, match="hook 'gang_valid'"):
        open_session(build.cluster().objects.snapshot(0.0), Policy((), ((PluginPolicy("hold"),),)), catalogue)


def test_a_plugin_may_name_its_parameters_as_it_likes_and_have_more_with_defaults() -> None:
    cluster = build.cluster().submit(build.gang("train"))
    policy = Policy((), ((PluginPolicy("hold"),),))
    opened = open_session(cluster.objects.snapshot(0.0), policy, Catalogue(plugins={"hold": _OwnWords}))
    assert [opened.gang_valid(gang).reason for gang in opened.gangs.values()] == ["Held"]
