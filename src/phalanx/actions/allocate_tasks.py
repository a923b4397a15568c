"""The task loop: place the waiting tasks of a sub-group in order, until its gang needs no more.

Runs of identical tasks are placed together. A run ends where something must be asked again: the gang may be ready, the
queue may be full, or no node is left. The result is that of placing the tasks one by one, which properties check; asking plugins,
filters and scores once for a run and not once for a task is most of what makes a session fast.

The oddities of Volcano's loop are here too, each where it is decided: a role of which one task found no node is skipped
(`_failed_roles`), and nodes that refused a task of a role are not asked for the next one (`_Refusals`).
"""

from collections import Counter
from itertools import islice, takewhile

from phalanx.actions.leaf_runs import leaf_run
from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.model.task import Task
from phalanx.placement import Mask
from phalanx.session.node_view import NodeView
from phalanx.session.plugin_trace import note_filters, note_scores
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.task_filters import OwnFilters, has_own_filters, own_filters
from phalanx.session.task_order import pending_tasks
from phalanx.session.trace_events import (
    GangNotReady,
    TaskRefused,
    TaskSkipped,
    TasksTried,
    TaskWithoutNode,
    TaskWithoutQuota,
    scope_text,
)
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import WHOLE_CLUSTER, FitError, SearchScope, Verdict, joined

NO_LEAF = -1


class TaskPlacer:
    """Works through the tasks of gangs; a task that was tried is not tried again in this session."""

    def __init__(self, session: Session, *, remembers_failed_roles: bool = True) -> None:
        """Prepare for one run of an action; every waiting task counts as untried."""
        self._session = session
        self._remembers_failed_roles = remembers_failed_roles
        self._left: dict[str, list[TaskState]] = {}

    def tasks_left(self, subgroup: SubGroupState) -> list[TaskState]:
        """Return the tasks still to try, the next one last."""
        known = self._left.get(subgroup.id)
        if known is None:
            waiting = [task for task in pending_tasks(subgroup.tasks) if not task.is_backfilled]
            known = self._left[subgroup.id] = waiting if len(waiting) < 2 else self._in_order(waiting)
        return known

    def _in_order(self, tasks: list[TaskState]) -> list[TaskState]:
        """Return tasks in the order of trying, the next one last."""
        # Members without requests take no room, so they lose nothing by coming last; and if no node takes one of them, the
        # others have been tried, and `why` says truly how many fit.
        in_order = self._session.sorted_tasks(tasks)[::-1]
        last = [task for task in in_order if task.task.shape.is_best_effort]
        return last + [task for task in in_order if not task.task.shape.is_best_effort]

    def restore(self, subgroup: SubGroupState, tasks: list[TaskState]) -> None:
        """Set the tasks still to try, as they were before a dry run."""
        self._left[subgroup.id] = tasks

    def has_tasks_left(self, gang: GangState) -> bool:
        """Tell whether some task of the gang was not tried yet."""
        return any(self.tasks_left(subgroup) for subgroup in gang.subgroups.values())

    def place(
        self,
        subgroup: SubGroupState,
        queue: Queue,
        *,
        within: Mask | None = None,
        scope: SearchScope = WHOLE_CLUSTER,
        is_dry_run: bool = False,
    ) -> Statement | None:
        """Place tasks until the sub-group needs no more; None when it got too few, and nothing is left of the attempt.

        What a dry run places is undone by the caller in any case.
        """
        session, run = self._session, _TaskRun(self._session, subgroup, queue, within, scope, self._remembers_failed_roles)
        statement = session.dry_run() if is_dry_run else session.statement()
        run.is_dry_run = is_dry_run
        tasks = self.tasks_left(subgroup)
        subgroup.occupied_hypernode = subgroup.allocated_hypernode
        while tasks and run.goes_on:
            run.step(tasks, statement)
        subgroup.occupied_hypernode = ""
        if run.is_ready or session.subgroup_ready(subgroup) or session.subgroup_pipelined(subgroup) or run.keeps_places():
            return statement
        reason = session.gang_ready(subgroup.gang).message if session.trace.level >= 3 else ""
        placed = subgroup.tally.ready + subgroup.tally.pipelined
        statement.discard()
        part, needed = "" if subgroup.policy is None else subgroup.policy.name, subgroup.min_member or len(subgroup.tasks)
        session.trace.note(GangNotReady, subgroup.gang.key, scope_text(scope), reason, run.last_error, part, placed, needed)
        return None


class _TaskRun:
    """One pass over the tasks of a sub-group."""

    def __init__(
        self, session: Session, subgroup: SubGroupState, queue: Queue, within: Mask | None, scope: SearchScope, remembers: bool
    ) -> None:
        self._session, self._subgroup, self._queue = session, subgroup, queue
        self._within, self._scope, self._remembers = within, scope, remembers
        self._failed_roles: set[str] = set()
        self._refusals: dict[str, _Refusals] = {}
        self._tolerated_gap = session.tolerated_gap(subgroup.gang)
        self._leaf = NO_LEAF
        """The lowest HyperNode that took the last task."""
        self._run: list[int] = []
        """The nodes of the next batch, where they are known already."""
        self._is_free = False
        """Only its class decides where the next batch goes: no other pods, no filters, scores or nominated nodes of one task."""
        self._followed: tuple[list[int], list[int]] | None = None
        """The same for a batch that other pods matter to: the nodes to take now, and those to take later."""
        self._one_by_one: set[Shape] = set()
        """Shapes of which no run was whole: who refuses in the middle of a run is only told task by task."""
        self.goes_on = True
        self.is_ready = False
        """The last task that was placed made the sub-group ready."""
        self.is_dry_run = False
        """Whether the trace marks its steps as those of a trial."""
        self.last_error = ""
        """What stopped the last task that failed, for the trace."""

    def keeps_places(self) -> bool:
        """Tell whether the gang keeps what it found although it is not whole."""
        return self._tolerated_gap is not None and self._subgroup.gang.gap() <= self._tolerated_gap

    def step(self, tasks: list[TaskState], statement: Statement) -> None:
        """Take the next task, or the next run of identical ones, and place it."""
        first = tasks[-1]
        room = self._session.queue_room(self._queue, first.task.shape)
        if room.tasks <= 0:
            self._refuse_alike(tasks, room.verdict)
            return
        if self._remembers and first.task.role and first.task.role in self._failed_roles:
            self._skip(tasks.pop())
            return
        verdict = self._session.prefilter(first)
        if not verdict.ok:
            self._session.trace.note(TaskRefused, first.gang.key, first.task.key, verdict.plugin, verdict.message)
            self._fail(tasks.pop(), FitError.same_everywhere(self._node_count(), verdict))
            return
        batch = self._take_batch(tasks, room.tasks)
        self._place_batch(batch, tasks, statement)

    def _take_batch(self, tasks: list[TaskState], limit: int) -> list[TaskState]:
        """Pop the tasks that can be placed before anything has to be asked again."""
        first = tasks.pop()
        self._is_free = False
        if first.task.nominated_node or not self._is_alone(first):
            return [first]
        # No more than the gang needs: the task that makes it ready ends the attempt, and what is beyond waits for its turn.
        needed = self._session.ready_in(self._subgroup, first.task.role)
        limit, is_local = min(limit, needed), self._session.is_local(first.task.shape)
        if self._session.task_scores(first, self._within) is not None:
            self._run = self._leaf_run(first, tasks, limit) if is_local else []
            limit = max(len(self._run), 1)
        elif is_local:
            self._is_free = True
        elif limit > 1 and not self._session.node_view(first.task.shape).is_steady:
            limit = self._follow(first, 1 + _alike(first, tasks, limit - 1), needed)
        batch = [first]
        while tasks and len(batch) < limit and is_same_class(first.task, tasks[-1].task):
            batch.append(tasks.pop())
        return batch

    def _is_alone(self, task: TaskState) -> bool:
        """Tell whether nothing but places of its own class changes anything between two tasks like this one."""
        if has_own_filters(self._session, task):
            return False
        return self._session.is_local(task.task.shape) or self._session.node_view(task.task.shape).has_runs

    def _follow(self, first: TaskState, count: int, needed: int) -> int:
        """Choose places for a run whose places matter to those after them; return how many tasks it takes, at least one.

        With nodes that are closed when they refuse a task, the run stands only if it ends the attempt: nobody asks later who
        refused, and why.
        """
        shape = first.task.shape
        if count == 1 or shape in self._one_by_one:
            return 1
        node_view, closes = self._session.node_view(shape), self._closes_nodes(first)
        within = self._refusals_of(first).open_nodes(node_view, closes=False) if closes else self._within
        now, later = node_view.place(count, within=within, closes=closes)
        if closes and not len(now) == count == needed:
            self._one_by_one.add(shape)
            return 1
        if now or later:
            self._followed = now, later
        return max(len(now) + len(later), 1)

    def _leaf_run(self, first: TaskState, tasks: list[TaskState], limit: int) -> list[int]:
        """Return nodes for a run of tasks in the lowest HyperNode where the last one went; none where there is no such run."""
        tree = self._session.snapshot.hypernodes
        if self._leaf in (NO_LEAF, tree.top) or limit < 2 or not self._session.scores_by_leaf(first):
            return []
        node_view, leaf = self._session.node_view(first.task.shape), tree.leaves == self._leaf
        is_now, candidates = self._first_group(first, node_view)
        room = int(node_view.room(is_now=is_now)[candidates & leaf].sum())
        count = 1 + _alike(first, tasks, room)
        extra = self._session.task_scores(first, candidates)
        if room < 2 or count < 2 or extra is None:
            return []
        return leaf_run(node_view, leaf, min(count, room, limit), candidates=candidates, is_now=is_now, extra=extra)

    def _first_group(self, task: TaskState, node_view: NodeView) -> tuple[bool, Mask]:
        """Return the best nodes that could take a task: those with room now, if there are any."""
        groups = node_view.groups(within=self._not_refused(task, node_view))
        return next((group for group in groups if group[1].any()), groups[-1])

    def _place_batch(self, batch: list[TaskState], tasks: list[TaskState], statement: Statement) -> None:
        if self._session.trace.level >= 3:
            self._note_class(batch)
        room = self._room_in_vain(batch)
        if room is not None:
            self._give_up(batch, tasks, room)
            return
        is_steady = self._is_steady_among_pods(batch[0])
        now, later = self._choose(batch)
        statement.allocate(batch[: len(now)], now)
        statement.pipeline(batch[len(now) : len(now) + len(later)], later)
        self._occupy(now + later)
        placed = len(now) + len(later)
        if placed and (refusals := self._refusals.get(batch[0].task.role)):
            refusals.last_taken = [*now, *later][-1]
        if placed < len(batch):
            self._give_up(batch, tasks, placed)
            return
        for task in batch:
            task.is_prepared = True
        if self._session.subgroup_ready(self._subgroup):
            self.goes_on, self.is_ready = False, True
        elif is_steady:
            self._close_behind(batch[0])

    def _give_up(self, batch: list[TaskState], tasks: list[TaskState], placed: int) -> None:
        """Record that the first task without a node failed; those behind it are untried, and the next step decides about them."""
        for task in batch[: placed + 1]:
            task.is_prepared = True
        tasks.extend(reversed(batch[placed + 1 :]))
        self._record_no_node(batch[placed])

    def _room_in_vain(self, batch: list[TaskState]) -> int | None:
        """Return for how many tasks of a batch there is room, if the attempt fails for that and nobody reads which nodes it is on.

        Which nodes are best need not be found out then. On a full cluster most attempts are like this.
        """
        session, gang, first = self._session, self._subgroup.gang, batch[0]
        if session.policy.says_why or session.trace.level or not self._is_free or self._tolerated_gap is not None:
            return None
        failed = {*self._failed_roles, first.task.role}
        if not session.is_nothing_below(gang, len(batch)) or gang.may_continue_without(failed, self._subgroup):
            return None
        node_view = session.node_view(first.task.shape)
        room = int(node_view.room(is_now=False).sum())
        return room if room < len(batch) and self._not_refused(first, node_view) is None else None

    def _is_steady_among_pods(self, task: TaskState) -> bool:
        """Tell whether other pods matter to a task, but not those that are placed in one run with it."""
        return not self._session.is_local(task.task.shape) and self._session.node_view(task.task.shape).is_steady

    def _close_behind(self, task: TaskState) -> None:
        """Close the nodes that refused tasks of a run that other pods matter to, before such pods are placed."""
        if refusals := self._refusals.get(task.task.role):
            refusals.close(self._session.known_view(task.task.shape), spared=refusals.last_taken)

    def _occupy(self, nodes: list[int]) -> None:
        """Note the HyperNode that holds the places found so far: the next tasks are to be near them."""
        tree = self._session.snapshot.hypernodes
        if self._subgroup.topology is None or tree.is_empty:
            return
        self._leaf = int(tree.leaves[nodes[-1]]) if nodes else NO_LEAF
        for leaf in {tree.leaves[node] for node in nodes} - {tree.top}:
            self._subgroup.occupied_hypernode = tree.widen(self._subgroup.occupied_hypernode, leaf)

    def _note_class(self, batch: list[TaskState]) -> None:
        """Record the task that is tried and how the nodes look to its class: what the filters refuse, what the best score."""
        trace, gang, key = self._session.trace, batch[0].gang.key, batch[0].task.key
        trace.note(TasksTried, gang, key, len(batch), self._node_count(), is_trial=self.is_dry_run)
        if not trace.wants(5, gang):
            return
        feasible = self._session.node_view(batch[0].task.shape).feasible
        fitting = feasible if self._within is None else feasible & self._within
        note_filters(self._session, batch[0], fitting, self._within)
        note_scores(self._session, batch[0], fitting, self._session.scores_by_plugin(batch[0], fitting))

    def _choose(self, batch: list[TaskState]) -> tuple[list[int], list[int]]:
        first, run, followed = batch[0], self._run, self._followed
        self._run, self._followed = [], None
        if followed is not None:
            return followed
        if self._is_free:
            node_view = self._session.known_view(first.task.shape)
            if self._not_refused(first, node_view) is None:
                return node_view.place_next(len(batch))
        node_view = self._session.node_view(first.task.shape)
        if run:
            return (run, []) if self._first_group(first, node_view)[0] else ([], run)
        own = self._own_filters(first, node_view)
        nominated = self._nominated(first, own)
        if nominated is not None:
            return nominated
        within = own.narrow(self._not_refused(first, node_view))
        if self._session.task_scores(first, self._within) is None:
            return node_view.place(len(batch), within=within)
        for is_now, mask in node_view.groups(within=within):
            if mask.any():
                node = node_view.best(mask, extra=self._session.task_scores(first, mask))
                chosen = [] if node is None else [node]
                return (chosen, []) if is_now else ([], chosen)
        return [], []

    def _own_filters(self, task: TaskState, node_view: NodeView) -> OwnFilters:
        return own_filters(self._session, task, node_view.feasible if self._within is None else node_view.feasible & self._within)

    def _not_refused(self, task: TaskState, node_view: NodeView) -> Mask | None:
        """Leave out nodes that refused another task of the same role before, and remember those that refuse this one."""
        return self._refusals_of(task).open_nodes(node_view) if self._closes_nodes(task) else self._within

    def _closes_nodes(self, task: TaskState) -> bool:
        return bool(task.task.role) and self._remembers

    def _refusals_of(self, task: TaskState) -> "_Refusals":
        return self._refusals.setdefault(task.task.role, _Refusals(self._within, len(self._session.snapshot.nodes)))

    def _nominated(self, task: TaskState, own: OwnFilters) -> tuple[list[int], list[int]] | None:
        """Return the nominated node alone if the task may go there."""
        number = self._session.snapshot.nodes.number_by_name.get(task.task.nominated_node)
        if number is None or (self._within is not None and not self._within[number]):
            return None
        for is_now, mask in self._session.node_view(task.task.shape).groups(within=own.narrow(self._within)):
            if mask[number]:
                return ([number], []) if is_now else ([], [number])
        return None

    def _record_no_node(self, task: TaskState) -> None:
        node_view = self._session.node_view(task.task.shape)
        within, own = self._not_refused(task, node_view), self._own_filters(task, node_view)
        # As in Volcano a node that cannot be scored, because of an invalid preference, takes no task and gives no reason.
        if node_view.scoring_failed and any(mask.any() for _, mask in node_view.groups(within=own.narrow(within))):
            return
        refusals = self._refusals.get(task.task.role)
        if refusals:
            self._fail(task, refusals.error(node_view, self._scope, own))
        else:
            self._fail(task, node_view.error(within=within, scope=self._scope, own=own.layers))

    def _fail(self, task: TaskState, error: FitError) -> None:
        task.error = error
        self._failed_roles.add(task.task.role)
        if self._session.trace.level >= 3:
            self.last_error = f"task {task.task.key}: {error.text}"
            self._session.trace.note(TaskWithoutNode, task.gang.key, task.task.key, error.text, is_trial=self.is_dry_run)
        is_hopeful = self._subgroup.gang.may_continue_without(self._failed_roles, self._subgroup)
        self.goes_on = is_hopeful or self._tolerated_gap is not None

    def _skip(self, task: TaskState) -> None:
        role = task.task.role
        task.error = f"Task {task.task.name} with role spec {role} has already predicated failed, skip"
        self._session.trace.note(TaskSkipped, task.gang.key, task.task.key, task.error)

    def _refuse_alike(self, tasks: list[TaskState], verdict: Verdict) -> None:
        """Refuse the next task and all behind it that ask for the same: nothing changes in between."""
        shape = tasks[-1].task.shape
        while tasks and tasks[-1].task.shape is shape:
            self._refuse(tasks.pop(), verdict)

    def _refuse(self, task: TaskState, verdict: Verdict) -> None:
        self._subgroup.gang.verdicts.append(verdict)
        task.refusal = verdict
        if self._session.trace.level >= 3:
            self.last_error = f"task {task.task.key}: {verdict.message}"
            self._session.trace.note(TaskWithoutQuota, task.gang.key, task.task.key, verdict.plugin, verdict.message)

    def _node_count(self) -> int:
        return len(self._session.snapshot.nodes) if self._within is None else int(self._within.sum())


class _Refusals:
    """Nodes that refused a task of a role. Tasks of one role are taken to be alike, so these nodes are not asked again in this
    attempt, even if they would take a later one.
    """

    def __init__(self, within: Mask | None, nodes: int) -> None:
        self._open, self._nodes = within, nodes if within is None else int(within.sum())
        self._counts: Counter[str] = Counter()
        self._masks: dict[str, Mask] = {}
        self._final: Mask | None = None
        self._latest: NodeView | None = None
        self.last_taken: int | None = None
        """The node of the last task that was placed: it did not refuse that one, whatever it says now."""

    def open_nodes(self, node_view: NodeView, *, closes: bool = True) -> Mask | None:
        """Return the nodes still open to the role, None for all, and close those that refuse this shape.

        As long as all tasks have one shape and nodes only fill up, a node that refuses now refuses later too, and closing it would
        change nothing: it is left out until a second shape of the role comes.
        """
        latest, self._latest = self._latest, node_view
        if latest is not None and latest is not node_view and latest.is_local:
            self.close(latest, spared=self.last_taken)
        if closes and (not node_view.is_steady or latest not in (None, node_view)):
            self.close(node_view)
        return self._open

    def close(self, node_view: NodeView, *, spared: int | None = None) -> None:
        """Close the nodes that refuse the shape, but for one."""
        node_view.refresh()
        refusing = ~node_view.feasible if self._open is None else self._open & ~node_view.feasible
        if spared is not None:
            refusing[spared] = False
        if refusing.any():
            error = node_view.error(within=refusing)
            self._counts.update(error.counts)
            self._masks = joined(self._masks, error.refused)
            self._final = _either(self._final, error.final)
            self._open = ~refusing if self._open is None else self._open & ~refusing

    def error(self, node_view: NodeView, scope: SearchScope, own: OwnFilters) -> FitError:
        """Say why no node fits, those that refused before included."""
        rest = node_view.error(within=self._open, scope=scope, own=own.layers)
        final = _either(self._final, rest.final)
        return FitError(self._nodes, self._counts + Counter(rest.counts), scope, final, refused=joined(self._masks, rest.refused))


def _either(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right


def _alike(first: TaskState, tasks: list[TaskState], most: int) -> int:
    """Count the next tasks that are like this one, up to a number."""
    return sum(1 for _ in takewhile(lambda task: is_same_class(first.task, task.task), islice(reversed(tasks), most)))


def is_same_class(left: Task, right: Task) -> bool:
    """Tell whether the right one of two tasks of a gang can be placed in one run with the left one."""
    return left.shape is right.shape and left.role == right.role and not right.nominated_node
