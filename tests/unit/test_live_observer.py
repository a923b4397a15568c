"""Gangs seen from outside: the same table as from inside, from an API server that knows nothing of gangs."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from phalanx.cli import main
from phalanx.cli.get_eta import with_eta
from phalanx.cli.kubectl_complete import complete
from phalanx.config.policies import policy_of_profile
from phalanx.errors import Forbidden
from phalanx.explain.recorded import pod_refusal
from phalanx.live.observer import Observer
from phalanx.model.kinds import EVENT, POD, Document
from phalanx.scheduling.events import EventRecorder, SessionEvents
from phalanx.sim.world import World
from phalanx.store.kube.client import Client
from phalanx.testing import build
from tests.support import gated_gangs as gates
from tests.support import native_groups as native
from tests.support import pod_made_gangs as made
from tests.support import sim_worlds as worlds
from tests.support.http_api import Connection, served


class Inside:
    """A world that keeps its book of gangs and writes events, as a running scheduler does."""

    def __init__(self, world: World) -> None:
        self.world, self.book = world, SessionEvents(world.port, world.loop, behind_gates=dict).book
        world.on_event(EventRecorder(world.port, instance="test").record)

    def gangs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.book.documents(self.world.cluster.snapshot(self.world.now))["items"]
        return found


def elsewhere(documents: Sequence[Document]) -> list[Document]:
    """Return objects in another namespace."""
    return [{**item, "metadata": {**item["metadata"], "namespace": "research"}} for item in documents]


@pytest.fixture
def inside() -> Inside:
    """One gang that runs, one that waits for room, one of native pods whose group is not there."""
    found = Inside(worlds.world(nodes=3, gpus=1))
    worlds.submit(found.world, worlds.gang("bert", tasks=3, gpus=1), at=0)
    found.world.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}}])
    worlds.submit(found.world, elsewhere(worlds.gang("resnet", tasks=3, gpus=1)), at=5)
    worlds.submit(found.world, native.pods("lost", 2), at=5)
    worlds.run(found.world, 30)
    return found


def observed(connection: Connection, namespace: str = "") -> tuple[list[dict[str, Any]], list[str]]:
    async def asked() -> tuple[list[dict[str, Any]], list[str]]:
        observer = Observer()
        async with Client(connection.server) as client:
            return (await observer.look(client, namespace))["items"], observer.problems

    return asyncio.run(asked())


def test_from_outside_gangs_look_as_from_inside(inside: Inside) -> None:
    with served(inside.world.store) as connection:
        assert observed(connection) == (inside.gangs(), [])
        assert {item["metadata"]["name"]: item["status"] for item in inside.gangs()} == {
            "bert": "Runs", "resnet": "Waits", "lost": "Waits",
        }  # fmt: skip
        found, _ = observed(connection, "research")
        assert [item["metadata"]["name"] for item in found] == ["resnet"]


def test_without_events_the_conditions_say_why(inside: Inside) -> None:
    for event in list(inside.world.store.items(EVENT)):
        inside.world.store.delete(EVENT, event["metadata"]["namespace"], event["metadata"]["name"])
    with served(inside.world.store) as connection:
        ((gang,), _) = observed(connection, "research")
    assert gang["reason"] == "NotEnoughResources"
    assert gang["why"].startswith("3/3 tasks in gang unschedulable: pod group is not ready")


def test_a_broken_object_is_left_out_alone() -> None:
    world = worlds.world(nodes=1, gpus=1)
    broken = build.pod_group("broken")
    broken["spec"]["minMember"] = "many"
    world.load([broken, *worlds.gang("bert", tasks=1, gpus=1)])
    with served(world.store) as connection:
        found, problems = observed(connection)
    assert [item["metadata"]["name"] for item in found] == ["bert"]
    assert len(problems) == 1
    assert problems[0].startswith("PodGroup default/broken: spec.minMember: ")


def test_gangs_that_pods_alone_make_are_seen_too() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, gates.gang("llama", 2, gpus=1))
    worlds.run(world, 5)
    with served(world.store) as connection:
        ((gang,), _) = observed(connection)
    assert (gang["dialect"], gang["group"], gang["status"]) == ("gates", "gates", "Waits")
    assert gang["why"] == "Scheduling is blocked due to non-empty scheduling gates"


def test_a_gang_of_pods_alone_waits_for_the_same_reason_as_from_inside() -> None:
    inside = Inside(worlds.world(nodes=2, gpus=1, policy=policy_of_profile("phalanx")))
    worlds.submit(inside.world, made.application("spark", {"driver": 1, "executor": 2}, gpus=1), at=0)
    worlds.run(inside.world, 10)
    with served(inside.world.store) as connection:
        assert observed(connection) == (inside.gangs(), [])
    ((gang,), (pod, *_)) = inside.gangs(), inside.world.store.items(POD)
    assert gang["why"].startswith("2 of 3 tasks fit"), gang
    assert pod_refusal(pod)[1] != gang["why"]


# --- the commands --------------------------------------------------------------------------------------------------------


def run(connection: Connection, folder: Path, *arguments: str) -> Result:
    """Type a command as kubectl would run it."""
    path = kubeconfig(connection, folder)
    return CliRunner().invoke(main, [*arguments, "--kubeconfig", str(path)], prog_name="kubectl phalanx")


def kubeconfig(connection: Connection, folder: Path) -> Path:
    """Write a kubeconfig that names the server."""
    path = folder / "config"
    contexts = [{"name": "here", "context": {"cluster": "c", "namespace": "research"}}]
    clusters = [{"name": "c", "cluster": {"server": connection.server}}]
    path.write_text(yaml.safe_dump({"current-context": "here", "contexts": contexts, "clusters": clusters}))
    return path


def test_get_shows_the_gangs_of_the_namespace_of_the_context(inside: Inside, tmp_path: Path) -> None:
    with served(inside.world.store) as connection:
        here = run(connection, tmp_path, "get").stdout.splitlines()
        everywhere = run(connection, tmp_path, "get", "gangs", "-A", "-o", "wide").stdout.splitlines()
        bare = run(connection, tmp_path, "get", "gangs", "-A", "--no-headers").stdout.splitlines()
    assert here[0].split() == ["NAME", "DIALECT", "QUEUE", "STATUS", "MIN", "PLACED", "RUNNING", "AGE", "WHY"]
    assert here[1].startswith("resnet  volcano  default  Waits   3    0       0 ")
    assert "0 of 3 tasks fit; 3 more places for 1 nvidia.com/gpu" in here[1]
    assert everywhere[0].split()[:2] == ["NAMESPACE", "NAME"]
    assert everywhere[0].split()[-4:] == ["REASON", "ETA", "AGE", "WHY"]
    assert [line.split()[1] for line in bare] == ["bert", "resnet", "lost"]


def test_wide_shows_when_gangs_start_if_anybody_knows(inside: Inside, tmp_path: Path) -> None:
    """A gang that has started needs no estimate, one behind a gang of unknown duration gets none, one with room starts now."""
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/bert"
    patch = {"metadata": {"annotations": {"phalanx.dev/duration": "2h"}}}
    inside.world.load(elsewhere(worlds.gang("tiny", cpu=1)))
    with served(inside.world.store) as connection:
        unknown = run(connection, tmp_path, "get", "gangs", "-A", "-o", "wide").stdout
        connection.ask("PATCH", path, patch, form="application/merge-patch+json")
        known = run(connection, tmp_path, "get", "gangs", "-A", "-o", "wide").stdout
        data = run(connection, tmp_path, "get", "gangs", "resnet", "-o", "json").stdout
    assert etas(unknown) == {"bert": "-", "lost": "?", "resnet": "?", "tiny": "1s"}
    assert etas(known) == {"bert": "-", "lost": "?", "resnet": "1h59m", "tiny": "1s"}
    assert '"eta"' not in data


def etas(shown: str) -> dict[str, str]:
    """Return the column ETA by gang."""
    header, *lines = shown.splitlines()
    return {line.split()[1]: line[header.index("ETA") :].split()[0] for line in lines}


class MayReadNothing:
    """A client whom the server refuses everything."""

    async def document(self, path: str, *, accept: str = "") -> None:
        raise Forbidden(f"{path} is forbidden")


def test_wide_works_for_those_who_may_not_read_the_cluster() -> None:
    gangs = [{"metadata": {"namespace": "ml", "name": name}, "status": name} for name in ("Waits", "Runs")]
    found = asyncio.run(with_eta(MayReadNothing(), gangs))  # type: ignore[arg-type]  # it is asked for nothing else
    assert [gang["eta"] for gang in found] == ["?", "-"]


def test_the_shell_completes_names_with_those_that_are_there(inside: Inside, tmp_path: Path) -> None:
    with served(inside.world.store) as connection:
        config = ["--kubeconfig", str(kubeconfig(connection, tmp_path))]
        assert complete(["describe", *config, "gang", "res"]) == ["resnet", ":4"]
        assert complete(["get", *config, "pods", "resnet-"]) == ["resnet-0", "resnet-1", "resnet-2", ":4"]
        assert complete(["get", *config, "nonsense", ""]) == [":4"]
    assert complete(["describe", *config, "gang", ""]) == [":4"]


@pytest.mark.parametrize("command", ["explain", "eta"])
def test_the_shell_completes_gangs_of_all_namespaces_for_questions_about_one(command: str, inside: Inside, tmp_path: Path) -> None:
    with served(inside.world.store) as connection:
        config = ["--kubeconfig", str(kubeconfig(connection, tmp_path))]
        every = complete([command, *config, ""])
        assert {"default/bert", "research/resnet"} <= set(every)
        assert not {"bert", "resnet"} & set(every)
        assert complete([command, *config, "research/"]) == ["research/resnet", ":4"]
        assert complete([command, *config, "resn"]) == ["resnet", ":4"]
        assert complete([command, *config, "-n", "research", ""]) == ["resnet", ":4"]
        assert complete([command, *config, "-f", "cluster.yaml", ""]) == [":4"]


def test_describe_says_what_a_gang_is_and_why_it_waits(inside: Inside, tmp_path: Path) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
    path, form = "/api/v1/namespaces/research/pods/resnet-0/status", "application/merge-patch+json"
    with served(inside.world.store) as connection:
        connection.ask("PATCH", path, {"status": {"conditions": [condition]}}, form=form)
        shown = run(connection, tmp_path, "describe", "gang", "resnet").stdout
        elsewhere = run(connection, tmp_path, "describe", "bert").stderr
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert {"Gang: resnet", "Dialect: volcano", "Status: Waits", "Reason: InsufficientResources"} <= set(lines)
    assert any(line.startswith("Why: 0 of 3 tasks fit") for line in lines)
    assert "For more: kubectl phalanx explain research/resnet" in lines
    assert "POD STATUS NODE REASON" in lines
    assert "resnet-0 Pending Unschedulable: 0/3 nodes are available" in lines
    assert "resnet-1 Pending" in lines
    assert any("FailedScheduling podgroup/resnet 0 of 3 tasks fit" in line for line in lines)
    assert elsewhere == 'error: gang "bert" not found in this namespace; there is one with -n default\n'


def owned(name: str, owner: str) -> list[Document]:
    """Return a gang whose group belongs to a Job."""
    group, *pods = elsewhere(worlds.gang(name, tasks=1, gpus=1))
    owners = [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": owner, "uid": "u"}]
    return [{**group, "metadata": {**group["metadata"], "ownerReferences": owners}}, *pods]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("pg-wide-5f3c", "pg-wide-5f3c"),
        ("wide", "pg-wide-5f3c"),
        ("res", "resnet"),
        ("resnet", "resnet"),
        ("many", 'error: gang "many" not found; it may be one of pg-many-1, pg-many-2'),
        ("pg-", 'error: gang "pg-" not found; it may be one of pg-many-1, pg-many-2, pg-wide-5f3c'),
        ("nobody", 'error: gang "nobody" not found'),
    ],
)  # fmt: skip
def test_describe_finds_a_gang_by_its_owner_or_by_how_its_name_begins(
    inside: Inside, tmp_path: Path, typed: str, found: str
) -> None:
    inside.world.load([*owned("pg-wide-5f3c", "wide"), *owned("pg-many-1", "many"), *owned("pg-many-2", "many")])
    with served(inside.world.store) as connection:
        answer = run(connection, tmp_path, "describe", "gang", typed)
    assert (answer.stderr or answer.stdout).splitlines()[0].removeprefix("Gang:").strip() == found


def test_describe_says_what_keeps_a_pod_from_running(inside: Inside, tmp_path: Path) -> None:
    path, form = "/api/v1/namespaces/default/pods/bert-0/status", "application/merge-patch+json"
    state = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    with served(inside.world.store) as connection:
        connection.ask("PATCH", path, {"status": {"containerStatuses": [state]}}, form=form)
        shown = run(connection, tmp_path, "describe", "gang/bert", "-n", "default").stdout
    assert re.search(r"bert-0 +Running +node-\d  ImagePullBackOff: no such image\n", shown)


def test_get_fills_in_templates(inside: Inside, tmp_path: Path) -> None:
    with served(inside.world.store) as connection:
        one = run(connection, tmp_path, "get", "gang", "resnet", "-o", "jsonpath={.status} since {.metadata.creationTimestamp}")
        all_ = run(connection, tmp_path, "get", "pods", "-A", "-o", "jsonpath={.items[?(@.spec.nodeName!='')].spec.nodeName}")
        wrong = run(connection, tmp_path, "get", "pods", "-o", "jsonpath={.items")
    assert one.stdout.startswith("Waits since 2026-01-01T00:00:0")
    assert sorted(all_.stdout.split()) == ["node-0", "node-1", "node-2"]
    assert (wrong.exit_code, wrong.stderr[:16]) == (1, "error: jsonpath:")
