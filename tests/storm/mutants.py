"""Bugs to plant: mutations of our own code, each of one mechanism, that a storm has to find by itself.

A planted bug is a function that patches; its docstring says what the code does wrong then. `breaks` names the invariants that it
is to be found by, `needs` the incidents without which it does nothing: storms that have none of them are left out.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import cleandoc

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: dict[str, "Mutant"] = {}
"""All of them, by name."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug."""

    name: str
    breaks: frozenset[str]
    needs: frozenset[str]
    plant: Plant
    is_rare: bool = False
    """A storm that was kept finds it (`seeds.toml`), and few others do."""

    @property
    def mechanism(self) -> str:
        """What the code does wrong."""
        return cleandoc(self.plant.__doc__ or "").partition("\n")[0]

    @contextmanager
    def planted(self) -> Iterator[pytest.MonkeyPatch]:
        """Let the bug be there for a while; who undoes the patch ends it before."""
        with pytest.MonkeyPatch.context() as patch:
            self.plant(patch)
            yield patch


def planted(
    name: str, *, breaks: str | tuple[str, ...], needs: tuple[str, ...] = (), is_rare: bool = False
) -> Callable[[Plant], Plant]:
    """Add a bug to the list."""

    def add(plant: Plant) -> Plant:
        assert name not in PLANTED, f"{name} is planted twice"
        broken = (breaks,) if isinstance(breaks, str) else breaks
        PLANTED[name] = Mutant(name, frozenset(broken), frozenset(needs), plant, is_rare)
        return plant

    return add


def binds_blindly(patch: pytest.MonkeyPatch) -> None:
    """Take away the binder's last look at nodes, which keeps them from being over-committed by what went wrong before it."""
    patch.setattr("phalanx.controllers.binder.controller.without_room", lambda view, asks: {})


def everything() -> dict[str, Mutant]:
    """Return all planted bugs; importing their files lists them."""
    for area in ("carrying_out", "controllers", "deciding", "leading", "watching"):
        import_module(f"tests.storm.mutants_of_{area}")
    return PLANTED
