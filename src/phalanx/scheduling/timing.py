"""How long the parts of a session take, measured from outside: the catalogue that a session chooses from is wrapped.

Decisions have no clock. A session made from a wrapped catalogue runs the same actions and asks the same plugins; around each of
them somebody looks at a watch. A session made from the plain catalogue pays nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from phalanx.model.task import GangKey
from phalanx.session.contract import hooks_of
from phalanx.session.cycle import Action, ActionFactory, Catalogue
from phalanx.session.hooks import Plugin
from phalanx.session.policy import PluginPolicy
from phalanx.session.questions import PluginFactory
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState

Clock = Callable[[], float]
"""Seconds, never going back."""

SAMPLE_EVERY = 10
"""Plugins are timed in one session of so many: a hook may be asked thousands of times in one."""


@dataclass(slots=True)
class Times:
    """The seconds of one session: by action, and by plugin and hook and by gang where those were measured."""

    by_action: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    by_hook: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    by_gang: dict[GangKey, float] = field(default_factory=lambda: defaultdict(float))
    """From a question about a gang to the next question about another one."""
    _gang: GangKey | None = None
    _since: float = 0.0

    def turn_to(self, gang: GangKey | None, now: float) -> None:
        """Count the time up to now for the gang that was asked about last; from now on it counts for this one."""
        if self._gang is not None:
            self.by_gang[self._gang] += now - self._since
        self._gang, self._since = gang, now

    def longest(self) -> str:
        """Say what took longest: "6.9 s of it in preempt, 6.5 s about gang research/train, 3.1 s in extender (predicate)"."""
        parts: list[tuple[str, Mapping[Any, float]]] = [  # Any: each has keys of its own
            ("in {}", self.by_action),
            ("about gang {}", self.by_gang),
            ("in {0[0]} ({0[1]})", self.by_hook),
        ]  # fmt: skip
        found = [(text, *max(times.items(), key=itemgetter(1))) for text, times in parts if times]
        return ", ".join(f"{seconds:.1f} s of it {text.format(key)}" for text, key, seconds in found)


class Stopwatch:
    """Hands out a wrapped catalogue for each session, and what was measured in it."""

    def __init__(self, clock: Clock, *, sample_every: int = SAMPLE_EVERY) -> None:
        """Measure plugins in the first session and in every so manieth after it."""
        self._clock, self._sample_every, self._sessions = clock, sample_every, 0
        self._looks_closely = False
        self._times = Times()
        self._wrapped: tuple[Catalogue | None, Catalogue] = (None, Catalogue())
        """The catalogue whose actions are measured, and as sessions get it that measure nothing else."""

    def look_closely(self) -> None:
        """Measure plugins in the next session."""
        self._looks_closely = True

    def begin(self, catalogue: Catalogue, *, samples: bool = True) -> tuple[Catalogue, Times]:
        """Return what the next session chooses from, and where its times will be; without samples, plugins only if asked to."""
        is_sample = self._looks_closely or (samples and self._sessions % self._sample_every == 0)
        self._sessions, self._looks_closely, self._times = self._sessions + 1, False, Times()
        if self._wrapped[0] is not catalogue:
            actions = {name: partial(self._action, make) for name, make in catalogue.actions.items()}
            self._wrapped = (catalogue, Catalogue(actions, catalogue.plugins))
        wrapped = self._wrapped[1]
        if is_sample:
            plugins = {name: partial(self._plugin, make, self._times) for name, make in catalogue.plugins.items()}
            wrapped = Catalogue(wrapped.actions, plugins)
        return wrapped, self._times

    def _action(self, make: ActionFactory, arguments: Mapping[str, object]) -> Action:
        return _TimedAction(make(arguments), self._clock, self._times)

    def _plugin(self, make: PluginFactory, times: Times, policy: PluginPolicy) -> Plugin:
        plugin = make(policy)
        for hook in hooks_of(type(plugin)):
            setattr(plugin, hook.name, _TimedHook(getattr(plugin, hook.name), self._clock, times, (policy.name, hook.name)))
        return plugin


class _TimedAction:
    """An action with a watch beside it."""

    def __init__(self, action: Action, clock: Clock, times: Times) -> None:
        self.name = action.name
        self._action, self._clock, self._times = action, clock, times

    def run(self, session: Session) -> None:
        begun = self._clock()
        try:
            self._action.run(session)
        finally:
            ended = self._clock()
            self._times.by_action[self.name] += ended - begun
            self._times.turn_to(None, ended)


class _TimedHook:
    """A method of a plugin with a watch beside it; whose method it is can still be seen."""

    def __init__(
        self, method: Any, clock: Clock, times: Times, key: tuple[str, str]
    ) -> None:  # Any: hooks differ in what they take
        self._method, self._clock, self._times, self._key = method, clock, times, key
        self.__self__ = method.__self__

    def __call__(self, *question: Any, **more: Any) -> Any:
        begun = self._clock()
        gang = _gang_in(question)
        if gang is not None:
            self._times.turn_to(gang, begun)
        try:
            return self._method(*question, **more)
        finally:
            self._times.by_hook[self._key] += self._clock() - begun


def _gang_in(question: tuple[Any, ...]) -> GangKey | None:
    """Return the gang that a question is about."""
    for part in question:
        if isinstance(part, GangState):
            return GangKey(part.key)
        if isinstance(part, TaskState):
            return part.task.gang
    return None
