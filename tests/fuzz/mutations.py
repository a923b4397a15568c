"""Inputs made of others: bytes are changed, parts repeated, nested or swapped, and words of all seeds thrown in."""

import re
from collections.abc import Callable, Sequence
from random import Random

from hypothesis import strategies as st

_WORD = re.compile(rb"[A-Za-z0-9_.]+|[^A-Za-z0-9_.]")
ODD = (
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"-1", b"0", b"1e999", b"9" * 25, b"null", b"[]", b"{}", b"~", b"*a", b"&a ",
    b"<<: ", b"!!x ", b"'", b'"', b"\\", b"\r\n", b"\t", b"%", b"..", b"\xf0\x9f\x92\xa9", b"\\ud800", b"NaN", b"- ", b": ", b"? ",
    b"|\n", b"#", b"---\n", b"\x1b[31m",
)  # fmt: skip
LARGEST = 1 << 14
Change = Callable[[bytes, Random, Sequence[bytes]], bytes]


def _flip(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + bytes([random.randrange(256)]) + data[place + 1 :]


def _cut(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    first, last = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:]


def _repeat(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    first, last = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:last] + data[first:last] * random.choice((1, 2, 10, 300)) + data[last:]


def _odd(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    return _in_place_of_word(data, random, random.choice(ODD) * random.choice((1, 1, 1, 200)))


def _word(data: bytes, random: Random, seeds: Sequence[bytes]) -> bytes:
    return _in_place_of_word(data, random, random.choice(_WORD.findall(random.choice(seeds)) or [b""]))


def _in_place_of_word(data: bytes, random: Random, instead: bytes) -> bytes:
    found = list(_WORD.finditer(data))
    if not found:
        return instead
    chosen = random.choice(found)
    return data[: chosen.start()] + instead + data[random.choice((chosen.start(), chosen.end())) :]


def _nest(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    left, right = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"- ", b""), (b"!", b"")))
    depth, place = random.choice((1, 5, 300, 3000)), random.randrange(len(data) + 1)
    return data[:place] + left * depth + data[place:] + right * depth


CHANGES: tuple[Change, ...] = (_flip, _cut, _repeat, _odd, _odd, _word, _word, _word, _nest)


def mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """Return an input made of one of the seeds."""
    data = random.choice(seeds)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        data = random.choice(CHANGES)(data, random, seeds)[:LARGEST]
    return data


def inputs(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Return a strategy for inputs of a target; plain bytes are among them, which shrink well."""
    words = sorted({word for seed in seeds for word in _WORD.findall(seed)} | set(ODD))
    made = st.integers(0, 2**40).map(lambda seed: mutated(seeds, Random(seed)))
    return st.one_of(made, st.lists(st.sampled_from(words), max_size=30).map(b"".join), st.binary(max_size=200))
