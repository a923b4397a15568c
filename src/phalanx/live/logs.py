"""Logs of a running scheduler: on stderr, as text or as JSON, as talkative as `-v` says.

A line has a verbosity as in klog: 0 is always written, higher ones only when `-v` asks for them. The standard library counts the
other way round; `level_of` is the bridge, and errors and warnings are written whatever `-v` says.

What a line is about stands in its fields (`gang`, `pod`, `node`, `queue`, `cycle`, and others), in JSON each under its own key,
as text behind the sentence where the sentence does not say it anyway.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TextIO

import msgspec

Form = Literal["text", "json"]
FORMS: tuple[Form, ...] = ("text", "json")
ROOT = "phalanx"
MOST_TALKATIVE = 9
NAMES = ("gang", "pod", "node", "queue")
FIELDS = (*NAMES, "cycle")
"""In the order in which JSON has them."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something to be logged."""

    verbosity: int
    text: str
    fields: Mapping[str, object] = field(default_factory=dict)


def level_of(verbosity: int) -> int:
    """Return the level under which the standard library knows a verbosity."""
    return logging.INFO - min(verbosity, MOST_TALKATIVE)


def logger_of(name: str) -> logging.Logger:
    """Return the logger of a part of the process, such as `scheduler`."""
    return logging.getLogger(f"{ROOT}.{name}")


def verbosity_of(logger: logging.Logger) -> int:
    """Return up to which verbosity a logger writes; -1 when it writes errors and warnings only."""
    return max(logging.INFO - logger.getEffectiveLevel(), -1)


def log_line(logger: logging.Logger, line: Line) -> None:
    """Log one line."""
    logger.log(level_of(line.verbosity), "%s", line.text, extra={"fields": line.fields})


def log_lines(logger: logging.Logger, lines: Callable[[int], Iterable[Line]]) -> None:
    """Log the lines that somebody makes when told how talkative to be; if nothing would be written, nobody is asked."""
    verbosity = verbosity_of(logger)
    if verbosity >= 0:
        for line in lines(verbosity):
            log_line(logger, line)


def start_logging(verbosity: int = 0, form: Form = "text", *, stream: TextIO | None = None) -> logging.Handler:
    """Write logs to stderr, or to a stream, from now on; libraries write their warnings and errors to it too."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.getLogger().addHandler(handler)
    logging.getLogger(ROOT).setLevel(level_of(verbosity))
    return handler


def stop_logging(handler: logging.Handler) -> None:
    """Undo `start_logging`."""
    logging.getLogger().removeHandler(handler)
    logging.getLogger(ROOT).setLevel(logging.NOTSET)


@contextmanager
def logging_started(verbosity: int = 0, form: Form = "text") -> Iterator[None]:
    """Write logs to stderr for as long as something lasts."""
    handler = start_logging(verbosity, form)
    try:
        yield
    finally:
        stop_logging(handler)


class _Text(logging.Formatter):
    """``2026-01-01T12:00:00.000Z INFO  scheduler  gang ml/bert starts  cycle=12 queue=research``."""

    def format(self, record: logging.LogRecord) -> str:
        message, fields = record.getMessage(), _fields(record)
        shown = {"cycle": fields["cycle"]} if "cycle" in fields else {}
        shown |= {key: fields[key] for key in NAMES if key in fields and not _says(message, fields[key])}
        shown |= {"err": error} if (error := _error(record)) else {}
        rest = " ".join(f"{key}={_quoted(value)}" for key, value in shown.items())
        head = f"{_moment(record)} {_severity(record).upper():<5} {_name(record)}"
        line = _one_line("  ".join(filter(None, (head, message, rest))))
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    """One object to a line; keys in a fixed order."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        found: dict[str, object] = {"ts": _moment(record), "level": _severity(record)}
        found |= {"v": logging.INFO - record.levelno} if record.levelno <= logging.INFO else {}
        found |= {"logger": _name(record), "msg": record.getMessage()}
        found |= {"err": error} if (error := _error(record)) else {}
        found |= {key: fields[key] for key in FIELDS if key in fields}
        found |= {key: value for key, value in fields.items() if key not in found}
        found |= {"stacktrace": self.formatException(record.exc_info)} if record.exc_info else {}
        return msgspec.json.encode(found, enc_hook=str).decode()


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    fields: Mapping[str, object] = getattr(record, "fields", {})
    return fields


def _error(record: logging.LogRecord) -> str:
    """Return what went wrong: the field `err`, or the exception that is logged."""
    if "err" in _fields(record):
        return str(_fields(record)["err"])
    error = record.exc_info[1] if record.exc_info else None
    return "" if error is None else f"{type(error).__name__}: {error}"


def _severity(record: logging.LogRecord) -> str:
    if record.levelno <= logging.INFO:
        return "info"
    return "warn" if record.levelno < logging.ERROR else "error"


def _says(message: str, value: object) -> bool:
    """Tell whether a sentence has a name in it as a word."""
    return str(value) in (word.strip("'\",:;()") for word in message.split())


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _name(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{ROOT}.")


def _quoted(value: object) -> str:
    text = str(value)
    return text if text and not any(mark in text for mark in ' "=\n') else json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    """Return text in which nothing that came from outside begins a line of its own."""
    return text.replace("\r", "\\r").replace("\n", "\\n")
