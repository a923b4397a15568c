"""One replica of `phalanx run`: its own application object, all controllers and the binder, unchanged, on a wire of its own."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from random import Random

from phalanx.config.policies import policy_of_gates
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.controllers.controller import Controller
from phalanx.live.app import Live, Setup
from phalanx.live.catalogue import connected
from phalanx.live.clock import LoopClock
from phalanx.live.election import Terms
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.sshkeys import pair_for
from phalanx.testing.storm.loop import Process
from phalanx.testing.storm.server import Server
from phalanx.testing.storm.wire import Wire

SCHEDULER = "phalanx"
LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 15.0, 10.0, 2.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all replicas share."""

    server: Server
    policy: Policy
    wall: Callable[[], float]
    """Seconds since 1970, by a clock that is right."""
    complain: Callable[[str, str], None]
    """Called with the name of a replica and what it reports."""
    lease: tuple[float, float, float] = (LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS)
    """How long it lasts, how long a leader tries to renew it, and seconds between two tries."""


@dataclass(slots=True)
class _Generation:
    """One process of a replica."""

    process: Process
    wire: Wire
    is_over: asyncio.Event
    task: "asyncio.Task[None]"
    is_doomed: bool = False

    def bury(self) -> None:
        """Let it end in its own way, on a wire that carries nothing."""
        self.wire.is_over = True
        self.is_over.set()
        self.process.bury()


class Replica:
    """A process that is started, frozen, killed and started again."""

    def __init__(self, around: Surroundings, name: str, seed: str) -> None:
        """Begin stopped."""
        self._around, self.name, self._seed = around, name, seed
        self.wired: type[Wire] = Wire
        self.generation = 0
        self.clock_offset = 0.0
        self.process: Process | None = None
        self.live: Live | None = None
        self.wire: Wire | None = None
        self._is_over = asyncio.Event()
        self._past: list[_Generation] = []
        """All generations: what was killed must not be collected as long as the storm lasts, or its `finally` runs."""
        self.requests = 0
        self.started: Callable[[Replica], None] = lambda replica: None
        """Called with every process that is made, before it runs."""

    @property
    def is_running(self) -> bool:
        """Tell whether there is a process, frozen or not."""
        return self.process is not None and not self.process.is_dead

    @property
    def is_leader(self) -> bool:
        """Tell whether this replica believes that it leads."""
        return self.is_running and self.live is not None and self.live.is_leader

    def start(self) -> None:
        """Start a process, if there is none."""
        if self.is_running:
            return
        self.generation += 1
        process = self.process = Process(f"{self.name}.{self.generation}")
        wire = self.wire = self.wired(self._around.server, Random(f"{self._seed}/{process.name}"), outside=Context())
        self._is_over = asyncio.Event()
        context = process.context()
        self.live = context.run(self._made, wire, process.name)
        self.started(self)
        task = asyncio.get_running_loop().create_task(self.live.run(self._is_over), context=context)
        task.add_done_callback(lambda ended: self._ended(process, wire, ended))
        self._past.append(_Generation(process, wire, self._is_over, task))

    def _made(self, wire: Wire, identity: str) -> Live:
        loop = asyncio.get_running_loop()
        clock = LoopClock(wall=lambda: self._around.wall() + self.clock_offset, boot=loop.time)
        return Live(wire, _setup(self._around, identity), report=lambda text: self._report(identity, text), clock=clock)

    def _report(self, identity: str, text: str) -> None:
        self._around.complain(identity, text)

    def _ended(self, process: Process, wire: Wire, task: "asyncio.Task[None]") -> None:
        if wire.is_over:
            return
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._around.complain(process.name, f"ended, please report it: {problem!r}")
        if process is self.process:
            process.is_dead = True
            self._hang_up()

    def _hang_up(self) -> None:
        if self.wire is not None:
            self.requests += self.wire.sent
            self.wire.close()

    def kill(self) -> None:
        """End the process as SIGKILL does."""
        if self.is_running and self.process is not None:
            self.process.kill()
            self._hang_up()

    def stop(self) -> None:
        """End the process as SIGTERM does."""
        self._is_over.set()

    def freeze(self) -> None:
        """Stop the process as SIGSTOP does."""
        if self.process is not None:
            self.process.is_frozen = True

    def thaw(self) -> None:
        """Let it go on."""
        if self.process is not None and self.process.is_frozen:
            self.process.thaw()

    def bury(self) -> None:
        """Let the tasks of all generations end, once nobody looks any more."""
        for past in self._past:
            past.bury()
            past.task.cancel()

    def bury_past(self) -> None:
        """Let the tasks of earlier generations end that were dead at the last call; they hear and say nothing any more."""
        self._past = [past for past in self._past if not past.task.done()]
        for past in self._past:
            if past.process.is_dead and past.is_doomed:
                past.bury()
            past.is_doomed = past.process.is_dead


def controllers_of(profile: Profile, own: frozenset[str] = frozenset({SCHEDULER})) -> Sequence[Controller]:
    """Return the controllers of a replica that schedules for these names."""
    policy = profile.policy
    settings = ControllerSettings(schedulers=own, scheduler=(policy, profile.catalogue), own_schedulers=own)
    return standard_controllers(pair_for, settings, has_admission=policy.has_admission)


def _setup(around: Surroundings, identity: str) -> Setup:
    policy = around.policy
    profile: Profile = connected(policy)
    return Setup(
        profile=profile, gates=connected(policy_of_gates(policy)),
        controllers=controllers_of(profile), schedulers=frozenset({SCHEDULER}), identity=identity,
        terms=Terms("phalanx", "default", identity, *around.lease),
    )  # fmt: skip
