"""The same gang in every dialect, and a cluster that runs as `phalanx up` does, for tests.

world = speech.cluster(nodes=3, gpus=8)
world.submit([speech.gang("kueue", "train", tasks=4, gpus=2)])
"""

from typing import Any

from phalanx.builtin import catalogue_of
from phalanx.cli.policies import policy_of_gates, policy_of_profile
from phalanx.controllers.standard import ControllerSettings, standard_controllers
from phalanx.dialects.convert import DIALECTS, converted
from phalanx.dialects.pods import ROLE
from phalanx.model.kinds import POD
from phalanx.sim.scheduling import Mind
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.testing import build, worlds
from phalanx.testing.build import Document

__all__ = ["DIALECTS", "cluster", "gang", "roles", "running", "said"]


def cluster(*, profile: str = "phalanx", **more: Any) -> World:
    """Return a cluster with all controllers under a profile; `more` is what nodes offer, and what a world takes besides."""
    policy = policy_of_profile(profile)
    catalogue = catalogue_of(policy.family)
    chosen = ControllerSettings(scheduler=(policy, catalogue))
    controllers = standard_controllers(pair_for, chosen, has_admission=policy.has_admission)
    return worlds.world(policy=policy, controllers=controllers, gates=Mind(policy_of_gates(), catalogue_of("")), **more)


def gang(dialect: str, name: str, *, tasks: int, min_member: int | None = None, **asks: Any) -> list[Document]:
    """Return a gang in the words of a dialect; all pods are needed unless said otherwise."""
    return said(build.gang(name, tasks=tasks, min_member=min_member, **asks), dialect)


def roles(dialect: str, name: str, minima: dict[str, int], **asks: Any) -> list[Document]:
    """Return a gang with so many pods of each role, all of them needed, in the words of a dialect."""
    group = build.pod_group(name, min_member=sum(minima.values()), minTaskMember=dict(minima))
    members = [(role, build.pod(f"{name}-{role}-{n}", group=name, **asks)) for role, count in minima.items() for n in range(count)]
    for role, pod in members:
        pod["metadata"]["annotations"][ROLE] = role
    return said([group, *(pod for _, pod in members)], dialect)


def said(documents: list[Document], dialect: str) -> list[Document]:
    """Return objects in another dialect; they have no uid, so that those of several dialects can be in one cluster."""
    found = converted(documents, dialect).objects
    return [{**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "uid"}} for item in found]


def running(world: World, name: str) -> list[str]:
    """Return the pods of a gang that run, by the beginning of their names."""
    pods = (pod for pod in world.store.items(POD) if pod["metadata"]["name"].startswith(f"{name}-"))
    return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]
