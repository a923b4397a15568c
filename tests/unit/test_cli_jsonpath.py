"""Templates of -o jsonpath=, as kubectl fills them in."""

import pytest

from phalanx.cli.jsonpath import filled
from phalanx.errors import ConfigError

ANSWER = {
    "kind": "List",
    "items": [
        {"metadata": {"name": "a", "labels": {"example.org/team": "red"}}, "status": {"phase": "Running", "restarts": 2}},
        {"metadata": {"name": "b"}, "status": {"phase": "Pending"}},
    ],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{.kind}", "List"),
        ("{$.kind} of {.items[*].metadata.name}", "List of a b"),
        ("{.items[0].metadata.labels['example.org/team']}", "red"),
        ("{.items[-1].metadata.name}{.items[7].metadata.name}{.nothing.there}", "b"),
        ("{.items[0].status}", '{"phase":"Running","restarts":2}'),
        ("{.items[0].status.restarts}", "2"),
        ("{.items[0].status.*}", "Running 2"),
        ('{.items[?(@.status.phase=="Pending")].metadata.name}', "b"),
        ("{.items[?(@.status.phase != 'Pending')].metadata.name}", "a"),
        ("{.items[?(@.status.restarts==2)].metadata.name}", "a"),
        ('{range .items[*]}{.metadata.name}={.status.phase}{"\\n"}{end}', "a=Running\nb=Pending\n"),
        ('{range .items[*]}{range .metadata.labels.*}[{.}]{end}{"{}"}{end}', "[red]{}{}"),
    ],
)
def test_a_template_is_filled_in(template: str, text: str) -> None:
    assert filled(template, ANSWER) == text


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{.kind", "a brace is open or closed alone"),
        ("kind}", "a brace is open or closed alone"),
        ("{range .items[*]}x", "a {range} has no {end}"),
        ("{.items..metadata.name}", "'..metadata.name' is not understood; write {.field}"),
        ("{end}", "'end' is not understood"),
        ("{.items[1:2]}", "'[1:2]' is not understood"),
        ("{.items[?(@.a>1)]}", "is not understood"),
    ],
)
def test_a_template_that_is_not_understood_is_named(template: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        filled(template, ANSWER)
    assert sentence in str(refused.value)
