"""Metrics that the library does not have: a gauge that is replaced whole, a count kept elsewhere, a rate over the last minute."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

MINUTE_SECONDS = 60.0


class ReplacedGauge(Collector):
    """A gauge whose values are put in place of the old ones all at once; those that are not among the new ones are gone."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, labels: Sequence[str]) -> None:
        """Begin without values."""
        self._name, self._text, self._labels = name, text, tuple(labels)
        self._values: dict[tuple[str, ...], float] = {}
        registry.register(self)

    def show(self, values: Iterable[tuple[tuple[str, ...], float]]) -> None:
        """Replace all values; each comes with its labels."""
        self._values = dict(values)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield what a scrape gets."""
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family


class ReadCounter(Collector):
    """A counter whose value somebody else keeps."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str) -> None:
        """Begin with nothing to count."""
        self._name, self._text = name, text
        self.read: Callable[[], float] = lambda: 0.0
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield what a scrape gets."""
        yield CounterMetricFamily(self._name, self._text, value=self.read())


class LastMinute:
    """Counts what happens, and knows how much of it happened in the last minute."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with nothing."""
        self._clock = clock
        self._counts: deque[tuple[float, int]] = deque()
        self._total = 0

    def add(self, count: int = 1) -> None:
        """So many happened now; those of one second are kept as one."""
        second = float(int(self._clock()))
        if self._counts and self._counts[-1][0] == second:
            self._counts[-1] = (second, self._counts[-1][1] + count)
        else:
            self._forget()  # also where nobody ever asks for the rate
            self._counts.append((second, count))
        self._total += count

    def per_second(self) -> float:
        """Return how many happened each second, on average over the last minute."""
        self._forget()
        return self._total / MINUTE_SECONDS

    def _forget(self) -> None:
        oldest = self._clock() - MINUTE_SECONDS
        while self._counts and self._counts[0][0] <= oldest:
            self._total -= self._counts.popleft()[1]
