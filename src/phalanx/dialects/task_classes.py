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

When a new selector appears, tasks with labels that it reads are classified again. Classes that nobody uses are forgotten.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from weakref import WeakValueDictionary

from phalanx.model.selectors import Labels, LabelSelector
from phalanx.model.shape import AffinityTerm, Shape

EVERYWHERE = ""
"""Stands for all namespaces: a term with a namespace selector may be about pods of any of them."""

Reading = tuple[str, str]
"""A namespace and the key of a label that some selector reads there."""


class TaskClasses:
    """Hands out shapes; equal ones are the same object."""

    def __init__(self) -> None:
        """Begin without any class."""
        self._by_text: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()
        self._by_meaning: WeakValueDictionary[tuple[object, ...], Shape] = WeakValueDictionary()
        self._keys_read: defaultdict[str, set[str]] = defaultdict(set)
        self.is_outdated = False
        """A selector reads labels that it did not read when earlier tasks were classified."""

    def labels_that_count(self, namespace: str, labels: Labels) -> Labels:
        """Return those labels of a pod that some selector of the cluster reads."""
        everywhere, here = self._keys_read.get(EVERYWHERE, ()), self._keys_read.get(namespace, ())
        return {key: text for key, text in labels.items() if key in here or key in everywhere} if here or everywhere else {}

    def of_text(self, text: bytes, read: Callable[[], Shape]) -> Shape:
        """Return the class of a pod that is written like this; `read` is asked for its shape, with all labels, when it is new."""
        shape = self._by_text.get(text)
        if shape is None:
            shape = self._by_text[text] = self._of_shape(read())
        return shape

    def again(self, shape: Shape, labels: Labels) -> Shape:
        """Return the class that a pod with these labels has by now."""
        counting = self.labels_that_count(shape.namespace, labels)
        return shape if counting == shape.labels else self._interned(replace(shape, labels=counting))

    def read_by_service(self, namespace: str, selector: LabelSelector) -> None:
        """Note that a Service reads labels of the pods of its namespace."""
        self._note_readings((namespace, part.key) for part in selector.requirements)

    def _of_shape(self, shape: Shape) -> Shape:
        self._note_readings(_readings(shape))
        return self._interned(replace(shape, labels=self.labels_that_count(shape.namespace, shape.labels)))

    def _interned(self, shape: Shape) -> Shape:
        return self._by_meaning.setdefault(_meaning(shape), shape)

    def _note_readings(self, readings: Iterable[Reading]) -> None:
        for namespace, key in readings:
            if key not in self._keys_read[namespace]:
                self._keys_read[namespace].add(key)
                self.is_outdated = True


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
