"""Classes of tasks: tasks that placement cannot tell apart share one Shape object.

What counts is what a filter or a score can read, and nothing else:

- what the pod asks for (requests, overhead, limits, ports, images, shared GPUs), and which nodes it may or would rather use
  (selector, affinity, tolerations, spread): the fields of `Shape`, as they are understood and not as they are written;
- its claims for volumes and devices, by name: where they can be used differs from claim to claim;
- the annotations that plugins for placement read, and its namespace;
- of its labels, those whose keys some selector reads that may be about it: of affinity and spread terms, and of Services, which
  Kubernetes spreads pods by. Terms speak of their own namespace unless they name others.

So the names of volumes without a claim, hostnames, owners, and labels that number or hash pods do not count: a real API server
gives each pod such a volume, and controllers label each pod with its index. If these counted, every pod would be a class of its
own: fitted, scored and placed alone.

When a selector comes or goes, tasks with labels that it reads are classified again. Classes that nobody uses are forgotten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from weakref import WeakValueDictionary

from phalanx.model.selectors import Labels, LabelSelector
from phalanx.model.shape import AffinityTerm, Shape

EVERYWHERE = ""
"""Stands for all namespaces: a term with a namespace selector may be about pods of any of them."""

SERVICE = "Service "
"""Before the key of a Service, where that of a pod could be meant."""

Reading = tuple[str, str]
"""A namespace and the key of a label that some selector reads there."""


class TaskClasses:
    """Hands out shapes; equal ones are the same object."""

    def __init__(self) -> None:
        """Begin without any class."""
        self._by_text: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()
        self._by_meaning: WeakValueDictionary[tuple[object, ...], Shape] = WeakValueDictionary()
        self._readings: dict[str, frozenset[Reading]] = {}
        """What each pod with terms, and each Service, reads."""
        self._readers: Counter[Reading] = Counter()
        self._keys_read: dict[str, set[str]] = {}
        self.is_outdated = False
        """Selectors read other labels than when earlier tasks were classified."""

    def labels_that_count(self, namespace: str, labels: Labels) -> Labels:
        """Return those labels of a pod that some selector of the cluster reads."""
        everywhere, here = self._keys_read.get(EVERYWHERE, ()), self._keys_read.get(namespace, ())
        return {key: text for key, text in labels.items() if key in here or key in everywhere} if here or everywhere else {}

    def of_text(self, text: bytes, read: Callable[[], Shape]) -> Shape:
        """Return the class of a pod that is written like this; `read` is asked for its shape, with all labels, when it is new."""
        shape = self._by_text.get(text)
        if shape is None:
            new = read()
            shape = self._interned(replace(new, labels=self.labels_that_count(new.namespace, new.labels)))
            self._by_text[text] = shape
        return shape

    def again(self, shape: Shape, labels: Labels) -> Shape:
        """Return the class that a pod with these labels has by now."""
        counting = self.labels_that_count(shape.namespace, labels)
        return shape if counting == shape.labels else self._interned(replace(shape, labels=counting))

    def note_pod(self, key: str, shape: Shape) -> None:
        """Note what the selectors of a pod read; most have none."""
        if shape.has_affinity or shape.spread or key in self._readings:
            self._note(key, frozenset(_readings(shape)))

    def note_service(self, key: str, namespace: str, selector: LabelSelector) -> None:
        """Note that a Service reads labels of the pods of its namespace."""
        self._note(f"{SERVICE}{key}", frozenset((namespace, part.key) for part in selector.requirements))

    def forget_pod(self, key: str) -> None:
        """Note that a pod is gone, and with it what its selectors read."""
        if key in self._readings:
            self._note(key, frozenset())

    def forget_service(self, key: str) -> None:
        """Note that a Service is gone."""
        self._note(f"{SERVICE}{key}", frozenset())

    def _note(self, reader: str, readings: frozenset[Reading]) -> None:
        before = self._readings.pop(reader, frozenset())
        if readings:
            self._readings[reader] = readings
        for reading in readings - before:
            self._readers[reading] += 1
            if self._readers[reading] == 1:
                self._keys_read.setdefault(reading[0], set()).add(reading[1])
                self.is_outdated = True
        for reading in before - readings:
            self._readers[reading] -= 1
            if not self._readers[reading]:
                self._stop(reading)

    def _stop(self, reading: Reading) -> None:
        """Let labels count no longer that nobody reads any more."""
        namespace, key = reading
        del self._readers[reading]
        self._keys_read[namespace].discard(key)
        if not self._keys_read[namespace]:
            del self._keys_read[namespace]
        self.is_outdated = True

    def _interned(self, shape: Shape) -> Shape:
        return self._by_meaning.setdefault(_meaning(shape), shape)


def _readings(shape: Shape) -> Iterator[Reading]:
    """Yield what the selectors of a pod may read of other pods, and of pods like itself."""
    for affinity in (shape.affinity, shape.anti_affinity):
        for term in (*affinity.required, *affinity.preferred):
            keys = () if term.selector is None else term.selector.requirements
            yield from ((namespace, part.key) for namespace in _namespaces(shape, term) for part in keys)
    for constraint in shape.spread:
        keys = () if constraint.selector is None else constraint.selector.requirements
        yield from ((shape.namespace, part.key) for part in keys)


def _namespaces(shape: Shape, term: AffinityTerm) -> Iterable[str]:
    if term.namespace_selector is not None:
        return (EVERYWHERE,)
    return term.namespaces or (shape.namespace,)


_PARTS = [part.name for part in fields(Shape) if part.init]


def _meaning(shape: Shape) -> tuple[object, ...]:
    """Return all parts of a shape in a form that can be compared."""
    return tuple(_comparable(getattr(shape, name)) for name in _PARTS)


def _comparable(value: object) -> object:
    return tuple(sorted(value.items())) if isinstance(value, dict) else value
