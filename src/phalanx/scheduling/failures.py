"""Sessions that fail one after the other: when this process is not well, and another one had better lead."""

import traceback
from collections.abc import Callable

MOST_FAILURES, SHORTEST_SECONDS = 5, 10.0
"""So many sessions in a row, over so long, are no accident: what a single object does to a session is mostly over with the next
change, and a burst of changes holds many sessions in a moment."""


class Failures:
    """Counts the sessions that failed since the last one that did not."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with none."""
        self._clock = clock
        self._count, self._since, self._last = 0, 0.0, ""
        self._known: set[str] = set()

    def note(self, problem: Exception) -> bool:
        """Count a session that failed; tell whether none has failed like this before."""
        if not self._count:
            self._since = self._clock()
        self._count, self._last = self._count + 1, f"{type(problem).__name__}: {problem}"
        return self.is_new(problem)

    def is_new(self, problem: Exception) -> bool:
        """Tell whether nothing has failed at this place before."""
        place = str(traceback.extract_tb(problem.__traceback__)[-1:])
        is_new = place not in self._known
        self._known.add(place)
        return is_new

    def clear(self) -> None:
        """A session went well."""
        self._count = 0

    def check(self) -> str | None:
        """Say that sessions fail, if that is no accident."""
        seconds = self._clock() - self._since
        if self._count < MOST_FAILURES or seconds < SHORTEST_SECONDS:
            return None
        return f"the last {self._count} sessions failed, for {seconds:.0f} s by now: {self._last}"
