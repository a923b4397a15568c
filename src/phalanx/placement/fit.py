"""Which nodes have room, for how many tasks, and what is short where they have not."""

import numpy as np

from phalanx.placement import NO_LIMIT, Amounts, Counts, Index, Mask
from phalanx.placement.ledger import Request


def fits(room: Amounts, request: Request) -> Mask:
    """Mark every node whose room covers the request. Rows that it does not ask for may be overdrawn: they do not matter to it."""
    mask = np.ones(room.shape[1], dtype=np.bool_)
    for row, amount in request.rows:
        mask &= room[row] >= amount
    return mask


def copies(room: Amounts, request: Request, nodes: Index | slice = slice(None)) -> Counts:
    """Count how many tasks of this class each node's room covers; zero where it is short, never negative."""
    count: Counts | None = None
    for row, amount in request.rows:
        fitting = room[row, nodes] // amount
        count = fitting if count is None else np.minimum(count, fitting, out=count)
    if count is None:
        return np.full(room[0, nodes].shape, NO_LIMIT, dtype=np.int64)
    return np.maximum(count, 0, out=count)


def first_short(room: Amounts, request: Request) -> Counts:
    """Return per node the first row that is short, or -1 where the request fits."""
    short = np.full(room.shape[1], -1, dtype=np.int64)
    for row, amount in reversed(request.rows):  # the first row is written last and stays
        short[room[row] < amount] = row
    return short
