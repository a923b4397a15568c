"""`phalanx reserve-gpu`: what runs in a pod that reserves a shared GPU."""

import click

EXAMPLES = """\b
Examples:
  phalanx reserve-gpu
  phalanx reserve-gpu --kubeconfig ~/.kube/config
"""


@click.command(epilog=EXAMPLES)
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster; $KUBECONFIG, ~/.kube/config or the pod's own.")
@click.option("--context", metavar="NAME", help="Use this context of the kubeconfig.")
def command(kubeconfig: str | None, context: str | None) -> None:
    """Write on a pod which GPU it got, and keep that until SIGTERM or Ctrl-C.

    The binder makes such pods for GPUs that pods share; nobody else needs it. $NVIDIA_VISIBLE_DEVICES says which GPU it is, as the
    device plugin sets it; $POD_NAMESPACE and $POD_NAME say which pod.
    """
    import asyncio

    asyncio.run(_reserve(kubeconfig or "", context or ""))


async def _reserve(kubeconfig: str, context: str) -> None:
    import asyncio
    import os
    import signal
    from functools import partial

    from phalanx.live.gpu_reservation import reserve
    from phalanx.store.kube.connect import access

    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    async with access(kubeconfig, context).client() as client:
        await reserve(client, os.environ, is_over, report=partial(click.echo, err=True))
