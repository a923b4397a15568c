"""Answers of extenders: sessions read them, so they are recorded, and given again in the same order when a session is replayed.

An extender is another process, and what it says is no function of the cluster. A session asks in a fixed order, so the answers
alone are enough.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

from phalanx.dialects.reading import read_as
from phalanx.plugins.extender import Answer, Endpoint, ExtenderPlugin, Line, Question
from phalanx.session.cycle import Profile
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.questions import PluginFactory

Answered = tuple[str, dict[str, Any]]  # Any: the fields of an answer that say something
"""The verb of a question, and its answer."""
NOTHING = Answer()


class HeardAnswers:
    """Keeps what extenders answer in the session that is held, for each time that its actions run."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._heard: list[tuple[float, list[Answered]]] = []

    def over(self, profile: Profile) -> Profile:
        """Return a scheduler profile whose extenders are listened to."""
        factory = profile.catalogue.plugins.get(ExtenderPlugin.name)
        return profile if factory is None else _with_extender(profile, partial(self._listened_to, factory))

    def _listened_to(self, factory: PluginFactory, policy: PluginPolicy) -> ExtenderPlugin:
        plugin, answers = factory(policy), list[Answered]()
        assert isinstance(plugin, ExtenderPlugin), "it has the name"
        line = plugin.line

        def heard(question: Question) -> Answer:
            answer = line(question)
            if not answers:
                self._heard.append((question.session.snapshot.now, answers))
            answers.append((question.verb, _fields(answer)))
            return answer

        plugin.line = heard
        return plugin

    def taken(self, now: float) -> list[list[Answered]]:
        """Return the answers of the session of this time; those of sessions before it that failed are forgotten."""
        heard, self._heard = self._heard, []
        return [answers for moment, answers in heard if moment == now]


def with_answers(profile: Profile, runs: Sequence[Sequence[Answered]]) -> Profile:
    """Return a scheduler profile whose extenders give answers that were recorded, one run after the other, and then again.

    A profile that can ask no extender stays as it is.
    """
    if ExtenderPlugin.name not in profile.catalogue.plugins or not (runs or _may_ask(profile.policy)):
        return profile
    left = cycle(runs)

    def connect(endpoint: Endpoint) -> Line:
        return _GivenAnswers(left)

    return _with_extender(profile, partial(ExtenderPlugin, connect=connect))


def _may_ask(policy: Policy) -> bool:
    """Tell whether a policy has extenders; those of shards may name plugins of their own."""
    return policy.follows_shards or any(plugin.name == ExtenderPlugin.name for tier in policy.tiers for plugin in tier)


class _GivenAnswers:
    """Answers the questions of one run; which one that is shows when the first is asked."""

    def __init__(self, runs: Iterator[Sequence[Answered]]) -> None:
        self._runs = runs
        self._left: deque[Answered] | None = None

    def __call__(self, question: Question) -> Answer:
        if self._left is None:
            self._left = deque(next(self._runs, ()))
        if not self._left or self._left[0][0] != question.verb:
            return Answer(problem=f"no answer to {question.verb} is in the recording here")
        return read_as(self._left.popleft()[1], Answer)


def _with_extender(profile: Profile, factory: PluginFactory) -> Profile:
    plugins = {**profile.catalogue.plugins, ExtenderPlugin.name: factory}
    return Profile(profile.policy, replace(profile.catalogue, plugins=plugins))


def _fields(answer: Answer) -> dict[str, Any]:  # Any: see Answered
    found = {name: getattr(answer, name) for name in Answer.__slots__}
    kept = {name: value for name, value in found.items() if value != getattr(NOTHING, name)}
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in kept.items()}
