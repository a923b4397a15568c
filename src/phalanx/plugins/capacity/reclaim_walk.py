"""Which tasks of other queues a queue may reclaim: one after the other, each as if those before it had gone."""

from itertools import zip_longest

import numpy as np

from phalanx.model.resources import PODS
from phalanx.placement import Mask, Vector
from phalanx.plugins.capacity.accounts import Account
from phalanx.session.amounts import covers, requested_rows
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState


class ReclaimWalk:
    """Walks over victims and remembers what their queues would be left with."""

    def __init__(self, accounts: dict[str, Account], reclaimer: Account, level: int, session: Session) -> None:
        self._accounts, self._reclaimer, self._level, self._session = accounts, reclaimer, level, session
        self._left: dict[str, Vector] = {}

    def shares_resources(self, task: TaskState, preemptor: TaskState) -> bool:
        """Tell whether the two ask for a resource in common, so that one gains by the other's going."""
        space = self._session.snapshot.space
        wanted = [requested_rows(self._request(each), space) for each in (task, preemptor)]
        return bool((wanted[0] & wanted[1]).any())

    def takes(self, task: TaskState, preemptor: TaskState | None = None) -> bool:
        """Tell whether the task may go; if so it is counted as gone. A preemptor that deserves nothing takes nothing near it."""
        account, request = self._accounts[task.gang.gang.queue], self._request(task)
        if not covers(self._allocated(account) - request, account.guarantee) or not self._is_over(account, request):
            return False
        if preemptor is not None and self._are_both_undeserving(account, request, self._request(preemptor)):
            return False
        if not all(self._is_over(ancestor, request) for ancestor in self._ancestors_to_ask(account)):
            return False
        for each in account.line():
            self._left[each.queue.name] = self._allocated(each) - request
        return True

    def _request(self, task: TaskState) -> Vector:
        return self._session.request_of(task.task.shape).amounts.astype(np.float64)

    def _are_both_undeserving(self, account: Account, request: Vector, wanted: Vector) -> bool:
        """Tell whether neither queue deserves what its task asks for, below an ancestor that both may borrow from."""
        mine, its = self._ancestors(self._reclaimer), self._ancestors(account)
        is_near = any(each is other for each in mine for other in its)
        return is_near and not self._counts(account, request).any() and not self._counts(self._reclaimer, wanted).any()

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

    def _is_over(self, account: Account, request: Vector) -> bool:
        """A queue that deserves nothing of what the victim uses lets it go; else it must have more than it deserves of it."""
        rows = self._counts(account, request)
        return not rows.any() or bool((self._allocated(account)[rows] > account.deserved[rows]).any())
