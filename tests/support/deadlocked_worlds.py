"""Worlds in which a scheduler that knows no gangs lets two of them meet halfway."""

from phalanx.config.policies import policy_of_profile
from phalanx.model.kinds import Document
from phalanx.sim.world import World
from tests.support import sim_worlds as worlds

SOLO = "default-scheduler"


def without_gangs(*, nodes: int = 4, gpus: int = 1) -> World:
    """Return a world whose scheduler places pod by pod."""
    return worlds.world(nodes=nodes, gpus=gpus, policy=policy_of_profile(SOLO), is_solo=True)


def submit_in_turn(world: World, *gangs: list[Document], at: float) -> None:
    """Let the groups of gangs come first, and then a pod of each second by second."""
    world.plan(at, lambda: world.submit([[gang[0]] for gang in gangs]))
    for number in range(1, max(map(len, gangs))):
        for gang in gangs:
            _submit(world, gang[number : number + 1], at + number)


def _submit(world: World, pods: list[Document], at: float) -> None:
    if pods:
        world.plan(at, lambda: world.submit([pods]))


def deadlocked(*, tasks: int = 4, duration: str = "5m", at: float = 10.0) -> World:
    """Return a world of four GPUs with the gangs `a` and `b`, which need all of them and will each get half."""
    world = without_gangs()
    submit_in_turn(world, *(worlds.gang(name, tasks=tasks, gpus=1, duration=duration) for name in ("a", "b")), at=at)
    return world
