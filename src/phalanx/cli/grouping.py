"""Groups for pods of the input that name none: commands that hold one session make them as the controllers of a cluster would."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from phalanx.controllers.builtin import ControllerSettings, grouping_controllers
from phalanx.explain.reason_text import counted
from phalanx.model.kinds import Document, object_key
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.store.bare_pods import grouped_pods
from phalanx.store.input_files import Intake


class Grouping(NamedTuple):
    """All objects of an input, those among them that controllers make, and why some pods have no group."""

    documents: list[Document]
    notes: list[str]


def grouped(intake: Intake, names: Sequence[str], now: float) -> Grouping:
    """Enter the groups that controllers make for pods which name none."""
    documents: list[Document] = [*intake.complete]
    settings = settings_for(names)
    served = {*settings.schedulers, *settings.grouper.scheduler_names}
    alone = [object_key(item) for item in documents if item["kind"] == "Pod" and _is_alone(intake, object_key(item), served)]
    if not alone:
        return Grouping(documents, [])
    found = grouped_pods(documents, alone, grouping_controllers(settings), now)
    for document in found.documents:
        intake.cluster.put(document)
    return Grouping([*documents, *found.documents], list(_once(found.problems)))


def settings_for(names: Sequence[str]) -> ControllerSettings:
    """Return the settings of controllers that serve schedulers with these names; the usual ones without any."""
    return ControllerSettings(schedulers=frozenset(names)) if names else ControllerSettings()


def _once(problems: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong, once for all pods of which it is true: ``Pod ml/a-0 and 63 others: ...``."""
    about: dict[str, list[str]] = {}
    for text in problems:
        who, _, what = text.partition(": ")
        about.setdefault(what, []).append(who)
    for what, pods in about.items():
        more = f" and {counted(len(pods) - 1, 'other')}" if len(pods) > 1 else ""
        yield f"{pods[0]}{more}: {what}" if what else pods[0]


def _is_alone(intake: Intake, key: str, served: set[str]) -> bool:
    """Tell whether a pod waits without a group, and controllers make one for pods of its scheduler."""
    task = intake.cluster.state.task(TaskKey(key))
    return task is not None and task.status is Status.PENDING and task.gang is None and task.scheduler in served
