"""Which tasks of other queues a queue may reclaim: one after the other, each as if those before it had gone.

Most that follow each other belong to one queue and ask for the same. They are a run, and one question tells how many of it may go:
what their queue has left only falls while they do, so the first that has to stay is followed by others that have to.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest

import numpy as np

from phalanx.model.resources import PODS
from phalanx.placement import Mask, Vector
from phalanx.plugins.capacity.accounts import Account
from phalanx.session.amounts import EPSILON, requested_rows
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState


class ReclaimWalk:
    """Walks over victims and remembers what their queues would be left with."""

    def __init__(self, accounts: dict[str, Account], preemptor: TaskState, level: int, session: Session) -> None:
        self._accounts, self._preemptor, self._level, self._session = accounts, preemptor, level, session
        self._reclaimer = accounts[preemptor.gang.gang.queue]
        self._wanted = self._request(preemptor)
        self._left: dict[str, Vector] = {}

    def shares_resources(self, task: TaskState) -> bool:
        """Tell whether task and preemptor ask for a resource in common, so that one gains by the other's going."""
        space = self._session.snapshot.space
        return bool((requested_rows(self._request(task), space) & requested_rows(self._wanted, space)).any())

    def victims(self, tasks: Iterable[TaskState], *, asks_both: bool) -> list[TaskState]:
        """Return those that may go; each of them is counted as gone.

        With `asks_both` a preemptor that deserves nothing takes nothing near it.
        """
        found: list[TaskState] = []
        for run in self._runs(tasks):
            account, request = self._accounts[run[0].gang.gang.queue], self._request(run[0])
            if self.shares_resources(run[0]) and not (asks_both and self._are_both_undeserving(account, request)):
                found += run[: self._take(account, request, len(run))]
        return found

    def _runs(self, tasks: Iterable[TaskState]) -> Iterator[list[TaskState]]:
        """Yield tasks that follow each other, belong to one queue and ask for the same."""
        for _, run in groupby(tasks, lambda task: (task.gang.gang.queue, id(self._session.request_of(task.task.shape)))):
            yield list(run)

    def _take(self, account: Account, request: Vector, most: int) -> int:
        """Count tasks that ask for this as gone, one after the other as long as they may; return how many."""
        before = request[:, None] * np.arange(most)
        kept = account.guarantee[:, None] - (self._allocated(account)[:, None] - before - request[:, None])
        may_go: Mask = np.asarray((kept < EPSILON).all(axis=0))
        for each in [account, *self._ancestors_to_ask(account)]:
            may_go &= self._is_over(each, request, before)
        count = most if may_go.all() else int(may_go.argmin())
        for each in account.line():
            self._left[each.queue.name] = self._allocated(each) - count * request
        return count

    def _request(self, task: TaskState) -> Vector:
        return self._session.request_of(task.task.shape).amounts.astype(np.float64)

    def _are_both_undeserving(self, account: Account, request: Vector) -> bool:
        """Tell whether neither queue deserves what its task asks for, below an ancestor that both may borrow from."""
        mine, its = self._ancestors(self._reclaimer), self._ancestors(account)
        is_near = any(each is other for each in mine for other in its)
        return is_near and not self._counts(account, request).any() and not self._counts(self._reclaimer, self._wanted).any()

    def _ancestors(self, account: Account) -> list[Account]:
        return [each for each in account.line()[1 : 1 + self._level] if each.parent is not None]

    def _ancestors_to_ask(self, account: Account) -> list[Account]:
        """Return the ancestors of a victim's queue, except those that are the reclaimer's too, at the same height as in Volcano."""
        pairs = zip_longest(self._ancestors(account), self._ancestors(self._reclaimer))
        return [its for its, mine in pairs if its is not None and its is not mine]

    def _allocated(self, account: Account) -> Vector:
        return self._left.get(account.queue.name, account.allocated)

    def _counts(self, account: Account, request: Vector) -> Mask:
        """Mark the resources that are asked for and of which the queue deserves something."""
        rows = (request > 0) & (account.deserved > 0)
        rows[self._session.snapshot.space.row_by_name[PODS]] = False
        return rows

    def _is_over(self, account: Account, request: Vector, before: Vector) -> Mask:
        """A queue that deserves nothing of what a victim uses lets it go; else it must have more than it deserves of it.

        Asked for tasks of a run; `before` is what those before each of them take with them.
        """
        rows = self._counts(account, request)
        if not rows.any():
            return np.ones(before.shape[1], dtype=np.bool_)
        return np.asarray((self._allocated(account)[rows, None] - before[rows] > account.deserved[rows, None]).any(axis=0))
