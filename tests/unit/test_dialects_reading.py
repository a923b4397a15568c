"""Structs that several threads use for the first time at once."""

import subprocess
import sys

import msgspec
import pytest

from phalanx.dialects.reading import decode_as, read_as

CROWD = """
import sys
from threading import Barrier, Thread

import msgspec

from phalanx.dialects.reading import read_as

ROUNDS, THREADS, PARTS = 40, 8, 12
sys.setswitchinterval(1e-6)


def whole():
    parts = [msgspec.defstruct(f"Part{number}", [("name", str, ""), ("amount", int, 0)]) for number in range(PARTS)]
    return msgspec.defstruct("Whole", [(f"field{number}", part | None, None) for number, part in enumerate(parts)])


for _ in range(ROUNDS):
    kind, together = whole(), Barrier(THREADS)

    def use():
        together.wait()
        assert read_as({f"field{number}": {"name": "a"} for number in range(PARTS)}, kind).field7.name == "a"

    threads = [Thread(target=use) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("read")
"""


def crowd(program: str = CROWD) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_threads_that_use_a_struct_first_at_once_do_not_crash() -> None:
    assert crowd().stdout == "read\n"


class Named(msgspec.Struct):
    name: str = ""


def test_values_and_json_are_read_as_what_they_are_said_to_be() -> None:
    assert read_as({"name": "a"}, Named) == Named("a")
    assert decode_as('[{"name": "b"}]', list[Named]) == [Named("b")]
    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`, got `int` - at `\$.name`"):
        read_as({"name": 1}, Named)
