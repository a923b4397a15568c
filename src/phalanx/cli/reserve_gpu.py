"""`phalanx reserve-gpu`: what runs in a pod that reserves a shared GPU."""

import click

EXAMPLES = """\b
Examples:
  phalanx reserve-gpu
  phalanx reserve-gpu --kubeconfig ~/.kube/config
"""


@click.command(epilog=EXAMPLES)
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig; by default $KUBECONFIG, ~/.kube/config or the service account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; the current one by default.")
def command(kubeconfig: str | None, context: str | None) -> None:
    """Record on a pod which GPU it was given, and hold that GPU until SIGTERM or Ctrl-C.

    Runs in the pods that the binder creates for shared GPUs. The device plugin sets $NVIDIA_VISIBLE_DEVICES, which names the
    GPU; $POD_NAMESPACE and $POD_NAME name the pod.
    """
    import asyncio

    asyncio.run(_reserve(kubeconfig or "", context or ""))


async def _reserve(kubeconfig: str, context: str) -> None:
    import asyncio
    import os
    import signal

    from phalanx.cli import output
    from phalanx.live.gpu_reservation import reserve
    from phalanx.store.kube.connect import access

    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    async with access(kubeconfig, context).client() as client:
        await reserve(client, os.environ, is_over, report=output.complain)
