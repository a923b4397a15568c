"""Gangs behind a scheduling gate in a few words, for tests; the scheduler behind it knows no gangs."""

from typing import Any

from phalanx.config.builtin import CATALOGUE
from phalanx.controllers.controller import Controller
from phalanx.controllers.gates import GateLifter, GateTimeouts
from phalanx.dialects.gates import GATE, MIN_MEMBER
from phalanx.dialects.group_references import GATES_GANG
from phalanx.model.kinds import POD
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.world import World
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import sim_worlds as worlds

ONE_BY_ONE = build.policy((("priority", "predicates", "nodeorder"),), "allocate")
PLANNING = build.policy((("priority", "gang"), ("predicates", "nodeorder", "binpack")), "allocate, backfill")
GATED: Document = {"schedulingGates": [{"name": GATE}]}


def world(*, policy: Policy | None = None, **more: Any) -> World:
    """Return a world in which gates are watched; pods are placed one by one unless a policy says otherwise."""
    controllers: list[Controller] = [GateLifter(), GateTimeouts()]
    own = {"controllers": controllers, "gates": Profile(PLANNING, CATALOGUE), **more}
    return worlds.world(policy=policy or ONE_BY_ONE, is_solo=policy is None, **own)


def pod(name: str, gang: str, minimum: int | str, *, notes: dict[str, str] | None = None, **more: Any) -> Document:
    """Return a pod of a gang of so many; `notes` are further annotations."""
    document = build.pod(name, **{"spec": dict(GATED), **more})
    document["metadata"]["labels"][GATES_GANG] = gang
    document["metadata"]["annotations"] |= {MIN_MEMBER: str(minimum), **(notes or {})}
    return document


def gang(name: str, tasks: int, **more: Any) -> list[Document]:
    """Return pods that start together."""
    return [pod(f"{name}-{number}", name, tasks, **more) for number in range(tasks)]


def placed(world: World, gang: str) -> dict[str, str]:
    """Return the nodes of the pods of a gang that have one."""
    pods = (pod for pod in world.store.items(POD) if pod["metadata"]["name"].startswith(f"{gang}-"))
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}
