"""`phalanx suspend`: take the pods of a job away and keep the job, until it is resumed."""

import click

from phalanx.cli.connection import KindName, ObjectName, Reach, cluster_options

EXAMPLES = """\b
Examples:
  phalanx suspend bert -n research
  phalanx suspend vcjob/train job/evaluate
"""


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), metavar="[KIND]")
@click.argument("names", nargs=-1, type=ObjectName(), metavar="NAME...")
@cluster_options("Namespace of the objects.")
@click.pass_context
def command(ctx: click.Context, kind: str, names: tuple[str, ...], reach: Reach) -> None:
    """Suspend jobs: their pods terminate, and none are made until they are resumed.

    A name without a kind is a gang, of which the owner is suspended. What can be suspended: Jobs of Kubernetes and of Volcano,
    CronJobs, JobSets, RayClusters, RayJobs, TrainJobs, MPIJobs, PyTorchJobs and the other jobs of the training operator.
    """
    from phalanx.cli.suspend_run import carry_out

    if not carry_out(reach, kind, names, suspends=True):
        ctx.exit(1)
