"""Move tasks away from where they are no longer welcome: plugins name running tasks, and each of them is evicted.

Nobody takes their place in this action. Whoever owns the pods makes them anew, and the next session places them better.
"""

from collections.abc import Mapping

from phalanx.model.task_status import Status
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState


class ShuffleAction:
    """Evicts what plugins want elsewhere."""

    name = "shuffle"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Ask about all running tasks at once; each eviction stands for itself."""
        for victim, plugin in session.victim_tasks(_running(session)):
            reason = f"evicted by shuffle: plugin {plugin} wants it elsewhere"
            with session.statement() as statement:
                statement.evict(victim, action=self.name, preemptor="", reason=reason)
                statement.commit()


def _running(session: Session) -> list[TaskState]:
    """Return the running tasks of all gangs, complete ones included, the least important first."""
    known = (session.gang(key) for key in sorted(session.snapshot.gangs))
    gangs = sorted((gang for gang in known if gang is not None), key=session.gang_key, reverse=True)
    return [task for gang in gangs for task in _running_members(session, gang)]


def _running_members(session: Session, gang: GangState) -> list[TaskState]:
    on_node = (task for task in gang.tasks if task.status is Status.RUNNING and task.node >= 0)
    return session.sorted_tasks(on_node)[::-1]
