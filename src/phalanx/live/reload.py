"""The configuration file of a running scheduler: read at the start, and again whenever what it holds has changed.

It is polled by content, not watched: a ConfigMap that is mounted changes by a link that points elsewhere, and a file of 2 kB is
read in less time than it takes to ask whether it changed. A file with a mistake changes nothing: the last good one stays in force.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.redaction import redacted_text
from phalanx.session.policy import Policy
from phalanx.store.bounded_files import read_bounded

POLL_SECONDS = 5.0

Parse = Callable[[bytes], Policy]
"""Makes a checked policy of what the file holds; a mistake is a ConfigError that says where."""
Accept = Callable[[Policy, Policy], None]
"""Looks at the policy in force and the next one; a change that cannot be made while the process runs is a ConfigError."""


@dataclass(frozen=True, slots=True)
class Reload:
    """The file has changed."""

    is_applied: bool
    message: str


def same_process(before: Policy, after: Policy) -> None:
    """Refuse what is settled when the process starts: whose rules it follows, and which objects it looks at."""
    if after.catalogue != before.catalogue:
        raise ConfigError("profile: kai and the others do not change into each other; restart the process, or write it as it was")
    if after.flags != before.flags:
        raise ConfigError("flags: they hold as long as the process runs; restart it, or write them as they were")


class ConfigSource:
    """Has the policy in force."""

    def __init__(self, path: Path, parse: Parse, *, accept: Accept = same_process) -> None:
        """Read the file; a mistake in it is an error now."""
        self._path, self._parse, self._accept = path, parse, accept
        self._seen: bytes | None = self._read()
        self.policy = parse(self._seen)
        self.on_reload: list[Callable[[Reload], None]] = []
        """Called whenever the file has changed, whether it is valid or not."""

    def poll(self) -> None:
        """Look whether the file has changed, and go by what it says now if it is right."""
        try:
            found = self._read()
        except ConfigError as problem:
            self._change(None, str(problem))
            return
        if found != self._seen:
            self._change(found, "")

    def _change(self, found: bytes | None, problem: str) -> None:
        """Take over what was found; what cannot be read is reported once, until it can be read again."""
        if found is None and self._seen is None:
            return
        self._seen = found
        outcome = self._apply(found) if found is not None else _refused(problem)
        for listener in self.on_reload:
            listener(outcome)

    def _apply(self, text: bytes) -> Reload:
        try:
            policy = self._parse(text)
            self._accept(self.policy, policy)
        except ConfigError as problem:
            return _refused(self._located(str(problem)))
        self.policy = policy
        return Reload(True, f"{self._path}: in force from now on")

    def _located(self, text: str) -> str:
        return text if text.startswith(str(self._path)) else f"{self._path}: {text}"

    def _read(self) -> bytes:
        try:
            return read_bounded(self._path)
        except FileNotFoundError:
            raise ConfigError(f"{self._path}: no such file; 'phalanx config show' prints one to begin with") from None
        except SnapshotError as problem:
            raise ConfigError(str(problem)) from problem
        except OSError as problem:
            raise ConfigError(f"{self._path}: cannot be read: {problem.strerror}; let the process read it") from problem

    async def follow(self, *, every_seconds: float = POLL_SECONDS) -> None:
        """Poll until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            self.poll()


def _refused(problem: str) -> Reload:
    return Reload(False, f"{redacted_text(problem)}; the configuration of before stays in force")
