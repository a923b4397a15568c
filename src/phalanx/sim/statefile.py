"""The state of an embedded cluster in a file: JSON with a version, written whole or not at all."""

import os
from pathlib import Path
from typing import Any

import msgspec

from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.bounds import NESTING, STATE_BYTES, is_too_deep
from phalanx.store.bounded_files import read_bounded

FORMAT = 1


class State(msgspec.Struct):
    """Everything that is kept between two runs."""

    format: int
    now: float
    """The clock of the cluster, in seconds since 1970; it stands still while the cluster is down."""
    version: int
    numbers: int
    objects: list[dict[str, Any]]


def read_state(path: Path) -> State | None:
    """Return the state in a file; None if there is no file yet."""
    try:
        state = msgspec.json.decode(read_bounded(path, STATE_BYTES), type=State)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from problem
    except SnapshotError as problem:
        raise ConfigError(str(problem)) from problem
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: not the state of a cluster: {problem}; name another file to begin anew") from problem
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply: {NESTING.text}") from None
    if is_too_deep(state.objects):
        raise ConfigError(f"{path}: nested too deeply: {NESTING.text}")
    if state.format != FORMAT:
        raise ConfigError(
            f"{path}: state of format {state.format}, this program reads format {FORMAT}; name another file to begin anew"
        )
    return state


def write_state(path: Path, state: State) -> None:
    """Put a state in the place of the file's content at once: whoever reads finds the old one or the new one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as problem:
        aside.unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written: {problem.strerror}") from problem
