"""A contender's process: a scheduler that decides by itself, or the client that binds what it is told."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from benchmarks.live_server import AT_ONCE
from benchmarks.race import raw_binder
from benchmarks.race.contenders import Contender
from benchmarks.race.process_use import Use, use_of
from benchmarks.race.site import Site

from phalanx.dev.processes import launch
from phalanx.errors import PhalanxError

STOP_SECONDS = 20.0
LAST_LINES = 5
RECORDED = re.compile(r"with ([\d.]+) s of processor time")


class Bind(NamedTuple):
    """A pod, and the node that it gets."""

    namespace: str
    pod: str
    uid: str
    node: str


class Running:
    """One process; use it in ``async with``: it is ended at the end of the block."""

    def __init__(self, site: Site, contender: Contender) -> None:
        """Start nothing yet."""
        self._site, self._contender = site, contender
        self._log = site.folder / f"{contender.name}.log"
        self._process: subprocess.Popen[str] | None = None
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> "Running":
        """Do nothing: `begin` starts it."""
        return self

    async def __aexit__(self, *problem: object) -> None:
        """End it."""
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # it has ended by itself, which the block has said
                    stream.close()
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def begin(self, plan: Sequence[Bind]) -> float:
        """Start it and return the moment from which its time counts.

        For a scheduler that is the start of its process, for raw binds the moment at which the first is sent: starting Python and
        opening connections is no work of the API server.
        """
        command = self._contender.command
        if command is None:
            await self._begin_raw(plan)
            begun = time.monotonic()
            await self.bind([])
            return begun
        arguments = command(self._site.kubeconfig(self._contender.name), self._site.folder)
        with self._log.open("a") as log:
            begun = time.monotonic()
            self._process = launch(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return begun

    async def _begin_raw(self, plan: Sequence[Bind]) -> None:
        server, name = urlsplit(self._site.plane.server), self._contender.name
        arguments = [
            sys.executable, "-I", raw_binder.__file__, str(server.hostname), str(server.port),
            str(self._site.plane.certificate), str(self._site.token_file(name)), str(AT_ONCE),
        ]  # fmt: skip
        with self._log.open("a") as log:
            self._process = launch(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        await asyncio.to_thread(self._tell, [])  # connections are open once this is answered
        await asyncio.to_thread(self._write, plan)

    async def bind(self, plan: Sequence[Bind]) -> None:
        """Let raw binds bind these, and what it was told before; a scheduler finds out by itself."""
        if self._contender.command is not None:
            return
        async with self._turn:
            await asyncio.to_thread(self._tell, plan)

    def _tell(self, plan: Sequence[Bind]) -> None:
        self._write(plan)
        print("go", file=self._stream("stdin"), flush=True)
        refused = self._stream("stdout").readline().strip()
        if refused != "0":
            raise PhalanxError(f"raw binds were refused: {refused or self.last_words()}")

    def _write(self, plan: Sequence[Bind]) -> None:
        self._stream("stdin").writelines(f"{' '.join(bind)}\n" for bind in plan)
        self._stream("stdin").flush()

    def _stream(self, name: str) -> IO[str]:
        stream: IO[str] | None = getattr(self._process, name)
        assert stream is not None, "raw binds have pipes"
        return stream

    def use(self) -> Use:
        """Return what it has used so far."""
        assert self._process is not None, "it has begun"
        try:
            return use_of(self._process.pid)
        except (OSError, StopIteration):
            return Use(0.0, 0.0)  # it has ended by itself, which `has_ended` tells

    def has_ended(self) -> bool:
        """Tell whether it has ended by itself, which none should."""
        return self._process is not None and self._process.poll() is not None

    def recording_seconds(self) -> float | None:
        """Return the processor time that its recording took, once it has ended; None if it has none."""
        found = RECORDED.findall(self._log.read_text(errors="replace"))
        return float(found[-1]) if found else None

    def last_words(self) -> str:
        """Return the end of its log."""
        return " / ".join(self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])
