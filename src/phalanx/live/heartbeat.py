"""Whether the event loop still turns, for whoever asks whether the process is well."""

from phalanx.scheduling.timing import Clock

LONGEST_SILENCE_SECONDS = 60.0


class Heartbeat:
    """Knows when the loop turned last."""

    def __init__(self, clock: Clock, *, longest_silence_seconds: float = LONGEST_SILENCE_SECONDS) -> None:
        """Begin as if it turned now."""
        self._clock, self._longest, self._last = clock, longest_silence_seconds, clock()

    def beat(self) -> None:
        """The loop turns."""
        self._last = self._clock()

    def check(self) -> str | None:
        """Say that the loop stands still, if it does."""
        silence = self._clock() - self._last
        if silence <= self._longest:
            return None
        return f"the loop has not turned for {silence:.0f} s, at most {self._longest:g} s are allowed"
