"""Shuffle: plugins name running tasks, and they are evicted."""

from collections.abc import Callable, Sequence

from phalanx.actions.shuffle import ShuffleAction
from phalanx.session.cycle import close_session
from phalanx.session.decision import Decisions
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.session import Session
from phalanx.session.trace import Trace
from phalanx.state.gang_state import TaskState
from phalanx.testing import build

Choice = Callable[[TaskState], bool]


class Chooser:
    """Names the tasks that pass a test, and remembers whom it was asked about."""

    def __init__(self, name: str, choice: Choice) -> None:
        self.name, self._choice = name, choice
        self.asked: list[str] = []

    def victim_tasks(self, session: Session, candidates: Sequence[TaskState]) -> list[TaskState]:
        self.asked = [task.task.name for task in candidates]
        return [task for task in candidates if self._choice(task)]


def is_called(*names: str) -> Choice:
    return lambda task: task.task.name in names


def shuffled(cluster: build.Cluster, *tiers: Sequence[Chooser], enabled: bool = True) -> Decisions:
    flags = frozenset({"enabledVictim"}) if enabled else frozenset[str]()
    policies = tuple(tuple(PluginPolicy(chooser.name, flags) for chooser in tier) for tier in tiers)
    choosers = {chooser.name: chooser for tier in tiers for chooser in tier}
    factories = {name: lambda _, chooser=chooser: chooser for name, chooser in choosers.items()}
    session = Session(cluster.objects.snapshot(0.0), Policy(("shuffle",), policies), factories, Trace())
    ShuffleAction({}).run(session)
    return close_session(session)


def cluster_with(*running: str) -> build.Cluster:
    cluster = build.cluster(nodes=1)
    cluster.submit(build.pod_group("web", min_member=1, phase="Running"))
    return cluster.submit(build.pod(name, group="web", on="node-0", cpu=1) for name in running)


def test_a_task_that_a_plugin_names_is_evicted_and_the_eviction_says_who_named_it() -> None:
    decisions = shuffled(cluster_with("web-0", "web-1"), [Chooser("mover", is_called("web-1"))])
    (eviction,) = decisions.evictions.values()
    assert (eviction.task.name, eviction.action) == ("web-1", "shuffle")
    assert eviction.message == "evicted by shuffle: plugin mover wants it elsewhere"


def test_plugins_of_one_tier_add_to_each_other() -> None:
    tier = [Chooser("one", is_called("web-0", "web-1")), Chooser("two", is_called("web-1", "web-2"))]
    decisions = shuffled(cluster_with("web-0", "web-1", "web-2"), tier)
    plugins = {key: eviction.message.split()[4] for key, eviction in sorted(decisions.evictions.items())}
    assert plugins == {"default/web-0": "one", "default/web-1": "one", "default/web-2": "two"}


def test_a_tier_that_names_somebody_keeps_later_tiers_from_being_asked() -> None:
    later = Chooser("later", is_called("web-1"))
    decisions = shuffled(cluster_with("web-0", "web-1"), [Chooser("first", is_called("web-0"))], [later])
    assert list(decisions.evictions) == ["default/web-0"]
    assert later.asked == []


def test_a_tier_that_names_nobody_leaves_it_to_the_next() -> None:
    decisions = shuffled(cluster_with("web-0"), [Chooser("first", is_called())], [Chooser("second", is_called("web-0"))])
    assert list(decisions.evictions) == ["default/web-0"]


def test_a_plugin_whose_switch_is_off_is_not_asked() -> None:
    decisions = shuffled(cluster_with("web-0"), [Chooser("mover", is_called("web-0"))], enabled=False)
    assert decisions.evictions == {}


def test_only_running_tasks_are_asked_about_and_those_of_complete_gangs_too() -> None:
    chooser = Chooser("mover", is_called())
    cluster = cluster_with("web-0")
    cluster.submit(build.gang("waiting", tasks=1, cpu=1))
    done = build.pod("web-1", group="web", on="node-0", cpu=1)
    cluster.submit({**done, "status": {"phase": "Succeeded"}})
    shuffled(cluster, [chooser])
    assert chooser.asked == ["web-0"]
