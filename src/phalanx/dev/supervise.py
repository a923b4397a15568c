"""Starts a program that ends with the one who asked for it, however that one ends: `python supervise.py LIFELINE COMMAND...`.

LIFELINE is the reading end of a pipe whose writing end only the asker holds, so its end of file says that the asker is gone, even
if it was killed. This process becomes the program, and keeps its number, its streams and its exit code. Before that it leaves a
watcher behind, which ends the whole process group when the asker goes, and what is left of the group when the program goes.

`processes.launch` runs this file by its path, without site packages: it imports little, so that a start costs some 15 ms.
"""

import os
import select
import signal
import sys

GRACE_SECONDS = 3.0
STREAMS = (0, 1, 2)
NOT_FOUND = 127


def main(lifeline: int, command: list[str]) -> None:
    """Leave a watcher behind and become the program."""
    _leave_watcher(lifeline)
    os.set_inheritable(lifeline, False)
    # Python ignores the first two itself, and shells let what they start with "&" ignore the third: the program shall not.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        os.write(2, f"{command[0]}: {problem.strerror}\n".encode())
        os._exit(NOT_FOUND)


def _leave_watcher(lifeline: int) -> None:
    """Fork twice: the watcher is no child of the program, which might wait for all it has."""
    program = os.getpid()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if not os.fork():
        watch(lifeline, program)
    os._exit(0)


def watch(lifeline: int, program: int) -> None:
    """Wait until the asker or the program has gone, then end the group; the watcher is in it, and goes with it.

    As long as it is there, the system gives the number of the group to nobody else.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ends = _ends_of(program)
    _let_go_of_streams()
    gone, _, _ = select.select([lifeline, *ends], [], [])
    if lifeline in gone:
        os.killpg(program, signal.SIGTERM)
        select.select(ends, [], [], GRACE_SECONDS)
    os.killpg(program, signal.SIGKILL)


def _ends_of(program: int) -> list[int]:
    """Return a descriptor that is readable once the program has ended; none where the system has no such thing."""
    try:
        return [os.pidfd_open(program)] if sys.platform == "linux" else []
    except OSError:
        return []


def _let_go_of_streams() -> None:
    """Hold on to none of the program's streams: a reader must see their end, and the lock of a log must fall with the program."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
