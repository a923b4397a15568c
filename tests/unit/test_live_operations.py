"""What people who run a scheduler see of it, served over HTTP and written to its log."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_text
from phalanx.config.reference import in_full
from phalanx.errors import Forbidden
from phalanx.live import app
from phalanx.live.app import Live, Setup
from phalanx.live.election import LEASE, Terms
from phalanx.live.operations import Operations
from phalanx.live.reload import ConfigSource
from phalanx.live.serving import Address
from phalanx.model.kinds import EVENT, POD, Document
from phalanx.scheduling import failures
from phalanx.scheduling.cache import Urgency
from phalanx.scheduling.loop import Pace
from phalanx.session.cycle import Profile
from phalanx.store.kube.client import Client
from phalanx.testing import build
from tests.support.embedded_server import Server, until

CONFIG = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"


class Scene:
    """A scheduler that is watched over, on an embedded cluster."""

    traced_gangs: tuple[str, ...] = ()

    def __init__(self, server: Server, client: Client, file: Path, log: pytest.LogCaptureFixture) -> None:
        self.server, self._log = server, log
        self.file = file
        self.source = ConfigSource(file, lambda text: policy_of_text(text, str(file)))
        profile = Profile(self.source.policy, CATALOGUE)
        terms = Terms("phalanx", "default", "me", 3.0, 2.0, 0.02)
        setup = Setup(profile=profile, gates=profile, controllers=(), schedulers=frozenset(), terms=terms)
        self.live = Live(client, setup, report=lambda text: None)
        self.operations = Operations(self.live, config=self.source, describe=in_full, traced_gangs=self.traced_gangs)

    def load(self, *documents: Document) -> None:
        for document in documents:
            self.server.store.load({**document, "metadata": {**document["metadata"], "uid": ""}})

    def said(self, words: str) -> list[str]:
        return [record.getMessage() for record in self._log.records if words in record.getMessage()]

    async def asked(self, path: str) -> tuple[int, str]:
        """Ask at the address that the log names."""
        place = self.said("health and metrics at ")[0].partition(" at ")[2].split()[0]
        async with aiohttp.ClientSession() as session, session.get(f"{place}{path}") as answer:
            return answer.status, await answer.text()


def run(tmp_path: Path, log: pytest.LogCaptureFixture, question: Callable[[Scene], Awaitable[None]]) -> None:
    (tmp_path / "phalanx.yaml").write_text(CONFIG)
    log.set_level(logging.DEBUG)

    async def asked() -> None:
        server, is_over = Server(), asyncio.Event()
        async with server.opened() as client:
            scene = Scene(server, client, tmp_path / "phalanx.yaml", log)
            task = asyncio.create_task(scene.operations.run(Address("127.0.0.1", 0), is_over))
            try:
                await until(lambda: scene.live.is_leader and scene.live.loop.count)
                await question(scene)
            finally:
                is_over.set()
                await task

    asyncio.run(asked())


def test_health_metrics_and_configuration_are_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), *build.gang("train", tasks=2, cpu=1))
        await until(lambda: all(item["spec"].get("nodeName") for item in scene.server.store.items(POD)))
        await scene.live.outbox.drain(1.0)
        assert (await scene.asked("/livez"))[0] == 200
        assert (await scene.asked("/readyz"))[0] == 200
        _, text = await scene.asked("/metrics")
        assert 'result="bound"' in text or 'result="scheduled"' in text
        _, configuration = await scene.asked("/configz")
        assert json.loads(configuration)
        scene.live.is_stopping = True
        assert (await scene.asked("/readyz"))[0] >= 500

    run(tmp_path, caplog, question)


def test_the_log_of_sessions_may_be_about_one_gang(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scene, "traced_gangs", ("default/ours",))

    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), *build.gang("ours", cpu=1), *build.gang("theirs", cpu=1))
        await until(lambda: all(item["spec"].get("nodeName") for item in scene.server.store.items(POD)))
        assert scene.said("try gang default/ours of queue default")
        assert scene.said("bind task default/ours-0 to node n0")
        assert not scene.said("default/theirs")

    run(tmp_path, caplog, question)


def test_refused_binds_are_logged_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "PACE", Pace(later=0.01))

    async def question(scene: Scene) -> None:
        def rule(pod: Document, node: str) -> None:
            raise Forbidden("not today")

        scene.server.store.binding.append(rule)
        scene.load(build.queue("default"), build.node("n0"), *build.gang("train", tasks=1, cpu=1))
        await until(lambda: scene.said("a bind was refused: not today"))

    run(tmp_path, caplog, question)


def test_a_changed_configuration_is_in_force_and_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def question(scene: Scene) -> None:
        scene.file.write_text(CONFIG.replace("allocate", '"allocate, backfill"'))
        scene.source.poll()
        assert scene.live.loop.profile.policy.actions == ("allocate", "backfill")
        scene.file.write_text("actions: dance\n")
        scene.source.poll()
        assert scene.live.loop.profile.policy.actions == ("allocate", "backfill")
        assert scene.said("the configuration of before stays in force")
        await until(lambda: len(scene.server.store.items(EVENT)) >= 2)
        reasons = {item["reason"]: item["involvedObject"]["kind"] for item in scene.server.store.items(EVENT)}
        assert reasons == {"ConfigurationReloaded": "Lease", "ConfigurationRefused": "Lease"}

    run(tmp_path, caplog, question)


def test_sessions_that_fail_one_after_the_other_fail_the_probe_and_cost_the_lease(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "PACE", Pace(after_fault=0.01))
    monkeypatch.setattr(failures, "SHORTEST_SECONDS", 0.0)

    async def question(scene: Scene) -> None:
        def broken(seconds: float, snapshot_seconds: float, times: object) -> None:
            raise KeyError("root")

        scene.live.loop.timed.append(broken)
        before = scene.live.loop.count
        scene.live.loop.wake(Urgency.SOON)
        await until(lambda: scene.live.loop.count >= before + 5)
        code, text = await scene.asked("/livez")
        assert (code, "[-]sessions failed: the last 5 sessions failed" in text, "KeyError: 'root'" in text) == (500, True, True)
        assert not scene.live.is_leader
        await until(lambda: scene.server.store.get(LEASE, "default", "phalanx")["spec"]["holderIdentity"] == "")
        assert [record.levelno for record in caplog.records if "Traceback" in record.getMessage()] == [15]  # -v 5, once

    run(tmp_path, caplog, question)


def test_a_session_that_goes_well_makes_up_for_those_that_failed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "PACE", Pace(after_fault=0.01))
    monkeypatch.setattr(failures, "SHORTEST_SECONDS", 0.0)

    async def question(scene: Scene) -> None:
        left = [KeyError("root")] * 4

        def broken(seconds: float, snapshot_seconds: float, times: object) -> None:
            if left:
                raise left.pop()

        scene.live.loop.timed.append(broken)
        for _ in range(2):
            before = scene.live.loop.count
            scene.live.loop.wake(Urgency.SOON)
            await until(lambda: not left and scene.live.loop.count >= before + 5)  # noqa: B023
            left += [KeyError("root")] * 4
        assert ((await scene.asked("/livez"))[0], scene.live.is_leader) == (200, True)

    run(tmp_path, caplog, question)
