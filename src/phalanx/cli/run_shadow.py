"""`phalanx run --shadow`: beside other schedulers, without writing anything to the cluster."""

import asyncio
import logging
import signal
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from phalanx.cli.policy_options import asked_policy
from phalanx.cli.record_options import bounds_of, config_typed
from phalanx.cli.run import RunOptions
from phalanx.config.policies import policy_of_profile, with_gates
from phalanx.config.reference import in_full
from phalanx.live.catalogue import connected
from phalanx.live.logs import logger_of, logging_started
from phalanx.live.report_process import ReportProcess
from phalanx.live.serving import served
from phalanx.live.shadow import Shadow, ShadowSetup
from phalanx.store.kube.client import Client
from phalanx.store.kube.connect import access

FOLDER = "phalanx-shadow"
"""Where a shadow records if nobody says where."""


async def run_shadow(asked: RunOptions, names: Sequence[str]) -> None:
    """Watch and compare until SIGTERM or Ctrl-C; without names, whatever the scheduler of a pod is called."""
    setup = _setup(asked, names)
    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    async with access(asked.kubeconfig or "", asked.context or "").client(is_frugal=True) as client:
        with logging_started(asked.verbosity, asked.log_format):
            await _watch(asked, setup, client, is_over)


def _setup(asked: RunOptions, names: Sequence[str]) -> ShadowSetup:
    if asked.recorded_profile:
        policy_of_profile(asked.recorded_profile)  # a wrong one is refused now, not by the first report
    policy = with_gates(asked_policy(asked.config, asked.profile), asked.gates)
    return ShadowSetup(
        profile=connected(policy), config=config_typed(asked.config, asked.profile, asked.gates), schedulers=frozenset(names),
        folder=Path(asked.record or FOLDER), bounds=bounds_of(asked), every_seconds=asked.shadow_every,
    )  # fmt: skip


async def _watch(asked: RunOptions, setup: ShadowSetup, client: Client, is_over: asyncio.Event) -> None:
    log = logger_of("shadow")
    options = ["--recorded-profile", asked.recorded_profile] if asked.recorded_profile else []
    shadow = Shadow(
        client, setup, ReportProcess(setup.folder, options),
        report=lambda text: log.log(logging.WARNING, "%s", text), say=lambda text: log.log(logging.INFO, "%s", text),
    )  # fmt: skip
    address = asked.address(client)
    port: AbstractAsyncContextManager[None] = nullcontext()
    if address is not None:
        port = served(shadow.health(lambda: in_full(setup.profile.policy)), address, log)
    async with port:
        log.log(logging.INFO, "shadow: nothing is written to the cluster; recording in %s", setup.folder)
        await shadow.run(is_over)
