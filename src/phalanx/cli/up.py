"""`phalanx up`: an embedded cluster on this machine, with the API that kubectl knows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli import policy_options
from phalanx.cli.clock_speed import speed_of
from phalanx.cli.policy_options import PATH
from phalanx.cli.record_options import RecordOptions, Subject, config_typed, record_options, recorded

if TYPE_CHECKING:
    from phalanx.session.policy import Policy
    from phalanx.sim.embedded import Embedded
    from phalanx.sim.statefile import State
    from phalanx.sim.world import World
    from phalanx.ui.serving.page import Page

EXAMPLES = """\b
Examples:
  phalanx up --nodes 8 --gpus 8
  phalanx up examples/deadlock --state cluster.json
"""

NODES, GPUS, MOST_NODES = 4, 8, 100_000
SPEEDS = "1x or 60x"
CPU_PER_NODE, MEMORY_PER_NODE = "96", "1024Gi"


@click.command(epilog=EXAMPLES)
@click.argument("paths", type=PATH, nargs=-1, metavar="[PATH]...")
@click.option(
    "--nodes",
    type=click.IntRange(0, MOST_NODES),
    metavar="N",
    help=f"Number of nodes to create; {NODES} by default if the paths have none.",
)
@click.option("--gpus", type=click.IntRange(min=0), default=GPUS, show_default=True, metavar="N", help="GPUs of each created node.")
@policy_options.config
@policy_options.profile
@policy_options.gates
@policy_options.scheduler_names
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port on 127.0.0.1; 0 picks a free one.")
@click.option(
    "--state",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Load the cluster from this file if it exists, and save it there.",
)
@record_options
@click.option("--speed", default="1x", show_default=True, metavar="FACTOR", help="Speed of the cluster's clock, such as 60x.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Start an embedded cluster on this machine and keep it running until Ctrl-C.

    Nodes, queues and pods come from the paths. Pods start one second after they are bound and run as long as their annotation
    phalanx.dev/duration says. The scheduler is the one of 'phalanx schedule'. Use 'phalanx apply', 'get', 'describe' and
    'delete' with it, or 'kubectl --server'.
    """
    import asyncio
    from contextlib import nullcontext

    from phalanx.cli.failures import TRACED_FROM, verbosity_typed
    from phalanx.cli.held_files import held
    from phalanx.live.logs import logging_started

    asked = UpOptions(**options)
    asked.refuse_clashes()
    verbosity = verbosity_typed(ctx.find_root().obj)
    logging = logging_started(verbosity) if verbosity >= TRACED_FROM else nullcontext()
    with logging, held(Path(asked.state)) if asked.state else nullcontext():
        asyncio.run(_run(asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions(RecordOptions):
    """What was typed."""

    paths: tuple[str, ...]
    nodes: int | None
    gpus: int
    config: str | None
    profile: str | None
    gates: tuple[str, ...]
    names: tuple[str, ...]
    port: int
    state: str | None
    speed: str

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        policy_options.refuse_two_policies(self.config, self.profile)
        speed_of(self.speed, SPEEDS)

    @property
    def factor(self) -> float:
        """How many seconds of the cluster pass in one."""
        return speed_of(self.speed, SPEEDS)


async def _run(asked: UpOptions) -> None:
    import asyncio

    from phalanx.cli import output
    from phalanx.cli.lookup import leave_address, take_address_back
    from phalanx.sim.embedded import Embedded, ServingPlace
    from phalanx.web.server import LOCALHOST

    world = _world(asked)
    embedded = Embedded(world, speed=asked.factor, complain=output.note)
    is_over = asyncio.Event()
    _end_on_signals(is_over)
    addresses: list[str] = []

    def announce(address: str) -> None:
        addresses.append(address)
        first = leave_address(address)
        _greet(world, address)
        if first:
            output.note(f"other commands go to {first}, which was there first; to reach this cluster, add --server {address}")

    subject = Subject("up", world.cache, world.store.everything, lambda: world.now, world.loop, world.planner)
    try:
        with recorded(asked, subject, config_typed(asked.config, asked.profile, asked.gates), report=output.note):
            place = ServingPlace(LOCALHOST, asked.port, Path(asked.state) if asked.state else None)
            await embedded.run(place, announce, is_over, _page(asked, embedded))
    finally:
        for address in addresses:
            take_address_back(address)
    click.echo("stopped" + (f"; the state is in {asked.state}" if asked.state else ""), err=True)


def _page(asked: UpOptions, embedded: "Embedded") -> "Page":
    """Return the page that shows the cluster, and what was recorded of it."""
    from dataclasses import replace

    from phalanx.cli.ui_questions import SETUP, Worlds, cluster_questions, recording_questions
    from phalanx.ui.board import LookPace
    from phalanx.ui.moments import RecordedMoments
    from phalanx.ui.recorded.folder import RecordedFolder
    from phalanx.ui.serving.access import Open
    from phalanx.ui.serving.answers import served
    from phalanx.ui.serving.page import Page
    from phalanx.ui.serving.reader import PageSetup
    from phalanx.ui.showing import Showing

    setup, source = replace(SETUP, pace=LookPace(factor=10.0)), embedded.page_source(asked.names)
    moments = RecordedMoments(RecordedFolder(Path(asked.record), setup)) if asked.record else None
    extra = recording_questions(Worlds(asked.record)) if asked.record else cluster_questions()
    shown = PageSetup(source.title, Open(), Showing(source, setup), moments, extra=extra)
    return Page(lambda: served(shown))


def _end_on_signals(is_over: Any) -> None:
    import asyncio
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)


def _greet(world: "World", address: str) -> None:
    from phalanx.explain.reason_text import counted
    from phalanx.model.kinds import POD, kind_at

    nodes, pods = len(world.store.items(kind_at("", "nodes"))), len(world.store.items(POD))
    click.echo(f"cluster with {counted(nodes, 'node')} and {counted(pods, 'pod')} at {address}")
    click.echo(f"look at it in a browser: {address}/ui/", err=True)
    click.echo("try 'phalanx apply -f examples/deadlock' and 'phalanx get gangs -A' in another terminal; Ctrl-C ends it", err=True)


def _world(asked: UpOptions) -> "World":
    import time
    from dataclasses import replace

    from phalanx.config.policies import policy_of_gates, with_gates
    from phalanx.config.schedulers import our_schedulers
    from phalanx.controllers.builtin import ControllerSettings, standard_controllers
    from phalanx.live.catalogue import connected
    from phalanx.live.sshkeys import new_pair
    from phalanx.sim.statefile import read_state
    from phalanx.sim.world import World

    policy = with_gates(policy_options.asked_policy(asked.config, asked.profile), asked.gates)
    state = read_state(Path(asked.state)) if asked.state else None
    start = time.time() if state is None else state.now
    profile, gates = connected(policy), connected(policy_of_gates(policy))
    chosen = ControllerSettings(scheduler=(policy, profile.catalogue))
    if asked.names:
        chosen = replace(chosen, schedulers=frozenset(asked.names))
    controllers = standard_controllers(new_pair, chosen, has_admission=policy.has_admission)
    ours = our_schedulers(asked.names)
    world = World(profile, start=start, controllers=controllers, gates=gates, is_served=True, schedulers=ours)
    _fill(world, asked, policy, state)
    return world


def _fill(world: "World", asked: UpOptions, policy: "Policy", state: "State | None") -> None:
    """Bring in the saved objects, those of the paths, and nodes and a queue where there would be none."""
    from phalanx.cli.embedded_objects import served_objects

    documents = served_objects(asked.paths).documents
    if state is not None:
        world.store.restore(state.objects, version=state.version, numbers=state.numbers)
    there = {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in world.store.everything()}
    has_nodes = any(kind == "Node" for kind, _, _ in there) or any(item["kind"] == "Node" for item in documents)
    made = _made(asked.nodes if asked.nodes is not None else 0 if has_nodes else NODES, asked.gpus, policy.dialect)
    wanted = {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in (*made, *documents)}
    world.load(item for key, item in wanted.items() if key not in there)


def _made(nodes: int, gpus: int, dialect: str) -> list[dict[str, Any]]:
    """Return nodes of one make, and the queue in which gangs wait that name none."""
    from phalanx.sim.workload import Machine, Workload
    from phalanx.sim.workload_objects import cluster_objects

    offers = {"cpu": CPU_PER_NODE, "memory": MEMORY_PER_NODE, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    machines = tuple(Machine(f"node-{number}", offers) for number in range(1, nodes + 1))
    made = list(cluster_objects(Workload((), machines, {"default": 1}), dialect))
    if dialect == "volcano":
        made.append({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"},
            "spec": {"weight": 1}, "status": {"state": "Open"},
        })  # fmt: skip
    return made
