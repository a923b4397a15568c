"""Files that `phalanx replay` writes: at once, and never over something that only its owner can make again."""

import os
from dataclasses import dataclass
from pathlib import Path

from phalanx.errors import ConfigError

REPLAY = "replay"


def first_line(option: str, command: str = REPLAY) -> str:
    """Return what a file begins with; one that begins so may be overwritten, since it can be written again."""
    return f"{_writer(command)}{option}'"


def _writer(command: str) -> str:
    return f"# written by 'phalanx {command} "


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that an option names."""

    option: str
    path: Path
    command: str = REPLAY

    def refuse(self) -> None:
        """Refuse a path where nothing can be written, or something is that only its owner can make again."""
        path = self.path
        if not path.absolute().parent.is_dir():
            raise ConfigError(f"{self.option}: there is no folder {str(path.parent)!r}; make it first")
        try:
            if path.exists() and path.stat().st_size and not path.read_bytes().startswith(_writer(self.command).encode()):
                writer = f"'phalanx {self.command}'"
                raise ConfigError(f"{self.option}: {path} exists, and was not written by {writer}; remove it, or name another file")
        except OSError as problem:
            raise ConfigError(f"{self.option}: {path}: cannot be read: {problem.strerror}") from problem

    def write(self, text: str) -> None:
        """Write it at once: whoever reads it gets the old one or the new one."""
        new = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(self.path)
        except OSError as problem:
            new.unlink(missing_ok=True)
            raise ConfigError(f"{self.option}: {self.path}: cannot be written: {problem.strerror}") from problem
