"""The accounts of queues: what each has and deserves, what it may use, and how limits and sums go through the tree."""

from dataclasses import dataclass, field

import numpy as np

from phalanx.model.bounds import QUEUE_LEVELS
from phalanx.model.queue import ROOT, Queue
from phalanx.placement import Vector
from phalanx.session.amounts import Claim, divide, dominant_share
from phalanx.state.verdict import Verdict


@dataclass(slots=True)
class Account:
    """What a queue and everything below it has, wants, deserves and may use."""

    queue: Queue
    allocated: Vector
    requested: Vector
    inqueue: Vector
    elastic: Vector
    guarantee: Vector
    deserved: Vector
    capability: Vector
    limit: Vector
    parent: "Account | None" = None
    children: list["Account"] = field(default_factory=list)
    share_at_open: float | None = None
    """Its share for the whole session, if it does not follow what happens in it."""

    def line(self) -> list["Account"]:
        """Return the queue and its ancestors, the queue first."""
        found: list[Account] = []
        account: Account | None = self
        while account is not None:
            found.append(account)
            account = account.parent
        return found

    @property
    def share(self) -> float:
        """The largest part of what it deserves that it has; 1 for a queue that deserves nothing."""
        if self.share_at_open is not None:
            return self.share_at_open
        return dominant_share(self.allocated, self.deserved) if self.deserved.any() else 1.0


def compare_shares(left: Account, right: Account) -> int:
    """Return -1 for the smaller share; among equal ones, for the queue that deserves something."""
    if left.share != right.share:
        return -1 if left.share < right.share else 1
    return int(bool(right.deserved.any())) - int(bool(left.deserved.any()))


def diverging(left: Account, right: Account) -> tuple[Account, Account]:
    """Return the ancestors just below the lowest common one, or the queues themselves."""
    if left.parent is None or right.parent is None:
        return left, right
    for mine, its in zip(reversed(left.line()), reversed(right.line()), strict=False):
        if mine is not its:
            return mine, its
    return left, right


def no_limit(total: Vector) -> Vector:
    """Return a limit that only holds for resources of which no node has any; never for cpu and memory."""
    limit = np.where(total > 0, np.inf, 0.0)
    limit[:2] = np.inf
    return limit


def keep_shares(accounts: dict[str, Account]) -> None:
    """Let the share of queues with queues below them stay as it is now. Volcano brings only that of the leaf up to date."""
    for account in accounts.values():
        account.share_at_open = account.share if account.children else None


def settle_flat(accounts: dict[str, Account], total: Vector) -> None:
    """Set what queues that stand alone may use and deserve."""
    _hand_out(list(accounts.values()), total)
    for account in accounts.values():
        bound_deserved(account)


def _hand_out(accounts: list[Account], available: Vector) -> None:
    """Set what each of these queues may use: its guarantee, and what the guarantees of all leave."""
    guaranteed = sum((account.guarantee for account in accounts), np.zeros(len(available)))
    for account in accounts:
        account.limit = np.minimum(np.maximum(available - guaranteed, 0.0) + account.guarantee, account.capability)


def bound_deserved(account: Account) -> None:
    """Let a queue deserve no more than it may use, but always what is guaranteed to it."""
    account.deserved = np.maximum(np.minimum(account.deserved, account.limit), account.guarantee)


def build_tree(accounts: dict[str, Account], root_limit: Vector, used_queues: set[str]) -> dict[str, Verdict]:
    """Link queues, hand limits down and sums up; return what is wrong with which queue."""
    root, faults = accounts[ROOT], dict[str, Verdict]()
    for account in accounts.values():
        parent = accounts.get(account.queue.parent or ROOT)
        if account is root:
            continue
        if parent is None:
            text = f"queue {account.queue.name} names the parent {account.queue.parent!r}, which does not exist"
            faults[account.queue.name] = _broken(text)
        else:
            account.parent = parent
            parent.children.append(account)
    for name, account in accounts.items():
        if name not in faults and not _reaches(account, root, QUEUE_LEVELS.most):
            why = "a parent is missing, queues form a circle, or there are too many of them above it"
            faults[name] = _broken(f"queue {name} does not lead up to the root: {why} ({QUEUE_LEVELS.text})")
    _cut_off(accounts, faults)
    _sum_up(root)
    root.limit = np.minimum(root_limit, root.capability)
    _hand_down(root)
    for name in sorted(used_queues):
        if name in accounts and accounts[name].children and accounts[name] is not root:
            faults[name] = _broken(f"queue {name} has queues below it and gangs of its own; move the gangs to a leaf queue")
    return faults


def _cut_off(accounts: dict[str, Account], faults: dict[str, Verdict]) -> None:
    """Take queues that do not reach the root out of the tree."""
    for name in faults:
        accounts[name].parent, accounts[name].children = None, []
    for account in accounts.values():
        account.children = [child for child in account.children if child.parent is account]


def _broken(message: str) -> Verdict:
    return Verdict.refuse("capacity", "QueueTreeInvalid", message)


def _reaches(account: Account, root: Account, steps: int) -> bool:
    current: Account | None = account
    for _ in range(steps + 1):
        if current is root:
            return True
        current = current.parent if current else None
    return False


def _sum_up(account: Account) -> None:
    for child in account.children:
        _sum_up(child)
        account.allocated = account.allocated + child.allocated
        account.requested = account.requested + child.requested
        account.inqueue = account.inqueue + child.inqueue
        account.elastic = account.elastic + child.elastic
        child.deserved = np.maximum(child.deserved, child.guarantee)
    if account.parent is None and account.children:
        account.deserved = sum((child.deserved for child in account.children), np.zeros(len(account.deserved)))
        account.guarantee = sum((child.guarantee for child in account.children), np.zeros(len(account.guarantee)))


def _hand_down(account: Account) -> None:
    for child in account.children:
        child.capability = np.where(np.isinf(child.capability), account.capability, child.capability)
    _hand_out(account.children, account.limit)
    for child in account.children:
        _hand_down(child)


def share_by_weight(accounts: dict[str, Account], total: Vector, *, is_tree: bool) -> None:
    """Let queues that say nothing of what they deserve share by weight what is left of their parent's part, or of the cluster."""
    if not is_tree:
        _divide_among([account for account in accounts.values() if account.queue.name != ROOT], total)
        return
    accounts[ROOT].deserved = total
    line = [accounts[ROOT]]
    for account in line:
        _divide_among(account.children, account.deserved)
        line.extend(account.children)


def _divide_among(accounts: list[Account], total: Vector) -> None:
    silent = [account for account in accounts if not account.queue.deserved]
    spoken = sum((account.deserved for account in accounts if account.queue.deserved), np.zeros(len(total)))
    claims = [Claim(account.queue.weight, account.requested, account.limit, account.guarantee) for account in silent]
    for account, part in zip(silent, divide(claims, np.maximum(total - spoken, 0.0)), strict=True):
        account.deserved = part


def shared_depth(left: Account, right: Account) -> int:
    """Return how many queues from the root down both lines share."""
    depth = 0
    for mine, its in zip(reversed(left.line()), reversed(right.line()), strict=False):
        if mine is not its:
            break
        depth += 1
    return depth
