"""`phalanx run`: the scheduler and its controllers on a real cluster."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from phalanx.runtime.live.app import Setup
    from phalanx.store.kube.access import Access

EXAMPLES = """\b
Examples:
  phalanx run --kubeconfig ~/.kube/config --scheduler-name volcano
  phalanx run --config /etc/phalanx/config.yaml --log-format json -v 2
"""
NAME, NAMESPACE = "phalanx", "phalanx-system"
PATH = click.Path(allow_dash=True)


@click.command(epilog=EXAMPLES)
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster; $KUBECONFIG, ~/.kube/config or the pod's own.")
@click.option("--context", metavar="NAME", help="Use this context of the kubeconfig.")
@click.option("--config", type=PATH, metavar="FILE", help="Decide as this configuration says, such as a volcano-scheduler.conf.")
@click.option("--profile", metavar="NAME", help="Decide as a built-in profile says; phalanx unless said otherwise.")
@click.option(
    "--scheduler-name", "names", multiple=True, default=(NAME,), show_default=True, metavar="NAME",
    help="Schedule the pods that name this scheduler; may be given several times.",
)  # fmt: skip
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True, help="Of several replicas let one decide.")
@click.option("--lease-name", default=NAME, show_default=True, metavar="NAME", help="The Lease by which a leader is elected.")
@click.option("--lease-namespace", default=NAMESPACE, show_default=True, metavar="NAME", help="Where that Lease is.")
@click.option("--lease-duration", default=15.0, show_default=True, metavar="SECONDS", help="Others take over after so long.")
def command(**options: Any) -> None:  # Any: as click read them
    """Schedule the gangs of a real cluster until SIGTERM or Ctrl-C.

    Watches the cluster, decides after every change that matters, and writes what was decided: binds, evictions, statuses and
    events. Which group objects it reads depends on which the API server serves. Run several replicas: one leads, the others
    follow and take over.
    """
    import asyncio

    asyncio.run(_run(Options(**options)))


@dataclass(frozen=True, slots=True)
class Options:
    """What was typed."""

    kubeconfig: str | None
    context: str | None
    config: str | None
    profile: str | None
    names: tuple[str, ...]
    leader_elect: bool
    lease_name: str
    lease_namespace: str
    lease_duration: float


async def _run(asked: Options) -> None:
    import asyncio
    import signal

    from phalanx.runtime.live.app import Live
    from phalanx.store.kube.access import access

    reach = access(asked.kubeconfig or "", asked.context or "")
    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    async with reach.client() as client:
        live = Live(client, _setup(asked, reach), report=lambda text: click.echo(text, err=True))
        await live.run(is_over)


def _setup(asked: Options, reach: "Access") -> "Setup":
    from phalanx.cli.policies import DEFAULT_PROFILE, policy_of_file, policy_of_gates, policy_of_profile
    from phalanx.controllers.standard import ControllerSettings, standard_controllers
    from phalanx.runtime.catalogue import connected_catalogue
    from phalanx.runtime.live.app import Setup
    from phalanx.runtime.live.election import Terms
    from phalanx.runtime.live.sessions import Mind
    from phalanx.sim.sshkeys import pair_for

    policy = policy_of_file(asked.config) if asked.config else policy_of_profile(asked.profile or DEFAULT_PROFILE)
    mind = Mind(policy, connected_catalogue(policy.family))
    chosen = ControllerSettings(schedulers=frozenset(asked.names), scheduler=(policy, mind.catalogue))
    identity = _identity()
    third = asked.lease_duration / 15.0
    return Setup(
        mind=mind, gates=Mind(policy_of_gates(), connected_catalogue("")),
        controllers=standard_controllers(pair_for, chosen, has_admission=policy.has_admission),
        schedulers=frozenset(asked.names), identity=identity,
        terms=Terms(asked.lease_name, asked.lease_namespace, identity, asked.lease_duration, 10 * third, 2 * third)
        if asked.leader_elect else None,
    )  # fmt: skip


def _identity() -> str:
    import os
    import socket
    from uuid import uuid4

    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid4()}"
