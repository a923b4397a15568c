"""The search for what would start a gang.

Families of candidates (`families/`) are made from what the session says that it lacks. Every candidate is tried by a whole session,
so what is found is what the engine would decide. Of something that can be more or less, the least that is enough is looked for: the
guess of the family first, then by halves; with a step less the gang does not start. If no single change is enough, pairs are tried:
a change after which the gang waits for another reason, and one that the new reason suggests.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from phalanx.dialects.status import placeable
from phalanx.errors import PhalanxError
from phalanx.explain.reading import Reading
from phalanx.explain.reason_code import reason_code
from phalanx.state.verdict import FitError
from phalanx.whatif.families import FAMILIES, Family
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate, Changes, Findings, Remedy
from phalanx.whatif.trial_cluster import Trial, TrialCluster, starts

Clock = Callable[[], float]
MOST_STEPS = 12
"""First changes from which pairs are tried."""


class OutOfTime(Exception):
    """No time is left for another session."""


def search(cluster: TrialCluster, gang: str, trial: Trial, *, clock: Clock, budget_seconds: float) -> Findings:
    """Return what would start a gang that waits; nothing for one that does not."""
    reading = trial.reading(gang)
    if reading is None or starts(reading):
        return Findings((), 0)
    return _Search(cluster, gang, clock, clock() + budget_seconds).run(reading)


class _Search:
    def __init__(self, cluster: TrialCluster, gang: str, clock: Clock, deadline: float) -> None:
        self._cluster, self._gang, self._clock, self._deadline = cluster, gang, clock, deadline
        self._tried: dict[tuple[str, ...], Reading | None] = {}
        self._untried: list[str] = []
        self._longest = 0.0
        """Seconds of the longest session: none is begun that may end too late."""

    def run(self, reading: Reading) -> Findings:
        """Try single changes, and pairs where none of them is enough."""
        steps: list[tuple[Candidate, Reading]] = []
        remedies = list(self._singles(reading, steps))
        if not remedies and not self._untried:
            remedies = list(self._pairs(reading, steps))
        return Findings(remedies, len(self._tried), tuple(dict.fromkeys(self._untried)))

    # --- single changes ----------------------------------------------------------------------------------------------

    def _singles(self, reading: Reading, steps: list[tuple[Candidate, Reading]]) -> Iterator[Remedy]:
        question = Question(self._cluster, reading)
        for family in FAMILIES:
            for candidate in self._candidates(family, question):
                try:
                    found = self._least(candidate)
                    remedy = None if found is None else self._remedy(candidate, found)
                except OutOfTime:
                    self._untried.append(family.title)
                    break
                if remedy is not None:
                    yield remedy
                    if family.is_one_enough:
                        break
                elif found is None:
                    after = self._note_step(candidate, reading, steps)
                    if after is not None and family.is_chained:
                        yield from self._with_first(candidate, after, set(), [family])

    def _candidates(self, family: Family, question: Question) -> Iterable[Candidate]:
        if self._is_late():
            candidates = list(family.candidates(question))[:1]
            self._untried.extend(family.title for _ in candidates)
            return ()
        return family.candidates(question)

    def _note_step(self, candidate: Candidate, before: Reading, steps: list[tuple[Candidate, Reading]]) -> Reading | None:
        """Remember a change after which the gang waits for another reason; return what the session makes of it then."""
        after = self._tried.get(_key(candidate.changes(candidate.most)))
        if after is None or _cause(after) == _cause(before) or len(steps) == MOST_STEPS:
            return None
        steps.append((candidate, after))
        return after

    def _remedy(self, candidate: Candidate, steps: int) -> Remedy | None:
        """Return what was found; None where a part of several changes is enough, which another candidate has."""
        changes = candidate.changes(steps)
        if steps > 1:
            smaller = [candidate.changes(steps - 1)]
        else:
            smaller = [(*changes[:number], *changes[number + 1 :]) for number in range(len(changes)) if len(changes) > 1]
            if any(self._starts(part) for part in smaller):
                return None
        return Remedy(f"would start {candidate.sentence(steps)}", changes, tuple(smaller))

    # --- pairs -------------------------------------------------------------------------------------------------------

    def _pairs(self, reading: Reading, steps: Sequence[tuple[Candidate, Reading]]) -> Iterator[Remedy]:
        """Yield pairs of changes that are enough together; neither of both is enough alone."""
        seen: set[frozenset[str]] = set()
        for first, after in steps:
            try:
                yield from self._with_first(first, after, seen, FAMILIES)
            except OutOfTime:
                self._untried.append("pairs of changes")
                return

    def _with_first(
        self, first: Candidate, after: Reading, seen: set[frozenset[str]], families: Sequence[Family]
    ) -> Iterator[Remedy]:
        begun = first.changes(first.most)
        with self._cluster.with_changes(begun):
            candidates = [list(family.candidates(Question(self._cluster, after))) for family in families]
        for family in candidates:
            for second in family:
                mark = frozenset(change.text.partition("=")[0] for change in (*begun, *second.changes(1)))
                if mark in seen or len(mark) < len(begun) + 1:
                    continue
                seen.add(mark)
                remedy = self._paired(first, second)
                if remedy is not None:
                    yield remedy
                    break

    def _paired(self, first: Candidate, second: Candidate) -> Remedy | None:
        """Return the least of both that is enough: of the second first, then of the first."""
        begun = first.changes(first.most)
        more = self._least(replace(second, changes=lambda n: (*begun, *second.changes(n))))
        if more is None:
            return None
        rest = second.changes(more)
        least = self._least(replace(first, changes=lambda n: (*first.changes(n), *rest), guess=first.most))
        if least is None or self._starts(rest) or self._starts(first.changes(least)):
            return None
        if self._tried[_key(rest)] is None:
            return None  # it is about something that only the first change makes
        less = [(*first.changes(least - 1), *rest)] if least > 1 else []
        less += [(*first.changes(least), *second.changes(more - 1))] if more > 1 else []
        smaller = [part for part in less if not self._starts(part)]
        sentence = f"would start {first.sentence(least)} and {second.sentence(more)}"
        return Remedy(sentence, (*first.changes(least), *rest), (first.changes(least), rest, *smaller))

    # --- sessions ----------------------------------------------------------------------------------------------------

    def _least(self, candidate: Candidate) -> int | None:
        """Return the least number of steps with which the gang starts; None if it does not start with the most."""
        guess = max(1, min(candidate.guess, candidate.most))
        low, high = 0, guess
        if not self._starts(candidate.changes(guess)):
            if guess == candidate.most or not self._starts(candidate.changes(candidate.most)):
                return None
            low, high = guess, candidate.most
        elif guess > 1 and not self._starts(candidate.changes(guess - 1)):
            return guess
        elif guess > 1:
            high = guess - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._starts(candidate.changes(middle)) else (middle, high)
        return high

    def _starts(self, changes: Changes) -> bool:
        key = _key(changes)
        if key not in self._tried:
            if self._is_late():
                raise OutOfTime
            self._tried[key] = self._read(changes)
        reading = self._tried[key]
        return reading is not None and starts(reading)

    def _read(self, changes: Changes) -> Reading | None:
        """Return what a session makes of the gang; None where such a change cannot be made."""
        began = self._clock()
        try:
            with self._cluster.with_changes(changes) as cluster:
                return cluster.decide().reading(self._gang)
        except PhalanxError:
            return None
        finally:
            self._longest = max(self._longest, self._clock() - began)

    def _is_late(self) -> bool:
        return self._clock() + self._longest >= self._deadline


def _key(changes: Changes) -> tuple[str, ...]:
    return tuple(change.text for change in changes)


def _cause(reading: Reading) -> tuple[object, ...]:
    """Return why a gang waits, and how far it came."""
    gang = reading.gang
    refusals = {(verdict.reason, verdict.numbers.get("resource", "")) for verdict in gang.verdicts}
    errors = (task.error for task in gang.tasks if isinstance(task.error, FitError))
    obstacles = {reason for error in errors for reason in error.counts}
    return reason_code(reading.outcome, reading.snapshot), refusals, obstacles, placeable(gang)
