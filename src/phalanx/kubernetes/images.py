"""Image locality: nodes that hold a task's images already score higher, common images more than rare ones."""

import numpy as np

from phalanx.model.shape import Shape
from phalanx.placement import Counts
from phalanx.session.session import Session

LOW = 23 * 1024 * 1024
HIGH_PER_CONTAINER = 1000 * 1024 * 1024


class ImageBook:
    """Which node holds which image.

    `imageCount: at-arrival` is how Volcano counts: a node sees the number of holders there were when it was loaded, itself
    included, and the size that the first holder reported. Turned off, every node sees the number of all holders.
    """

    def __init__(self, session: Session, *, counts_at_arrival: bool = True) -> None:
        """Read the image lists of all nodes."""
        self._nodes = session.snapshot.nodes
        self._holders: dict[str, list[int]] = {}
        self._bytes: dict[str, int] = {}
        self._counts_at_arrival = counts_at_arrival
        for number, node in enumerate(self._nodes.nodes):
            for name, size in node.image_bytes.items():
                self._holders.setdefault(name, []).append(number)
                self._bytes.setdefault(name, size)

    def score(self, shape: Shape) -> Counts:
        """Return 0 to 100 per node.

        Sizes are weighed by how many nodes hold the image: otherwise all pods of an image would follow the first one to its node.
        """
        total = np.zeros(len(self._nodes), dtype=np.int64)
        for image in shape.images:
            holders = self._holders.get(normal_name(image), [])
            for place, node in enumerate(holders, start=1):
                known = place if self._counts_at_arrival else len(holders)
                total[node] += int(float(self._bytes[normal_name(image)]) * (known / len(self._nodes)))
        high = HIGH_PER_CONTAINER * max(shape.containers, 1)
        return 100 * (np.clip(total, LOW, high) - LOW) // (high - LOW)


def normal_name(image: str) -> str:
    """Add the default tag to a name that has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
