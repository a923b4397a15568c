"""Everything that is served of one cluster: its latest look, the documents made of it, questions about it, its sessions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from phalanx.ui.board import Board, LookPace, Report
from phalanx.ui.questions.asking import Asking
from phalanx.ui.questions.desk import ConnectPolicy
from phalanx.ui.serving.documents import Documents
from phalanx.ui.source import ClusterSource
from phalanx.ui.steps import OpenSessions


@dataclass(frozen=True, slots=True)
class ShowingSetup:
    """How clusters are shown."""

    connect: ConnectPolicy
    """Returns who decides by a policy; a function of a module."""
    started: Callable[[], None]
    """Called in processes that answer questions, to end them with this one; a function of a module."""
    report: Report
    pace: LookPace = field(default_factory=LookPace)


class Showing:
    """One cluster, shown."""

    def __init__(self, source: ClusterSource, setup: ShowingSetup) -> None:
        """Begin; nothing is done before somebody looks."""
        self.source = source
        self.board = Board(source, setup.pace, setup.report)
        self.documents = Documents(self.board)
        self.asking = Asking(source, setup.connect, setup.started)
        self.sessions = OpenSessions()

    def close(self) -> None:
        """End everything that goes on for it."""
        self.board.close()
        self.asking.close()
