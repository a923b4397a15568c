"""Questions that take a session or more: answered as the command line answers them, in a process that is kept up to date."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from phalanx.cli.ui_questions import BothWorlds, Eta, Worlds
from phalanx.config.policies import policy_of_profile
from phalanx.errors import Busy, ConfigError, PhalanxError, SnapshotError
from phalanx.model.kinds import Document, kind_of
from phalanx.model.watch_event import ADDED, DELETED, MODIFIED, WatchEvent
from phalanx.testing import build
from phalanx.ui.questions import asking as module
from phalanx.ui.questions import desk
from phalanx.ui.questions.asked import Explain, Pending, WhatIf
from phalanx.ui.questions.asking import Asking, Changes
from phalanx.ui.questions.desk import Desk, Rules, Update
from phalanx.ui.source import Listener
from tests.support import ui_clusters
from tests.support.ui_clusters import NOW
from tests.support.ui_pages import connect, started, still

RULES = Rules(policy_of_profile("phalanx"), (), connect)
SMALL = [build.node("n0", gpus=1), build.node("n1", gpus=1), build.queue("default"), *build.gang("train", tasks=2, gpus=1),
         *build.gang("wide", tasks=3, gpus=1)]  # fmt: skip


def desk_of(documents: Sequence[Document]) -> Desk:
    return Desk(Update(NOW, json.dumps(documents).encode(), b"[]", RULES))


def update(*put: Document, gone: tuple[Document, ...] = ()) -> Update:
    return Update(NOW + 1, json.dumps(put).encode(), json.dumps(gone).encode())


# --- answers -------------------------------------------------------------------------------------------------------------


def test_an_explanation_has_the_reason_the_stages_and_what_would_start_the_gang() -> None:
    found = Explain("default/wide").answer(desk_of(SMALL))
    assert found["gang"] == "default/wide"
    assert not found["starts"]
    assert [stage["stage"] for stage in found["stages"] if stage["ok"] is False]
    texts = [remedy["text"] for remedy in found["wouldStart"]["remedies"]]
    assert any("node" in text for text in texts), texts


def test_a_change_is_tried_and_taken_back() -> None:
    asked = desk_of(SMALL)
    changed = Explain("default/wide", ("gang/default/wide.minMember=2", "gang/default/train=gone")).answer(asked)
    assert changed["starts"]
    assert not Explain("default/wide", seconds=0.0).answer(asked)["starts"], "the cluster is as it was"


def test_what_if_says_who_starts_and_who_pays() -> None:
    asked = desk_of(SMALL)
    drained = WhatIf(("node/n1=drained",)).answer(asked)
    assert (drained["text"], [(gang["gang"], gang["good"]) for gang in drained["gangs"]]) == (
        "1 gang would wait", [("default/train", False)],
    )  # fmt: skip
    more = WhatIf(("node/+3=n0",)).answer(asked)
    assert (more["text"], [(gang["gang"], gang["good"]) for gang in more["gangs"]]) == (
        "1 gang would start", [("default/wide", True)],
    )  # fmt: skip


def test_a_change_that_changes_nothing_is_called_idle() -> None:
    found = WhatIf(("gang/default/train.minMember=2",)).answer(desk_of(SMALL))
    assert (found["text"], found["idle"]) == ("nothing would change for any gang", ["gang/default/train.minMember=2"])


def test_a_name_that_is_not_there_says_which_are() -> None:
    with pytest.raises(ConfigError, match="there is no node 'nobody'; there are: n0, n1"):
        WhatIf(("node/nobody=drained",)).answer(desk_of(SMALL))


@pytest.mark.parametrize("question", [Explain("default/nobody"), Eta("default/nobody")])
def test_a_gang_that_is_not_there_is_said(question: Explain | Eta) -> None:
    with pytest.raises(SnapshotError, match="there is no gang default/nobody"):
        question.answer(desk_of(SMALL))


def test_the_line_of_every_queue_says_who_is_ahead_and_by_which_rule() -> None:
    found = {item["gang"]: item for item in Pending().answer(desk_of(ui_clusters.lively()))["gangs"]}
    assert (found["research/mixtral"]["position"], found["research/eval"]["position"]) == (1, 2)
    assert found["research/eval"]["behind"] == "research/mixtral"
    assert found["research/eval"]["rule"]


def test_a_group_that_cannot_be_read_is_explained_as_such() -> None:
    group, *pods = build.gang("odd", tasks=1, gpus=1)
    group["spec"]["minMember"] = "many"
    asked = desk_of([*SMALL, group, *pods])
    assert "minMember" in json.dumps(Explain("default/odd").answer(asked)["stages"])
    asked.take(update({**group, "spec": {**group["spec"], "minMember": 1}}))
    assert "minMember" not in json.dumps(Explain("default/odd").answer(asked)["why"])


def test_when_a_gang_starts_is_simulated() -> None:
    group, *pods = build.gang("train", tasks=2, gpus=1)
    for document in (group, *pods):
        document["metadata"]["annotations"] = {**document["metadata"].get("annotations", {}), "phalanx.dev/duration": "10m"}
    found = Eta("default/wide").answer(desk_of([*SMALL[:3], build.node("n2", gpus=1), group, *pods, *SMALL[6:]]))
    assert found["gangs"][0]["gang"] == "default/wide"
    assert found["gangs"][0]["startedIn"] == found["seeds"]
    assert found["text"]


# --- the desk ------------------------------------------------------------------------------------------------------------


def test_a_desk_knows_what_came_what_changed_and_what_went() -> None:
    asked = desk_of(SMALL)
    assert not Explain("default/wide", seconds=0.0).answer(asked)["starts"]
    asked.take(update(build.node("n2", gpus=1), build.node("n3", gpus=1), build.node("n4", gpus=1)))
    assert Explain("default/wide", seconds=0.0).answer(asked)["starts"]
    asked.take(update(gone=(build.node("n3"), build.node("n4"))))
    assert not Explain("default/wide", seconds=0.0).answer(asked)["starts"]
    assert asked.cluster.now == NOW + 1


class Broken:
    """A question that nobody has thought of."""

    def answer(self, desk: Desk) -> dict[str, Any]:
        raise ZeroDivisionError("division by zero")


def test_a_question_that_breaks_asks_to_be_reported() -> None:
    desk.updated(Update(NOW, json.dumps(SMALL).encode(), b"[]", RULES))
    with pytest.raises(PhalanxError, match="please report it: ZeroDivisionError"):
        desk.answered(Broken())
    desk.begin()


def test_a_folder_without_a_recording_is_said(tmp_path: Any) -> None:
    with pytest.raises(PhalanxError, match=str(tmp_path)):
        BothWorlds(Worlds(str(tmp_path))).answer(desk_of(SMALL))


# --- what has changed since ----------------------------------------------------------------------------------------------


class Told:
    """A source that says what a test wants."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, kind: str, document: Document) -> None:
        for listener in self.listeners:
            listener(WatchEvent(1, kind, kind_of(document), document))


def test_changes_are_told_once_with_the_last_state() -> None:
    source = Told()
    changes = Changes(source)  # type: ignore[arg-type]  # changes need no more of a source
    first, second, other = build.node("n0", gpus=1), build.node("n0", gpus=2), build.node("n1")
    source.tell(ADDED, first)
    source.tell(MODIFIED, second)
    source.tell(ADDED, other)
    source.tell(DELETED, other)
    assert changes.take() == ([second], [other])
    assert changes.take() == ([], [])
    changes.stop()
    assert source.listeners == []


# --- the process ---------------------------------------------------------------------------------------------------------


def test_a_process_answers_until_it_is_closed_and_begins_anew() -> None:
    async def run() -> list[bool]:
        asked = Asking(still(SMALL, now=NOW), connect, started)
        answers = [await asked.ask(Explain("default/train", seconds=0.0))]
        asked.close()
        answers.append(await asked.ask(Explain("default/wide", seconds=0.0)))
        asked.close()
        return [json.loads(answer)["starts"] for answer in answers]

    assert asyncio.run(run()) == [True, False]


def test_who_asks_when_too_many_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 0)
    with pytest.raises(Busy, match="ask again in a moment"):
        asyncio.run(Asking(still(SMALL), connect, started).ask(Pending()))


def test_a_problem_of_a_question_comes_back_from_the_process() -> None:
    async def run() -> None:
        asked = Asking(still(SMALL), connect, started)
        try:
            await asked.ask(Explain("default/nobody"))
        finally:
            asked.close()

    with pytest.raises(SnapshotError, match="there is no gang default/nobody"):
        asyncio.run(run())
