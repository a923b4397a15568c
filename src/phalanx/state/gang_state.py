"""What one session knows of a gang and its members beyond the nouns of the snapshot: statuses, counts, attempts.

The membership rules of all dialects are here and nowhere else: which members are valid, ready, pipelined, starving. Miscounted
members are what gang schedulers get wrong most often, each place that counts in its own way; so there is one set of statuses for
each question (`model/status.py`), and counts that are kept with every change of a status instead of being made anew.

The invariant: every count equals what counting the tasks would give. It holds because only `move` and `move_all` change a status.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from phalanx.model.gang import Gang, Quorum, SubGroup, TopologyConstraint
from phalanx.model.subgroup_tree import SubGroupTree
from phalanx.model.task import LONGEST_NAME, Task, TaskKey
from phalanx.model.task_status import HOLDING, READY, Status
from phalanx.state.quorum import as_members_say
from phalanx.state.verdict import FitError, Verdict


class TaskState:
    """A task in this session: where it stands now, and what the last attempt gave it."""

    __slots__ = (
        "attempt", "attempt_node", "error", "gang", "gpu_groups", "is_kept", "is_prepared", "node", "refusal", "status", "subgroup",
        "task",
    )  # fmt: skip

    def __init__(self, task: Task, gang: "GangState", node: int) -> None:
        """Start from the snapshot; `node` is the node's number or -1."""
        self.task, self.gang, self.status, self.node = task, gang, task.status, node
        self.subgroup: SubGroupState
        self.attempt: Status | None = None
        self.attempt_node = -1
        self.is_kept = False
        """It is pipelined onto room that is free already, kept for it until others of its gang have places too."""
        self.is_prepared = False
        """Its filters were prepared in this session: an action has tried to place it."""
        self.gpu_groups: list[tuple[str, bool]] = []
        """Shared devices that this session gave it, and whether each was opened for it."""
        self.error: FitError | str | None = None
        """Why no node took it."""
        self.refusal: Verdict | None = None
        """Why its queue had no room for it."""

    @property
    def is_backfilled(self) -> bool:
        """Tell whether it is left to `backfill` and counts before it has a place: the one rule for members without requests."""
        return self.gang.counts_unplaced and self.task.shape.is_best_effort

    @property
    def is_evicted(self) -> bool:
        """Tell whether this session asks it to leave; one that was leaving before is not meant."""
        return self.status is Status.RELEASING and self.task.status is not Status.RELEASING

    @property
    def had_place(self) -> bool:
        """Tell whether it waits although an attempt gave it a place: given back because the gang was not whole."""
        return self.status is Status.PENDING and self.attempt in HOLDING

    def remember_attempt(self) -> None:
        """Keep what is about to be undone, for the message to the user."""
        self.attempt, self.attempt_node = self.status, self.node


_IS_READY = [status in READY for status in Status]


class Tally:
    """How many members are in which status."""

    __slots__ = ("counts", "pending_best_effort", "ready")

    def __init__(self) -> None:
        """Start with nobody."""
        self.counts = [0] * len(_IS_READY)
        self.ready = 0
        """Members that count towards the minimum for good; kept, because every gang is asked for it again and again."""
        self.pending_best_effort = 0
        """Members that wait and count all the same, because `backfill` places them later; none where all are placed together."""

    def add(self, status: Status, is_backfilled: bool, amount: int = 1) -> None:
        """Count `amount` more members in this status."""
        self.counts[status] += amount
        if _IS_READY[status]:
            self.ready += amount
        if is_backfilled and status is Status.PENDING:
            self.pending_best_effort += amount

    def total(self, statuses: Iterable[Status]) -> int:
        """Count the members in any of these statuses."""
        counts, found = self.counts, 0
        for status in statuses:
            found += counts[status]
        return found

    @property
    def pipelined(self) -> int:
        """Members that are pipelined: they have a place once others have left."""
        return self.counts[Status.PIPELINED]

    @property
    def valid(self) -> int:
        """Members that could still make a gang whole: those that count, are pipelined or wait."""
        return self.ready + self.counts[Status.PIPELINED] + self.counts[Status.PENDING]

    def is_ready(self, minimum: int) -> bool:
        """Tell whether the minimum is met now."""
        return self.ready + self.pending_best_effort >= minimum

    def is_pipelined(self, minimum: int) -> bool:
        """Tell whether the minimum is met, counting pipelined members."""
        return self.pipelined + self.ready + self.pending_best_effort >= minimum


class SubGroupState:
    """A sub-group in this session. A gang without sub-groups has exactly one, for all its tasks."""

    __slots__ = (
        "allocated_hypernode", "allowed_tier", "gang", "id", "is_default", "min_member", "nominated_hypernode",
        "occupied_hypernode", "ordinal", "policy", "tally", "tasks", "topology",
    )  # fmt: skip

    def __init__(self, gang: "GangState", identity: str, policy: SubGroup | None, values: Sequence[str] = ()) -> None:
        """Make the sub-group of a policy and its label values, or the default one."""
        noun = gang.gang
        self.gang, self.id, self.policy = gang, identity, policy
        self.is_default = policy is None
        self.min_member = policy.min_member if policy else (1 if noun.subgroups else noun.min_member)
        self.topology: TopologyConstraint | None = policy.topology if policy else noun.topology
        self.ordinal = int(values[0]) if values and values[0].isdecimal() and len(values[0]) <= LONGEST_NAME else 0
        self.tally = Tally() if noun.subgroups else gang.tally
        self.tasks: list[TaskState] = []
        self.allowed_tier: int | None = None
        """The widest network tier its tasks may span; None without a constraint."""
        self.allocated_hypernode = ""
        self.occupied_hypernode = ""
        """The lowest HyperNode that holds what is allocated and the places that the attempt under way has found; else empty."""
        self.nominated_hypernode = ""

    @property
    def is_ready(self) -> bool:
        """Tell whether its own minimum is met now."""
        return self.tally.is_ready(self.min_member)

    @property
    def is_pipelined(self) -> bool:
        """Tell whether its own minimum is met, counting pipelined members."""
        return self.tally.is_pipelined(self.min_member)

    def shortfall(self) -> int:
        """Return how many more tasks it needs to be ready."""
        return max(self.min_member - self.tally.ready - self.tally.pending_best_effort, 0)


class GangState:
    """A gang in this session."""

    __slots__ = (
        "_by_key", "allocated_hypernode", "allowed_tier", "counts_unplaced", "declared", "error", "gang", "no_victims", "phase",
        "role_tallies", "subgroups", "tally", "tasks", "topology", "tree", "verdicts", "version",
    )  # fmt: skip

    def __init__(self, gang: Gang, tasks: Iterable[tuple[Task, int]], *, counts_unplaced: bool = False) -> None:
        """Count the members of the snapshot; each comes with the number of its node or -1.

        With `counts_unplaced` members without requests count before they have a place (`Policy.best_effort_members`).
        """
        members = list(tasks)
        self.counts_unplaced = counts_unplaced
        self.declared = gang
        """The gang as its objects say; `gang` has the minima that hold for its members."""
        self.gang = gang = as_members_say(gang, members)
        self.phase = gang.phase
        self.topology = gang.topology
        self.allowed_tier: int | None = None
        """The widest network tier the gang may span; None without a constraint."""
        self.allocated_hypernode = gang.allocated_hypernode
        self.tally = Tally()
        self.role_tallies: dict[str, Tally] = {role: Tally() for role in gang.role_minima}
        self.subgroups: dict[str, SubGroupState] = {}
        self.tree = SubGroupTree.of(gang.subgroups, gang.min_children) if gang.subgroups else None
        self.tasks: list[TaskState] = []
        self._by_key: dict[TaskKey, TaskState] | None = None
        self.version = 0
        """A number for the statuses of its members: it grows with every change."""
        self.error = ""
        self.verdicts: list[Verdict] = []
        self.no_victims: list[Verdict] = []
        """Why actions that evict made no room for it, one verdict of each; the cause is among the numbers."""
        if gang.subgroups or gang.role_minima:
            for task, node in members:
                self._join(TaskState(task, self, node))
        elif members:
            self._join_all(members)

    def _join_all(self, members: list[tuple[Task, int]]) -> None:
        """Enter members that all count alike: there are no roles and no sub-groups."""
        # Most gangs are like this, and every session makes the state of all active ones: it pays to count without `_count`.
        self.tasks = [TaskState(task, self, node) for task, node in members]
        subgroup, counts = self._subgroup(self.gang.key, None), self.tally.counts
        subgroup.tasks = list(self.tasks)
        for state in self.tasks:
            state.subgroup = subgroup
            counts[state.status] += 1
            if self.counts_unplaced and state.status is Status.PENDING and state.task.shape.is_best_effort:
                self.tally.pending_best_effort += 1
        if counts[Status.PENDING] < len(members):
            self.tally.ready = self.tally.total(READY)

    def _join(self, state: TaskState) -> None:
        self.tasks.append(state)
        subgroup = self._subgroup_of(state.task)
        subgroup.tasks.append(state)
        state.subgroup = subgroup
        self._count(state, 1)

    def _subgroup_of(self, task: Task) -> SubGroupState:
        for policy in self.gang.subgroups:
            values = policy.instance(task.labels)
            if values is not None:
                return self._subgroup(f"{self.gang.key}/{policy.name}-{'-'.join(values)}", policy, values)
        return self._subgroup(self.gang.key, None)

    def _subgroup(self, identity: str, policy: SubGroup | None, values: Sequence[str] = ()) -> SubGroupState:
        if identity not in self.subgroups:
            self.subgroups[identity] = SubGroupState(self, identity, policy, values)
        return self.subgroups[identity]

    def move(self, state: TaskState, status: Status) -> None:
        """Change the status of a member, keeping every count right."""
        self.version += 1
        self._count(state, -1)
        state.status = status
        self._count(state, 1)

    def move_all(self, states: Sequence[TaskState], status: Status) -> None:
        """Change the status of members of one shape, all at once where one count covers them."""
        before = states[0].status
        is_mixed = len(states) > 1 and any(state.status is not before for state in states)
        if is_mixed or self.role_tallies or self.gang.subgroups:
            for state in states:
                self.move(state, status)
            return
        self.version += 1
        is_backfilled = states[0].is_backfilled
        self.tally.add(before, is_backfilled, -len(states))
        self.tally.add(status, is_backfilled, len(states))
        for state in states:
            state.status = status

    def _count(self, state: TaskState, amount: int) -> None:
        is_backfilled = state.is_backfilled
        self.tally.add(state.status, is_backfilled, amount)
        if state.subgroup.tally is not self.tally:
            state.subgroup.tally.add(state.status, is_backfilled, amount)
        role = self.role_tallies.get(state.task.role)
        if role is not None:
            role.add(state.status, is_backfilled, amount)

    def task(self, key: TaskKey) -> TaskState | None:
        """Return the member of this key."""
        if self._by_key is None:
            self._by_key = {state.task.key: state for state in self.tasks}
        return self._by_key.get(key)

    @property
    def key(self) -> str:
        """The key of the gang."""
        return self.gang.key

    @property
    def has_subgroups(self) -> bool:
        """Tell whether the group object names sub-groups."""
        return bool(self.gang.subgroups)

    @property
    def is_ready(self) -> bool:
        """Tell whether the gang's own minimum is met now."""
        return self.tally.is_ready(self.gang.min_member)

    @property
    def is_pipelined(self) -> bool:
        """Tell whether the gang's own minimum is met, counting pipelined members."""
        return self.tally.is_pipelined(self.gang.min_member)

    @property
    def is_starving(self) -> bool:
        """Tell whether the minimum is not met, counting pipelined members; those that `backfill` places later do not count here."""
        return self.tally.pipelined + self.tally.ready < self.gang.min_member

    @property
    def valid(self) -> int:
        """How many members could still make the gang whole."""
        return self.tally.valid

    def roles_are_valid(self) -> bool:
        """Tell whether each role has enough members that could start."""
        return not self.gang.roles_count or self._roles_have(lambda tally: tally.valid)

    def roles_are_ready(self) -> bool:
        """Tell whether each role's minimum is met now."""
        return not self.gang.roles_count or self._roles_have(lambda tally: tally.total(READY) + tally.pending_best_effort)

    def roles_are_pipelined(self) -> bool:
        """Tell whether each role's minimum is met, counting pipelined members."""
        return not self.gang.roles_count or self._roles_have(_placed_or_pipelined)

    def _roles_have(self, count: Callable[[Tally], int]) -> bool:
        return all(count(self.role_tallies[role]) >= minimum for role, minimum in self.gang.role_minima.items())

    def gap(self) -> int:
        """Count the members that its minima need and that are neither placed nor pipelined."""
        roles = self.gang.role_minima if self.gang.roles_count else {}
        parts = sum(max(minimum - _placed_or_pipelined(self.role_tallies[role]), 0) for role, minimum in roles.items())
        return max(self.gang.min_member - _placed_or_pipelined(self.tally), parts, 0)

    def starts_enough(self, statuses: Iterable[Status]) -> bool:
        """Tell whether enough members that had no place before are in these statuses; asked only where no others count."""
        if self.gang.quorum is not Quorum.FRESH:
            return True
        fresh = Counter(state.task.role for state in self.tasks if _is_fresh(state, statuses))
        roles = self.gang.role_minima if self.gang.roles_count else {}
        return fresh.total() >= self.gang.min_member and all(fresh[role] >= minimum for role, minimum in roles.items())

    def subgroups_are_valid(self) -> bool:
        """Tell whether each template has enough sub-groups with a task that could start; how many tasks is not asked here."""
        return self.tree is None or self._templates_have(lambda subgroup: subgroup.tally.valid > 0)

    def subgroups_are_ready(self) -> bool:
        """Tell whether each template has enough sub-groups that are ready."""
        return self._templates_have(lambda subgroup: subgroup.is_ready)

    def subgroups_are_pipelined(self) -> bool:
        """Tell whether each template has enough sub-groups that are ready, counting pipelined members."""
        return self._templates_have(lambda subgroup: subgroup.is_pipelined)

    def _templates_have(self, test: Callable[[SubGroupState], bool]) -> bool:
        return self.tree is None or self.tree.is_met(lambda policy: self._template_has(policy, test))

    def missing_policies(self, test: Callable[[SubGroupState], bool]) -> list[SubGroup]:
        """Return the policies of which the gang needs more sub-groups that pass a test; where it can choose, those begun first."""
        if self.tree is None:
            return []
        has, has_begun = partial(self._template_has, test=test), partial(self._template_has, test=_has_begun)
        return self.tree.missing(has, has_begun, lambda policy: 0)  # as the group object lists them

    def _template_has(self, policy: SubGroup, test: Callable[[SubGroupState], bool]) -> bool:
        """Tell whether enough sub-groups of a template, or the one of a fixed sub-group, pass a test."""
        if policy.min_subgroups <= 0:
            return True
        count = sum(1 for subgroup in self.subgroups.values() if subgroup.policy is policy and test(subgroup))
        return count >= policy.min_subgroups

    def shortfall(self, role: str) -> int:
        """Return how many more tasks of this role must be placed, at the least, before the gang can be ready.

        Zero means it may be ready already. The answer is a lower bound: other roles or sub-groups may need more.
        """
        missing = self.gang.min_member - self.tally.ready - self.tally.pending_best_effort
        if self.gang.roles_count:
            tallies = self.role_tallies
            for name, minimum in self.gang.role_minima.items():
                short = minimum - tallies[name].total(READY) - tallies[name].pending_best_effort
                # Another role is short: tasks of this one alone never make the gang ready, so nobody needs to ask in between.
                if short > 0 and name != role:
                    return max(missing, len(self.tasks))
                missing = max(missing, short)
        return max(missing, 0)

    def is_ready_with(self, count: int) -> bool:
        """Tell whether the gang is ready once so many more of its tasks are placed, whichever they are, and not before."""
        return self._lack() == count

    def lacks(self, count: int) -> bool:
        """Tell whether the gang needs at least so many more of its tasks placed, whichever they are; False where roles count."""
        lack = self._lack()
        return lack is not None and lack >= count

    def _lack(self) -> int | None:
        """Return how many more tasks make the gang ready, whichever they are; None where that is not all that counts."""
        gang, tally = self.gang, self.tally
        if gang.roles_count or gang.subgroups or gang.quorum is Quorum.FRESH:
            return None
        return gang.min_member - tally.ready - tally.pending_best_effort

    def may_continue_without(self, failed_roles: set[str], subgroup: SubGroupState) -> bool:
        """Tell whether the gang can still be ready although a task of these roles found no node.

        Otherwise the other tasks need not be tried. A gang with sub-groups is always tried to its end, as in Volcano.
        """
        gang = self.gang
        if gang.min_member == len(self.tasks) or subgroup.min_member >= len(subgroup.tasks):
            return False
        if self.has_subgroups:
            return True
        if gang.min_member < sum(gang.role_minima.values()):
            hopeful = sum(1 for state in self.tasks if state.status is Status.PENDING and state.task.role not in failed_roles)
            return self.tally.ready + hopeful >= gang.min_member
        return all(
            self.role_tallies[role].total(HOLDING) >= gang.role_minima.get(role, 0)
            for role in failed_roles
            if role in self.role_tallies
        )


def _has_begun(subgroup: SubGroupState) -> bool:
    return subgroup.tally.total(HOLDING) > 0


def _placed_or_pipelined(tally: Tally) -> int:
    return tally.ready + tally.pipelined + tally.pending_best_effort


def _is_fresh(state: TaskState, statuses: Iterable[Status]) -> bool:
    """Tell whether a member began the session without a place and has one of these statuses, or counts without."""
    if state.task.status is not Status.PENDING:
        return False
    return state.status in statuses or (state.is_backfilled and not state.task.is_gated)
