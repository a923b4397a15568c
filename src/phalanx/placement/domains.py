"""Sums over domains: sets of nodes that may overlap and nest, such as the HyperNodes of a network."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phalanx.placement import Amounts, Index


class Domains:
    """A fixed list of domains, each with its nodes in ascending order."""

    __slots__ = ("_flat", "_starts", "members", "sizes")

    def __init__(self, members: Sequence[Index]) -> None:
        """Lay the members of all domains out one after the other."""
        self.members = list(members)
        self.sizes = np.array([len(nodes) for nodes in members], dtype=np.int64)
        self._flat = np.concatenate(self.members) if members else np.zeros(0, dtype=np.int64)
        self._starts = np.concatenate(([0], np.cumsum(self.sizes)))[:-1] if members else np.zeros(0, dtype=np.int64)

    def sums(self, amounts: Amounts) -> NDArray[np.float64]:
        """Return (resource, domain): the amounts of all nodes of each domain, as floats since sums may be huge."""
        total = np.zeros((amounts.shape[0], len(self.members)), dtype=np.float64)
        filled = self.sizes > 0  # `reduceat` would give an empty domain the first node of the next one
        if filled.any():
            total[:, filled] = np.add.reduceat(amounts[:, self._flat].astype(np.float64), self._starts[filled], axis=1)
        return total

    def spread(self, values: NDArray[np.float64], nodes: int) -> NDArray[np.float64]:
        """Return per node the sum of the values of all domains it is in."""
        return np.asarray(np.bincount(self._flat, weights=np.repeat(values, self.sizes), minlength=nodes), dtype=np.float64)
