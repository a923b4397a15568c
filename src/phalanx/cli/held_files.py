"""Files that one process at a time may use: a lock beside each, which ends with the process, however that ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phalanx.errors import ConfigError


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a file inside the block; refuse where another process holds it.

    The lock is a file of its own and stays: the file itself is replaced when it is written, and a lock would go with the old one.
    """
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: is no regular file; name a file of its own")
    beside = path.with_name(f".{path.name}.lock")
    try:
        beside.parent.mkdir(parents=True, exist_ok=True)
        lock = beside.open("a+")
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be written: {beside}: {problem.strerror}") from problem
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            raise ConfigError(
                f"{path}: is used by {lock.read().strip() or 'another process'}; end that, or name another file"
            ) from None
        lock.truncate(0)
        lock.write(f"the 'phalanx up' with process id {os.getpid()}\n")
        lock.flush()
        yield
