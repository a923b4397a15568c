"""The evaluator of rules about objects."""

from typing import Any

import pytest

from phalanx.kubernetes.cel_rules import compile_rule
from phalanx.kubernetes.cel_values import CelError, CelSyntaxError

JOB = {
    "name": "train",
    "tasks": [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 7, "needs": ["ps"]}],
    "amounts": {"cpu": 4, "memory": "8Gi"},
}


def value(text: str) -> Any:
    return compile_rule(text, "self").value({"self": JOB})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("'a' + 'b'", "ab"),
        ("[1] + [2, 3]", [1, 2, 3]),
        ("(1 + 2) * 3 == 9 ? 'yes' : 'no'", "yes"),
        ("self.tasks.map(t, t.replicas).sum()", 8),
        ("self.tasks.map(t, t.replicas).max()", 7),
        ("self.tasks.map(t, has(t.needs), t.name)", ["worker"]),
        ("self.tasks.filter(t, t.replicas > 1).size()", 1),
        ("self.tasks.all(t, t.replicas > 0)", True),
        ("self.tasks.all(i, t, t.replicas > i)", True),
        ("self.tasks.exists(t, t.name == 'chief')", False),
        ("self.tasks.exists_one(t, t.name == 'ps')", True),
        ("self.tasks.transformList(i, t, i > 0, string(i) + t.name)", ["1worker"]),
        ("self.tasks[1].needs.all(n, self.tasks.exists(t, t.name == n))", True),
        ("self.amounts.all(r, r in ['cpu', 'memory'])", True),
        ("quantity(string(self.amounts['cpu'])).compareTo(quantity('3500m'))", 1),
        ("isQuantity('8Gi') && !isQuantity('eight')", True),
        ("size(self.name) + size(self.tasks)", 7),
        ("has(self.tasks) && !has(self.queue)", True),
        ("{'name': self.name, 'sizes': [1]}", {"name": "train", "sizes": [1]}),
        ("JSONPatch{op: 'add', path: '/a', value: {}}", {"op": "add", "path": "/a", "value": {}}),
        ("jsonpatch.escapeKey('a/b~c')", "a~1b~0c"),
        ("lists.range(3)", [0, 1, 2]),
        ("'a/b'.split('/')", ["a", "b"]),
        ("['a', 'b'].indexOf('b')", 1),
        ("'worker-10'.matches('^(ps|worker)-[0-9]+$')", True),
        ("cel.bind(n, self.tasks.size(), n * n)", 4),
        ("string(true) + string(1)", "true1"),
        ("int(3) == 3 && dyn(3) == 3", True),
    ],
)
def test_an_expression_gives(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "self.queue == ''",
        "has(self.queue.name)",
        "self.tasks.map(t, t.needs)",
        "'a' + 1",
        "self.name.all(c, true)",
        "self.tasks[2]",
        "'a'.matches('(')",
        "size(1)",
        "self.name.sum()",
        "[true].sum()",
    ],
)
def test_an_expression_without_an_answer_is_an_error(text: str) -> None:
    with pytest.raises(CelError):
        value(text)


@pytest.mark.parametrize(
    "text",
    [
        "object.spec",
        "self.tasks.all(t)",
        "self.tasks.map(i, t, t)",
        "self.tasks.transformList(t, t)",
        "self.tasks.fold(t, t)",
        "t + self.tasks.all(t, true)",
        "size(1, 2)",
        "[1",
        "{'a': 1",
        "has(self)",
    ],
)
def test_what_is_not_supported_does_not_compile(text: str) -> None:
    with pytest.raises(CelSyntaxError):
        compile_rule(text, "self")


def test_an_error_vanishes_when_the_other_side_decides() -> None:
    assert value("true || self.queue == ''")
    assert not value("self.queue == '' && false")
