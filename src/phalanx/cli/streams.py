"""What reaches a terminal, a pipe or a file: stdout and stderr, in which control characters are shown and not sent.

Names, messages and annotations may hold anything, and a terminal obeys what it is sent. While a command runs, all that it writes
passes through here, text and bytes. Control characters are shown as kubectl shows them (`^[`); what hides or reorders text, and
controls beyond ASCII, as `\\u202e`, which means the same inside a string of JSON and inside double quotes in YAML. Line ends and
tabs pass: a text that has to stay in one line goes through `visible`.

Colours and progress lines are marked with `own`. The mark is drawn anew in every process, so nobody can write it into a name.
"""

import errno
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

HIDDEN = "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
"""Controls beyond ASCII, marks that reorder text, characters without a shape, and what else ends a line."""
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{HIDDEN}]")
_HIDDEN = re.compile(f"[{HIDDEN}]")
_BLANKS = str.maketrans("\t\n\r", "   ")
_MARK = f"\ue000{os.urandom(8).hex()}"
_MARKED = re.compile(f"{_MARK}([0-9a-f]{{2}})")
BEYOND_ASCII = 127


class OutputError(Exception):
    """Stdout takes no more, for a reason that the system gives."""

    def __init__(self, problem: OSError) -> None:
        """Keep the reason."""
        super().__init__(problem.strerror or str(problem))
        self.is_pipe_closed = problem.errno == errno.EPIPE


def escaped(text: str) -> str:
    """Return a text in which control characters, except line ends and tabs, can be seen and do nothing."""
    return _CONTROL.sub(_shown, text)


def visible(text: str) -> str:
    """Return a text in one line in which control characters can be seen and do nothing."""
    return escaped(text.translate(_BLANKS))


def has_hidden(text: str) -> bool:
    """Tell whether a text has characters that are shown as `\\u202e`."""
    return _HIDDEN.search(text) is not None


def own(text: str) -> str:
    """Mark the control characters of a text as meant."""
    return _CONTROL.sub(lambda found: f"{_MARK}{ord(found[0]):02x}", text)


def sent(text: str) -> str:
    """Return what a text becomes on its way to a terminal: ours are sent, others are shown."""
    return _MARKED.sub(lambda found: chr(int(found[1], 16)), escaped(text))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"^{chr(code + 64)}" if code < BEYOND_ASCII else f"\\u{code:04x}"


# --- streams -------------------------------------------------------------------------------------------------------------


class _Outlet(io.BufferedIOBase):
    """Takes UTF-8 and passes it on to a stream as text that does nothing to a terminal."""

    def __init__(self, target: TextIO | None, *, is_result: bool) -> None:
        """Without a target the stream was closed before we started; only a result that cannot be written is a failure."""
        self._target, self._is_result = target, is_result

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._target is not None and self._target.isatty()

    def fileno(self) -> int:
        if self._target is None:
            raise io.UnsupportedOperation("fileno")
        return self._target.fileno()

    def write(self, data: Any) -> int:  # Any: whatever has bytes
        text = bytes(data).decode("utf-8", "backslashreplace")
        if text:  # click writes nothing to find out what kind of stream it has, and hides what goes wrong then
            with self._guarded():
                self._put(sent(text))
        return len(data)

    def _put(self, text: str) -> None:
        if self._target is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._target.write(text)

    def flush(self) -> None:
        with self._guarded():
            if self._target is not None and not self._target.closed:
                self._target.flush()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self._drop_rest()
            if self._is_result:
                raise OutputError(problem) from problem

    def _drop_rest(self) -> None:
        """Let what was not written go nowhere: the interpreter would complain about it when it ends."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)


class _Stream(io.TextIOWrapper):
    """A text stream in UTF-8 over an outlet; it has the encoding of the stream behind it, by which signs are chosen."""

    def __init__(self, target: TextIO | None, *, is_result: bool) -> None:
        super().__init__(_Outlet(target, is_result=is_result), "utf-8", "backslashreplace", "", write_through=True)  # type: ignore[arg-type]  # has what it needs of one
        self._encoding = getattr(target, "encoding", None) or "utf-8"
        if isinstance(target, io.TextIOWrapper):
            target.reconfigure(errors="backslashreplace")

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the class behind it never writes it
        return self._encoding


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Put the streams of a process behind outlets inside the block; what was written is flushed at its end."""
    before = sys.stdout, sys.stderr
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115  # was closed before we started: nothing to read
    ours = _Stream(sys.stdout, is_result=True), _Stream(sys.stderr, is_result=False)
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        try:
            for stream in ours:
                stream.flush()
        finally:
            for stream in ours:
                stream.detach()
