"""Every question that an action may ask the plugins of a session; each goes to the plugins as `hooks.py` declares it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Protocol, TypeVar, TypeVarTuple

import numpy as np

from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.placement import NO_LIMIT, Counts, Index, Mask, Scores, Vector
from phalanx.placement.ledger import Ledger
from phalanx.session import combine, hooks, node_hooks
from phalanx.session.combine import AnyHook, Asked, Hook, Tiers
from phalanx.session.contract import hooks_of
from phalanx.session.hooks import HOOKS, Plugin, SortKey
from phalanx.session.node_answers import CoupledFilter, CoupledScore, Layer, Site, Term
from phalanx.session.node_hooks import Scope
from phalanx.session.node_subset import NodeSubset
from phalanx.session.node_view import Valuation
from phalanx.session.plugin_trace import PluginAnswer, note_votes
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.task_order import tasks_in_order
from phalanx.session.trace import Trace
from phalanx.session.trace_events import GangStarving
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import ABSTAIN, PERMIT, REJECT, Room, Verdict, Vote

Result = TypeVar("Result")
Question = TypeVarTuple("Question")
UNREADY = "node(s) were not ready"
ROLLING_BACK = "BindRollback"


class PluginFactory(Protocol):
    """Makes a plugin for one session."""

    def __call__(self, policy: PluginPolicy) -> Plugin: ...


@lru_cache(maxsize=64)
def _numbers_by_hook(plugins: tuple[tuple[int, frozenset[str], type], ...]) -> dict[str, list[list[int]]]:
    """Return which plugins answer each hook, tier by tier; a tier that has none is left out. Sessions of a policy share it."""
    found: dict[str, dict[int, list[int]]] = {name: {} for name in HOOKS}
    for number, (tier, enabled, plugin) in enumerate(plugins):
        for hook in hooks_of(plugin):
            if hook.switch is None or hook.switch in enabled:
                found[hook.name].setdefault(tier, []).append(number)
    return {name: [tiers[tier] for tier in sorted(tiers)] for name, tiers in found.items()}


class _Answering(dict[str, Tiers[Any]]):
    """The methods of all plugins by hook, tier by tier, taken when first asked for."""

    def __init__(self, plugins: Sequence[tuple[int, PluginPolicy, Plugin]]) -> None:
        """Take the plugins with their tiers and switches; one that cannot be asked is an error at once."""
        self._plugins = [plugin for _, _, plugin in plugins]
        self._numbers = _numbers_by_hook(tuple((tier, policy.enabled, type(plugin)) for tier, policy, plugin in plugins))

    def __missing__(self, name: str) -> Tiers[Any]:
        tiers = self[name] = [[getattr(self._plugins[number], name) for number in tier] for tier in self._numbers[name]]
        return tiers


class Questions:
    """The plugins of a session, asked through one method per hook. A session is one of these; plugins see the whole of it."""

    snapshot: Snapshot
    ledger: Ledger
    trace: Trace
    policy: Policy
    queues: Mapping[str, Queue]
    shard_parts: list[Mask]
    version: int

    def _take_plugins(self, factories: Mapping[str, PluginFactory]) -> None:
        """Make the plugins that the policy names, and note which methods each hook asks."""
        self.plugins = [
            (tier, plugin, factories[plugin.name](plugin)) for tier, plugins in enumerate(self.policy.tiers) for plugin in plugins
        ]
        self._asked = _Answering(self.plugins)
        self._questions: dict[str, Callable[..., Any]] = {}
        """Each hook as a call, once it was asked: a large session asks tens of thousands of questions, a small one a few hooks."""
        self._member_counts: dict[str, bool] = {}
        """By hook: members alone are counted to answer it."""
        self._voters: list[Asked[Any]] = []
        self._surplus: dict[str, tuple[int, Vector]] = {}
        self._rooms: dict[tuple[str, Shape], tuple[int, Room]] = {}
        """By queue and shape what the queue has room for, with the state of the books then."""

    def is_asked(self, hook: Hook[Any, *tuple[Any, ...]]) -> bool:
        """Tell whether some plugin has an answer."""
        return bool(self._asked[hook.name])

    def _ask(self, hook: Hook[Result, *Question], *question: *Question) -> Result:
        """Ask the plugins and combine their answers."""
        ask = self._questions.get(hook.name) or self._question(hook.name)
        result: Result = ask(*question)
        return result

    def _question(self, name: str) -> Callable[..., Any]:
        if name not in self._questions:
            self._questions[name] = partial(HOOKS[name].rule, self._asked[name], self)
        return self._questions[name]

    def _answers(self, hook: AnyHook, *question: Any) -> list[PluginAnswer]:
        """Ask every plugin by itself, for the trace."""
        return [PluginAnswer(method.__self__, method(self, *question)) for method in combine.flat(self._asked[hook.name])]

    def _told_of_changes(self) -> Iterable[Asked[None]]:
        """Return the methods of plugins that follow what changes."""
        return combine.flat(self._asked[hooks.CHANGED.name])

    def plugin(self, name: str) -> PluginPolicy | None:
        """Return the settings of a plugin that is loaded."""
        return next((policy for _, policy, _ in self.plugins if policy.name == name), None)

    # --- orders ----------------------------------------------------------------------------------------------------

    def gang_key(self, gang: GangState) -> SortKey:
        """Return the key that orders gangs inside a queue."""
        return (*self.gang_order_key(gang), gang.gang.created, gang.gang.key)

    def gang_keys(self, gangs: Sequence[GangState]) -> list[SortKey]:
        """Return the keys of many gangs."""
        keys = self._sort_keys(hooks.GANG_ORDER, gangs)
        return [(*key, gang.gang.created, gang.gang.key) for key, gang in zip(keys, gangs, strict=True)]

    def _sort_keys(self, hook: AnyHook, items: Sequence[Any]) -> list[tuple[Any, ...]]:
        return combine.sort_keys(self._asked[hook.name], self, items)  # type: ignore[arg-type]  # every Questions is a Session

    def gang_order_key(self, gang: GangState) -> tuple[SortKey, ...]:
        """Return what the plugins say about the place of a gang, without the tie-break by age."""
        return self._ask(hooks.GANG_ORDER, gang)

    def gang_order_by_plugin(self, gang: GangState) -> dict[str, str]:
        """Return what each plugin says about the place of a gang, as text for the trace."""
        return {answer.plugin.name: str(answer.value) for answer in self.gang_order_answers(gang)}

    def gang_order_answers(self, gang: GangState) -> list[PluginAnswer]:
        """Return the key of each plugin for the place of a gang, for the trace."""
        return self._answers(hooks.GANG_ORDER, gang)

    def subgroup_key(self, subgroup: SubGroupState) -> SortKey:
        """Return the key that orders the sub-groups of a gang."""
        return (*self._ask(hooks.SUBGROUP_ORDER, subgroup), subgroup.ordinal, subgroup.id)

    def sorted_tasks(self, tasks: Iterable[TaskState]) -> list[TaskState]:
        """Return tasks in the order in which they are placed."""
        return tasks_in_order(tasks, partial(self._sort_keys, hooks.TASK_ORDER))

    def queue_compare(self, left: Queue, right: Queue) -> int:
        """Return -1 when the left queue is served before the right one now, else 1."""
        return -1 if self.queue_comes_first(left, right) else 1

    def queue_comes_first(self, left: Queue, right: Queue) -> bool:
        """Tell whether the left queue is served before the right one now."""
        answer = self._ask(hooks.QUEUE_ORDER, left, right)
        return answer < 0 if answer else (left.created, left.name) < (right.created, right.name)

    # --- gangs -----------------------------------------------------------------------------------------------------

    def gang_valid(self, gang: GangState) -> Verdict:
        """Tell whether the gang may be considered at all."""
        failed = self.snapshot.failing_rounds.get(gang.gang.key)
        if failed is not None:
            text = f"the bind of pod {failed} failed, and the others of the gang are being rolled back"
            return Verdict.refuse("session", ROLLING_BACK, text, pod=failed)
        return self._ask(hooks.GANG_VALID, gang)

    def gang_ready(self, gang: GangState) -> Verdict:
        """Tell whether enough members are allocated for the gang to start."""
        return self._ask(hooks.GANG_READY, gang)

    def gang_pipelined(self, gang: GangState) -> bool:
        """Tell whether enough members are allocated or pipelined."""
        return self._ask(hooks.GANG_PIPELINED, gang).value > 0

    def subgroup_ready(self, subgroup: SubGroupState) -> bool:
        """Tell whether enough members of the sub-group are allocated; a gang without sub-groups answers for itself."""
        if not subgroup.gang.has_subgroups:
            return self.gang_ready(subgroup.gang).ok
        return self._ask(hooks.SUBGROUP_READY, subgroup).ok

    def subgroup_pipelined(self, subgroup: SubGroupState) -> bool:
        """Tell whether enough members of the sub-group are allocated or pipelined."""
        if not subgroup.gang.has_subgroups:
            return self.gang_pipelined(subgroup.gang)
        return self._ask(hooks.SUBGROUP_PIPELINED, subgroup).value > 0

    def gang_starving(self, gang: GangState) -> Verdict:
        """Tell whether the gang may be a preemptor or reclaimer."""
        verdict = self._ask(hooks.GANG_STARVING, gang)
        self.trace.note(GangStarving, gang.key, verdict.ok, verdict.plugin)
        return verdict

    def tolerated_gap(self, gang: GangState) -> int | None:
        """Return how many members a gang may lack and still keep the places that others found; None: it keeps none."""
        return self._ask(hooks.TOLERATED_GAP, gang)

    def gang_enqueueable(self, gang: GangState) -> Vote:
        """Ask whether a pending gang may be admitted."""
        return self._ask(hooks.GANG_ENQUEUEABLE, gang)

    def enqueue_votes(self, gang: GangState) -> dict[str, str]:
        """Return how each plugin votes on the admission of a gang, as text for the trace."""
        words = {PERMIT: "for", ABSTAIN: "abstains", REJECT: "against"}
        return {answer.plugin.name: words[answer.value.value] for answer in self._answers(hooks.GANG_ENQUEUEABLE, gang)}

    def gang_enqueued(self, gang: GangState) -> None:
        """Tell every plugin that a gang was admitted."""
        self._ask(hooks.GANG_ENQUEUED, gang)

    def ready_in(self, subgroup: SubGroupState, role: str) -> int:
        """Return how many tasks of a role can be placed before anybody needs to ask whether the sub-group is ready."""
        has_subgroups = subgroup.gang.has_subgroups
        if not self._counts_members(hooks.SUBGROUP_READY if has_subgroups else hooks.GANG_READY):
            return 1
        return max(subgroup.shortfall() if has_subgroups else subgroup.gang.shortfall(role), 1)

    def is_ready_with(self, gang: GangState, count: int) -> bool:
        """Tell whether a gang is ready once so many more tasks are placed, whichever they are, and not before."""
        return self._counts_members(hooks.GANG_READY) and gang.is_ready_with(count)

    def is_nothing_below(self, gang: GangState, count: int) -> bool:
        """Tell whether it is certain that a gang is neither ready nor pipelined with fewer than so many more places."""
        is_counted = self._counts_members(hooks.GANG_READY) and self._counts_members(hooks.GANG_PIPELINED)
        return is_counted and not gang.tally.pipelined and gang.lacks(count)

    def _counts_members(self, hook: AnyHook) -> bool:
        """Tell whether members alone are counted to answer a hook."""
        if hook.name not in self._member_counts:
            self._member_counts[hook.name] = _only_counts_members(self._asked[hook.name])
        return self._member_counts[hook.name]

    # --- queues ----------------------------------------------------------------------------------------------------

    def queue_overused(self, queue: Queue) -> Verdict:
        """Refuse when the queue has all it should have."""
        return self._ask(hooks.QUEUE_OVERUSED, queue)

    def tasks_until_overused(self, queue: Queue, shape: Shape) -> int:
        """Return how many tasks a queue that is not overused can be given before anybody has to ask again whether it is."""
        asked, telling = (self._asked[hook.name] for hook in (hooks.QUEUE_OVERUSED, hooks.TASKS_UNTIL_OVERUSED))
        if not {id(method.__self__) for method in combine.flat(asked)} <= {id(method.__self__) for method in combine.flat(telling)}:
            return 1
        return self._ask(hooks.TASKS_UNTIL_OVERUSED, queue, shape)

    def queue_room(self, queue: Queue, shape: Shape) -> Room:
        """Return how many more tasks of the shape the queue may take; asked anew once something has changed."""
        known = self._rooms.get((queue.name, shape))
        if known is None or known[0] != self.version:
            known = self._rooms[queue.name, shape] = (self.version, self._ask(hooks.QUEUE_ROOM, queue, shape))
        return known[1]

    def queue_limits(self, queue: Queue) -> dict[str, Vector]:
        """Return what the queue may still take however large the cluster gets, by whose limit it is; empty without limits."""
        found: dict[str, Vector] = {}
        for limits in self._ask(hooks.QUEUE_LIMITS, queue):
            for name, amounts in limits.items():
                found[name] = np.minimum(found.get(name, np.inf), amounts)
        return found

    def queue_preemptive(self, queue: Queue, tasks: Sequence[TaskState]) -> Verdict:
        """Tell whether the queue may reclaim from other queues for all of these tasks together."""
        return self._ask(hooks.QUEUE_PREEMPTIVE, queue, tasks)

    def queue_surplus(self, queue: Queue) -> Vector:
        """Return what the queue may lose to others: a task goes only while something it asks for is among it."""
        if self._surplus.get(queue.name, (-1, None))[0] != self.version:
            surplus = self._ask(hooks.QUEUE_SURPLUS, queue)
            unbounded = np.full(len(self.snapshot.space), np.inf) if surplus is None else surplus
            self._surplus[queue.name] = (self.version, unbounded)
        return self._surplus[queue.name][1]

    # --- victims ---------------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Return the candidates that may be evicted for a task of their own queue."""
        return self._victims(hooks.PREEMPTABLE, preemptor, candidates)

    def reclaimable(self, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Return the candidates that may be evicted for a task of another queue."""
        return self._victims(hooks.RECLAIMABLE, preemptor, candidates)

    def evictable(self, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Return the candidates that may be evicted by a gang-aware action."""
        return self._victims(hooks.EVICTABLE, preemptor, candidates, purpose)

    def victim_tasks(self, candidates: Sequence[TaskState]) -> list[tuple[TaskState, str]]:
        """Return the candidates that leave their nodes for nobody in particular, each with the plugin that says so."""
        return self._ask(hooks.VICTIM_TASKS, candidates)

    def _victims(self, hook: Hook[combine.Choice, *Question], *question: *Question) -> list[TaskState]:
        rule = combine.victims_all_agree if self.policy.victim_rule == "all-agree" else hook.rule
        chosen, self._voters = rule(self._asked[hook.name], self, *question)
        if self.trace.level >= 4:
            note_votes(self.trace, hook.name, question, self._answers(hook, *question), chosen)
        return chosen

    def who_may_go(self, hook: str, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> list[TaskState]:
        """Return the candidates that a hook about victims lets go; asked when a search is over, so it is no step of the trace."""
        rule = combine.victims_all_agree if self.policy.victim_rule == "all-agree" else HOOKS[hook].rule
        choice: combine.Choice = rule(self._asked[hook], self, *_about_victims(hook, preemptor, candidates, purpose))
        return choice.victims

    def why_protected(self, hook: str, preemptor: TaskState, victims: Sequence[TaskState], purpose: str) -> Verdict:
        """Return what the first plugin says that does not let one of these tasks go; one that cannot say is named."""
        for method in combine.flat(self._asked[hook]):
            allowed = method(self, *_about_victims(hook, preemptor, victims, purpose))
            known = None if allowed is None else set(map(id, allowed))
            refused = None if known is None else next((task for task in victims if id(task) not in known), None)
            if refused is not None:
                name = method.__self__.name
                sayings = [ask for ask in combine.flat(self._asked[hooks.WHY_PROTECTED.name]) if ask.__self__ is method.__self__]
                says: Verdict = combine.first_refusal([sayings], self, preemptor, refused)
                return Verdict.refuse(name, "Protected", f"is protected by plugin {name}") if says.ok else says
        return Verdict.refuse("", "NobodyAsked", "stays, since no plugin of the configuration lets anybody go")

    def voters(self) -> list[str]:
        """Return the plugins that decided the last question about victims."""
        return [method.__self__.name for method in self._voters]

    def victim_queue_compare(self, left: str, right: str, preemptor: str) -> int:
        """Return which of two queues loses tasks first to the preemptor's queue; the one that is served last by default."""
        first, second = self.queues[left], self.queues[right]
        answer = self._ask(hooks.VICTIM_QUEUE_ORDER, first, second, self.queues[preemptor])
        return answer or (1 if self.queue_comes_first(first, second) else -1)

    def givers(self, preemptor: Queue) -> list[str]:
        """Return the queues that may lose tasks to the preemptor's queue, in the order in which they do."""
        others = (self.queues[name] for name in self.snapshot.totals if name in self.queues and name != preemptor.name)
        asked = ((self._ask(hooks.GIVING_ORDER, queue, preemptor), queue.name) for queue in others)
        return [name for _, name in sorted(entry for entry in asked if entry[0])]

    # --- nodes -----------------------------------------------------------------------------------------------------

    def couples_nodes(self, shape: Shape) -> bool:
        """Tell whether placing a task of this shape changes what other nodes look like to the next one."""
        return self._ask(node_hooks.COUPLES_NODES, shape)

    def coupled_filters(self, shape: Shape) -> list[CoupledFilter]:
        """Return what terms about other pods refuse to the shape."""
        return self._ask(node_hooks.COUPLED_FILTERS, shape) or []

    def coupled_scores(self, shape: Shape) -> list[CoupledScore]:
        """Return how terms about other pods score nodes for the shape."""
        return self._ask(node_hooks.COUPLED_SCORES, shape) or []

    def prefilter(self, task: TaskState) -> Verdict:
        """Ask for refusals that hold for every node."""
        task.is_prepared = True
        return self._ask(node_hooks.PREFILTER, task)

    def screen(self, shape: Shape, nodes: Index | slice) -> list[tuple[str, Sequence[Layer]]]:
        """Return each plugin's filters, with its name."""
        parts = [*self._unready(nodes), *self._ask(node_hooks.SCREEN, shape, nodes)]
        if self.policy.flags.sharding_mode == "hard":
            outside = ~self.shard_parts[0][nodes]
            parts.append(("shard", [Layer(outside, "node(s) are not in the shard of this scheduler", is_final=True)]))
        return parts

    def _unready(self, nodes: Index | slice) -> list[tuple[str, Sequence[Layer]]]:
        unready = self.snapshot.nodes.unready[nodes]
        is_asked = self.policy.refuses_unready_nodes and bool(unready.any())
        return [("node", [Layer(unready, UNREADY, is_final=True)])] if is_asked else []

    def task_screen(self, task: TaskState, nodes: Index | slice) -> list[Sequence[Layer]]:
        """Return the filters that depend on the task itself, plugin by plugin; empty when nobody has a say about it."""
        return self._ask(node_hooks.TASK_SCREEN, task, nodes)

    def avoided_nodes(self, gang: GangState) -> Mask | None:
        """Return the nodes that a gang leaves out while there are others; None when there is nothing to avoid."""
        return self._ask(node_hooks.AVOIDED_NODES, gang)

    def node_room(self, shape: Shape, nodes: Index | slice) -> Counts | int:
        """Return how many tasks each node may take beyond what resources allow."""
        room = self._ask(node_hooks.NODE_ROOM, shape, nodes)
        return NO_LIMIT if room is None else room

    def node_waits(self, shape: Shape) -> list[Mask]:
        """Return the nodes on which a task can only be pipelined, plugin by plugin."""
        return self._ask(node_hooks.NODE_WAITS, shape)

    def value(self, shape: Shape, site: Site) -> tuple[Valuation | None, list[Term]]:
        """Return the scores of the site and the terms that depend on the candidates; None when scoring failed."""
        size = len(self.ledger.pods[site.nodes])
        floats, terms = self._ask(node_hooks.NODE_SCORES, shape, site), self._ask(node_hooks.BATCH_SCORES, shape, site)
        if terms is None:
            return None, []
        valuation = Valuation(np.zeros(size) if floats is None else floats, np.zeros(size, dtype=np.int64))
        for term in terms:
            if term.values is not None:
                valuation.whole += term.values * term.weight
        return valuation, [term for term in terms if term.values is None]

    def task_scores(self, task: TaskState, candidates: Mask | None = None) -> Scores | None:
        """Return scores that depend on the task itself, to choose among some nodes or all; None when nobody has any."""
        if not self._asked[node_hooks.TASK_SCORES.name]:  # asked for every task, and few plugins have an answer
            return None
        return self._ask(node_hooks.TASK_SCORES, task, candidates)

    def scores_by_leaf(self, task: TaskState) -> bool:
        """Tell whether all scores that depend on a task are those of plugins which say that they score lowest HyperNodes."""
        found = self._ask(node_hooks.SCORES_BY_LEAF, task)
        says_so = dict(found)
        scoring = (answer.plugin for answer in self._answers(node_hooks.TASK_SCORES, task, None) if answer.value is not None)
        return all(says_so.get(plugin.name, False) for plugin in scoring)

    def placement_scores(self, task: TaskState, offered: Mask) -> Scores:
        """Return the scores of all nodes for one task that is offered some of them."""
        total = self._ask(node_hooks.PLACEMENT_SCORES, task, offered)
        return np.zeros(len(offered)) if total is None else total

    def keeps_order(self) -> bool:
        """Tell whether all plugins that score places say so by a true `keeps_order`; then equal tasks are placed in runs.

        The scores of such a plugin are whole tens, or all below ten. While equal tasks are placed on the best node, as long as it
        has room there as it had for the first, the other nodes keep their order and that one does not fall behind them.
        """
        scoring = combine.flat(self._asked[node_hooks.PLACEMENT_SCORES.name])
        return all(getattr(method.__self__, "keeps_order", False) for method in scoring)

    def scores_by_plugin(self, task: TaskState, candidates: Mask) -> dict[str, Scores]:
        """Return what each plugin gives to the nodes when these are the candidates of a task; for the trace."""
        shape, site, chosen = task.task.shape, Site(slice(None)), np.flatnonzero(candidates)
        plain = [*self._answers(node_hooks.NODE_SCORES, shape, site), *self._answers(node_hooks.TASK_SCORES, task, candidates)]
        parts = [(answer.plugin.name, answer.value) for answer in plain if answer.value is not None]
        for answer in self._answers(node_hooks.BATCH_SCORES, shape, site):
            parts.append((answer.plugin.name, _sum_of_terms(answer.value or (), chosen, len(candidates))))
        found: dict[str, Scores] = {}
        for name, scores in parts:
            found[name] = found.get(name, np.zeros(len(candidates))) + scores
        return found

    def placement_scores_by_plugin(self, task: TaskState, offered: Mask) -> dict[str, Scores]:
        """Return what each plugin gives to the nodes for one task that is offered some of them; for the trace."""
        return {answer.plugin.name: answer.value for answer in self._answers(node_hooks.PLACEMENT_SCORES, task, offered)}

    # --- network topology ------------------------------------------------------------------------------------------

    def hypernode_gradients(self, scope: Scope, root: int, purpose: str = "allocate") -> list[list[int]]:
        """Return the network domains to try, best group first."""
        gradients = self._ask(node_hooks.HYPERNODE_GRADIENTS, scope, root, purpose)
        return [[root]] if gradients is None else gradients

    def hypernode_scores(self, subgroup: SubGroupState, hypernodes: Sequence[int]) -> tuple[Scores, Scores]:
        """Return how well each domain suits the sub-group, and what to add to those that share the highest score."""
        scores = self._ask(node_hooks.HYPERNODE_SCORES, subgroup, hypernodes)
        return (np.zeros(len(hypernodes)), np.zeros(len(hypernodes))) if scores is None else scores

    def node_subsets(self, gang: GangState, subgroup: str, tasks: Sequence[TaskState], offered: Mask) -> list[NodeSubset]:
        """Return the sets of nodes to try for a part of a gang, best first."""
        subsets = self._ask(node_hooks.NODE_SUBSETS, gang, subgroup, tasks, offered)
        return [NodeSubset(offered)] if subsets is None else subsets


def _only_counts_members(tiers: Tiers[Any]) -> bool:
    methods = list(combine.flat(tiers))
    return len(methods) == 1 and getattr(methods[0].__self__, "counts_members", False)


def _about_victims(hook: str, preemptor: TaskState, candidates: Sequence[TaskState], purpose: str) -> tuple[Any, ...]:
    return (preemptor, candidates, purpose) if hook == hooks.EVICTABLE.name else (preemptor, candidates)


def _sum_of_terms(terms: Sequence[Term], candidates: Index, count: int) -> Scores:
    """Add up the scores of one plugin; a relative score is made for the candidates only."""
    total = np.zeros(count)
    for term in terms:
        if term.values is not None:
            total += term.values * term.weight
        elif term.among is not None:
            total[candidates] += term.among(candidates) * term.weight
    return total
