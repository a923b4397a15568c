"""Worker processes of a pool that end with whoever started them.

A pool ends its workers when it is closed. One whose process is killed does not: its workers hold each other's ends of the pipe open
and wait for work for ever.
"""

import multiprocessing
import os
from threading import Thread


def end_with_parent() -> None:
    """End this process as soon as the one that started it is gone; for the initializer of a pool."""
    Thread(target=_outlive_nobody, daemon=True).start()


def _outlive_nobody() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
