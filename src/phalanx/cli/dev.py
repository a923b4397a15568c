"""`phalanx dev`: a real Kubernetes control plane on this machine, without containers."""

from pathlib import Path

import click

NODES, GPUS = 8, 8
FOLDER = click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Directory of its files; ~/.cache/phalanx/cluster by default.",
)  # fmt: skip


@click.group(
    epilog="\b\nExamples:\n  phalanx dev cluster up --nodes 100\n  phalanx dev build", no_args_is_help=True,
)  # fmt: skip
def command() -> None:
    """Run a real Kubernetes control plane on this machine, for tests and experiments.

    etcd, kube-apiserver and kube-controller-manager are built from source and run on loopback ports; kwok simulates the
    kubelets. No containers are needed.
    """


@command.command(
    short_help="Build the programs of a control plane.",
    epilog="\b\nExamples:\n  phalanx dev build\n  phalanx dev build kubectl helm",
)
@click.argument("names", nargs=-1, metavar="[PROGRAM]...")
def build(names: tuple[str, ...]) -> None:
    """Build the programs of a control plane, and the operators of tests, that have not been built yet; most of them by default.

    Some are built only by name: the schedulers that benchmarks compare with, vc-scheduler and coscheduling, further
    operators: jobset, lws, mpi-operator, vc-controller-manager, kueue, trainer, and cluster-autoscaler. So are
    kube-apiserver-1.31 and kube-controller-manager-1.31, the oldest Kubernetes that is tested. Run it in a clone of the
    repository. It needs Go; 'make controlplane' installs Go too.
    """
    from phalanx.dev.go_build import build
    from phalanx.dev.programs import PROGRAMS, USUAL, folder

    for name in names:
        if name not in PROGRAMS:
            raise click.UsageError(f"PROGRAM: there is no {name!r}; write one of {', '.join(PROGRAMS)}")
    build(names or USUAL, lambda line: click.echo(line, err=True))
    click.echo(folder())


@command.group(
    epilog="\b\nExamples:\n  phalanx dev cluster up --nodes 100\n  phalanx dev cluster down", no_args_is_help=True,
)  # fmt: skip
def cluster() -> None:
    """Start and stop a control plane."""


@cluster.command(
    short_help="Start a control plane and leave it running.",
    epilog="\b\nExamples:\n  phalanx dev cluster up --nodes 100 --gpus 4\n  phalanx dev cluster up --dir /tmp/lab --with-scheduler",
)
@click.option("--nodes", type=click.IntRange(min=0), default=NODES, show_default=True, metavar="N", help="Number of nodes.")
@click.option("--gpus", type=click.IntRange(min=0), default=GPUS, show_default=True, metavar="N", help="GPUs of each node.")
@click.option("--with-scheduler", is_flag=True, help="Also run kube-scheduler, with its gang scheduling switched on.")
@FOLDER
def up(nodes: int, gpus: int, with_scheduler: bool, folder: Path | None) -> None:
    """Start a control plane with nodes, CRDs, policies and roles, and leave it running. Each start begins with an empty cluster."""
    import time

    from phalanx.dev.kwok_nodes import Machines
    from phalanx.dev.layout import SCHEDULER
    from phalanx.dev.plane import USUAL, ControlPlane, usual_folder

    parts = (*USUAL, SCHEDULER) if with_scheduler else USUAL
    start = time.monotonic()
    plane = ControlPlane((folder or usual_folder()).absolute(), nodes=nodes, machines=Machines(gpus=gpus), parts=parts)
    plane.up()
    click.echo(f"control plane with {nodes} nodes at {plane.server}, started in {time.monotonic() - start:.0f} s", err=True)
    click.echo("now type:", err=True)
    click.echo(f"export KUBECONFIG={plane.kubeconfig} PATH={plane.folder / 'bin'}:$PATH")
    click.echo("phalanx run --scheduler-name phalanx --scheduler-name volcano")


@cluster.command(
    short_help="Stop a control plane.",
    epilog="\b\nExamples:\n  phalanx dev cluster down\n  phalanx dev cluster down --dir /tmp/lab",
)
@FOLDER
def down(folder: Path | None) -> None:
    """Stop the programs started by 'phalanx dev cluster up'. Their logs are kept."""
    from phalanx.dev.plane import stop_all, usual_folder

    place = (folder or usual_folder()).absolute()
    stopped = stop_all(place)
    click.echo(f"stopped {', '.join(stopped)}" if stopped else f"nothing runs in {place}", err=True)
