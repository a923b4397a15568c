"""Reads YAML or JSON texts, with several documents in one text; what is nested too deeply is refused."""

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import msgspec
import yaml

from phalanx.dialects.yaml_reader import read_yaml
from phalanx.errors import SnapshotError
from phalanx.model.bounds import DOCUMENTS, NESTING, is_too_deep

_BLANKS = re.compile(r"\s*")


class Located(NamedTuple):
    """Something that was read, and where: "pods.yaml, document 2"."""

    place: str
    value: object


def documents_in(text: bytes, name: str) -> list[Located]:
    """Return the documents of a text; `name` says whose it is."""
    documents = parse_text(text, name)
    return [Located(f"{name}, document {number}", value) for number, value in enumerate(documents, start=1) if value is not None]


def parse_text(text: bytes, name: str) -> list[object]:
    """Return the documents of a text; `name` says in an error whose text it is."""
    try:
        return _parse(text)
    except yaml.YAMLError as problem:
        raise SnapshotError(f"{name}{_yaml_problem(problem)}") from problem
    except RecursionError:
        raise SnapshotError(f"{name}: nested too deeply: {NESTING.text}") from None


def _parse(text: bytes) -> list[object]:
    if text.lstrip()[:1] in (b"{", b"["):
        try:
            return _parse_json(text)
        except ValueError:
            pass  # YAML may begin with a bracket too, and says in which line a mistake is
    return read_yaml(text)


def _parse_json(text: bytes) -> list[object]:
    """Return the values of a JSON text; several may follow each other, as when files are joined."""
    try:
        found = [msgspec.json.decode(text)]
    except msgspec.DecodeError:
        found = list(_joined_values(text.decode()))
    if is_too_deep(found):
        raise RecursionError
    return found


def _joined_values(text: str) -> Iterator[object]:
    decoder, place, most = json.JSONDecoder(parse_constant=_refuse_constant), 0, DOCUMENTS.most
    for number in count(1):
        place = _BLANKS.match(text, place).end()  # type: ignore[union-attr]  # it matches nothing, too
        if place == len(text):
            return
        if number > most:
            raise yaml.YAMLError(f"more documents than that; {DOCUMENTS.text}")
        value, place = decoder.raw_decode(text, place)
        yield value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no value of JSON")


def _yaml_problem(problem: yaml.YAMLError) -> str:
    if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark is not None:
        mark = problem.problem_mark
        return f", line {mark.line + 1}, column {mark.column + 1}: {problem.problem or problem.context}"
    if isinstance(problem, yaml.reader.ReaderError):
        return f": not text in UTF-8: {problem.reason}"
    return f": {str(problem).splitlines()[0]}"
