"""What runs in a pod that reserves a shared GPU: it says which device it got, and keeps that until it is told to end."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from phalanx.controllers.binder.reservation_pod import DEVICE, POD_NAME, POD_NAMESPACE, VISIBLE_VARIABLE
from phalanx.errors import Busy, ConfigError, ServerError, Unreachable
from phalanx.model.kinds import POD
from phalanx.store.kube.client import Client

FIRST_WAIT, LONGEST_WAIT = 0.5, 10.0
NO_DEVICE = ("", "none", "void")
Environment = Mapping[str, str]


def device_in(environment: Environment) -> str:
    """Return the one device that the device plugin gave to this container."""
    found = environment.get(VISIBLE_VARIABLE, "").strip()
    if found in NO_DEVICE or found == "all" or "," in found or "/" in found:
        raise ConfigError(
            f"${VISIBLE_VARIABLE}: {found!r} is not one device; let the pod ask for nvidia.com/gpu: 1, and the device plugin hand "
            "devices out by DEVICE_LIST_STRATEGY=envvar"
        )
    return found


def place_in(environment: Environment) -> tuple[str, str]:
    """Return the namespace and the name of the pod that we run in."""
    namespace, name = environment.get(POD_NAMESPACE, ""), environment.get(POD_NAME, "")
    if not namespace or not name:
        raise ConfigError(
            f"${POD_NAMESPACE} and ${POD_NAME}: not set; let the pod set them from its fields metadata.namespace and metadata.name"
        )
    return namespace, name


async def reserve(client: Client, environment: Environment, is_over: asyncio.Event, *, report: Callable[[str], None]) -> None:
    """Write on our pod which device it got, and wait for the end; a server that is away is asked again and again."""
    device, place, wait = device_in(environment), place_in(environment), FIRST_WAIT
    while not is_over.is_set():
        try:
            await client.patch(POD, *place, {"metadata": {"annotations": {DEVICE: device}}})
        except (Unreachable, Busy, ServerError) as problem:
            report(f"{problem}; tried again in {wait:g} s")
            await _until(is_over, wait)
            wait = min(2 * wait, LONGEST_WAIT)
        else:
            report(f"GPU {device} is reserved by pod {'/'.join(place)}")
            await is_over.wait()


async def _until(is_over: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await is_over.wait()
