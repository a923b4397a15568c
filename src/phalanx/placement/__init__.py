"""The array kernel: fit, score and place classes of identical tasks on all nodes at once.

Arrays are resource-major, shape (resource, node), whole numbers. Nothing here knows a pod, a plugin or a session.

A request names few of the resources, and each of them is then one contiguous row over all nodes: asking which of 10,000 nodes cover
8 resources takes 40 microseconds, and with a row for each node 330.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Amounts: TypeAlias = NDArray[np.int64]
"""Amounts of resources: (resource, node), or (resource,) for one request."""
Counts: TypeAlias = NDArray[np.int64]
"""A whole number per node."""
Index: TypeAlias = NDArray[np.int64]
"""Node numbers."""
Mask: TypeAlias = NDArray[np.bool_]
"""A yes or no per node."""
Vector: TypeAlias = NDArray[np.float64]
"""An amount per resource, infinity where nothing bounds it."""
Scores: TypeAlias = NDArray[np.float64]
"""A score per node."""

NO_LIMIT = 1 << 40
"""How many tasks a node can take when nothing bounds it."""
