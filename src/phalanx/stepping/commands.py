"""The commands of the debugger: what may be typed, and what it means."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepCommand:
    """Something that may be typed."""

    form: str
    short: tuple[str, ...]
    meaning: str

    @property
    def word(self) -> str:
        """The first word."""
        return self.form.split()[0]


COMMANDS = (
    StepCommand("step", ("s",), "Go to the next step. An empty line does the same."),
    StepCommand("back", ("b",), "Go to the step before."),
    StepCommand("continue", ("c",), "Go on to the next breakpoint, or to where a watched value changes."),
    StepCommand("goto N", ("g",), "Go to step N."),
    StepCommand("restart", (), "Go to the beginning of the session."),
    StepCommand("next session", (), "Go on to the next session of the recording."),
    StepCommand("break WHAT", (), "Stop at a gang, queue, action, plugin, hook, verdict, commit, discard, eviction or event."),
    StepCommand("breaks", (), "List the breakpoints."),
    StepCommand("delete N", ("d",), "Remove breakpoint N."),
    StepCommand("watch WHAT", ("w",), "Show a value at each step, and stop where it changes."),
    StepCommand("unwatch [WHAT]", (), "Do not watch it any more; nothing at all without WHAT."),
    StepCommand(
        "level 3|4|5", (), "What counts as a step: 3 what happened, 4 also orders, votes and trials, 5 also each node and plugin."
    ),
    StepCommand("show node|queue|gang NAME", (), "Show what the session knows about it at this step."),
    StepCommand("order queues|gangs", (), "Show the order in which they are served at this step."),
    StepCommand("where", (), "Show this step again."),
    StepCommand("list", ("l",), "List the steps around this one."),
    StepCommand("help", ("h", "?"), "List the commands."),
    StepCommand("quit", ("q",), "End."),
)
WORDS: Mapping[str, str] = {word: command.word for command in COMMANDS for word in (command.word, *command.short)}
"""The command that each word means."""
