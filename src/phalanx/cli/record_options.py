"""The options of commands that can be recorded, and the recorder they ask for."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from phalanx.cli.policy_options import Duration

if TYPE_CHECKING:
    from phalanx.model.kinds import Document
    from phalanx.recording.entries import Config
    from phalanx.recording.log_writer import Bounds
    from phalanx.recording.recorder import Recorder
    from phalanx.scheduling.cache import SchedulerCache
    from phalanx.scheduling.gates import GatePlanner
    from phalanx.scheduling.loop import SessionLoop

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])  # Any: a command, whatever it takes
SMALLEST_BYTES = 1 << 20
SEGMENTS = 16
"""A recording of the largest size or age has about so many segments, or more; the oldest one is removed for each new one."""
SHORTEST_SEGMENT_SECONDS = 10.0
"""Each segment begins with a checkpoint."""


class Size(click.ParamType[int]):
    """An amount of bytes such as 512Mi or 1Gi; the command gets bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # Any: as click declares it
        """Return the bytes of what was typed."""
        from phalanx.errors import SnapshotError
        from phalanx.model.quantity import parse_quantity

        option = param.opts[-1] if param is not None else self.name
        try:
            found = int(parse_quantity(str(value)))
        except SnapshotError:
            found = -1
        if found < SMALLEST_BYTES:
            raise click.UsageError(f"{option}: {value!r} is not a size of 1Mi or more; write for example 512Mi or 1Gi", ctx)
        return found


def size_options(command: AnyFunction) -> AnyFunction:
    """Add the options that say how much is kept."""
    size = click.option(
        "--record-size", type=Size(), default="1Gi", show_default=True, metavar="SIZE",
        help="Largest size of the recording; the oldest part is removed.",
    )  # fmt: skip
    age = click.option(
        "--record-age", type=Duration(), default="7d", show_default=True, metavar="DURATION",
        help="Oldest part of the recording that is kept.",
    )  # fmt: skip
    return size(age(command))


def record_options(command: AnyFunction) -> AnyFunction:
    """Add the options that say where and how much is recorded."""
    record = click.option(
        "--record", type=click.Path(file_okay=False), metavar="DIR",
        help="Record what the scheduler hears and decides in this directory, for 'phalanx replay'.",
    )  # fmt: skip
    return record(size_options(command))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What was typed."""

    record: str | None = None
    record_size: int = 1 << 30
    record_age: float = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Subject:
    """What is recorded."""

    source: str
    cache: "SchedulerCache"
    objects: "Callable[[], Iterable[Document]]"
    now: Callable[[], float]
    loop: "SessionLoop"
    planner: "GatePlanner | None" = None
    is_known: Callable[[], bool] = lambda: True


@contextmanager
def recorded(
    asked: RecordOptions, subject: Subject, config: "Config", *, report: Callable[[str], None], is_patient: bool = False
) -> "Iterator[Recorder | None]":
    """Record inside the block, if that was asked for."""
    if asked.record is None:
        yield None
        return
    from phalanx.recording.log_writer import LogWriter
    from phalanx.recording.recorder import Recorded, Recorder

    writer = LogWriter(Path(asked.record), bounds_of(asked), report=report, is_patient=is_patient)
    recorder = Recorder(Recorded(subject.source, subject.cache, subject.objects, subject.now, subject.is_known), writer, config)
    recorder.follow(subject.loop)
    if subject.planner is not None:
        recorder.follow_gates(subject.planner)
    recorder.turn()
    try:
        yield recorder
    finally:
        recorder.close()


def bounds_of(asked: RecordOptions) -> "Bounds":
    """Return how much is kept."""
    from phalanx.recording.log_writer import Bounds

    return Bounds(
        asked.record_size, asked.record_age, segment_bytes=max(asked.record_size // SEGMENTS, SMALLEST_BYTES // 4),
        segment_seconds=min(max(asked.record_age / SEGMENTS, SHORTEST_SEGMENT_SECONDS), Bounds().segment_seconds),
    )  # fmt: skip


def config_typed(config: str | None, profile: str | None, gates: tuple[str, ...]) -> "Config":
    """Return the configuration that options name, as a recording keeps it; parts of addresses that may be secret are hidden."""
    from phalanx.config.policies import DEFAULT_PROFILE
    from phalanx.model.redaction import redacted_text
    from phalanx.recording.entries import Config
    from phalanx.store.input_files import read_bytes

    text = "" if config is None else redacted_text(read_bytes(config).decode(errors="replace"))
    return Config("" if text else profile or DEFAULT_PROFILE, text, list(gates))
