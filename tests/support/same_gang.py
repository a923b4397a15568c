"""The same gang in every dialect, and a cluster that runs as `phalanx up` does, for tests.

world = speech.cluster(nodes=3, gpus=8)
world.submit([speech.gang("kueue", "train", tasks=4, gpus=2)])
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from phalanx.config.builtin import CATALOGUE
from phalanx.config.volcano import read_policy
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.dialects.convert import DIALECTS, converted
from phalanx.dialects.gates import GangGates
from phalanx.dialects.pods import ROLE
from phalanx.model.kinds import POD
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import sim_worlds as worlds

__all__ = ["DIALECTS", "cluster", "gang", "policy", "roles", "running", "said", "seen"]


@cache
def policy(profile: str = "phalanx") -> Policy:
    """Return the policy of a built-in profile, any but kai."""
    document = yaml.safe_load(files("phalanx.config").joinpath("profiles", f"{profile}.yaml").read_text(encoding="utf-8"))
    return read_policy(document, actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))


def cluster(**more: Any) -> World:
    """Return a cluster with all controllers under the profile phalanx; `more` is what nodes offer, and what worlds take."""
    chosen = ControllerSettings(scheduler=(policy(), CATALOGUE))
    controllers = standard_controllers(pair_for, chosen, has_admission=policy().has_admission)
    behind_gates = Profile(replace(policy(), actions=("allocate", "backfill")), CATALOGUE)
    return worlds.world(policy=policy(), controllers=controllers, gates=behind_gates, **more)


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


def seen(documents: Iterable[Document]) -> list[Document]:
    """Return objects as a session sees them that plans for pods behind our gate."""
    return [dict(GangGates().foreseen(item)) if item["kind"] == "Pod" else item for item in documents]


def running(world: World, name: str) -> list[str]:
    """Return the pods of a gang that run, by the beginning of their names."""
    pods = (pod for pod in world.store.items(POD) if pod["metadata"]["name"].startswith(f"{name}-"))
    return [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"]
