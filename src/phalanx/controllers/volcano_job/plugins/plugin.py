"""What a job plugin is, and how its options are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from phalanx.controllers.objects import owner_reference
from phalanx.controllers.volcano_job.job import ParsedJob, ParsedTask
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document

Value: TypeAlias = str | int | bool
SWITCHES = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private and a public key, as files of ssh hold them."""

    private: str
    public: str


MakePair: TypeAlias = Callable[[str], KeyPair]
"""Makes a key pair for the Job with this uid, perhaps another one at each call; whoever runs the controller says where randomness
comes from."""


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """The options of a plugin, with the defaults of those that were not given."""

    values: Mapping[str, Value]

    def text(self, name: str) -> str:
        """Return an option that is a text."""
        return str(self.values[name])

    def number(self, name: str) -> int:
        """Return an option that is a number."""
        return int(self.values[name])

    def is_on(self, name: str) -> bool:
        """Tell whether a switch is on."""
        return self.values[name] is True


@dataclass(frozen=True, slots=True)
class PodContext:
    """Which pod of which task a plugin edits, and with which options."""

    job: ParsedJob
    task: ParsedTask
    index: int
    options: PluginOptions


def _no_objects(job: ParsedJob, options: PluginOptions, make_pair: MakePair | None) -> Sequence[Document]:
    return ()


@dataclass(frozen=True, slots=True)
class JobPlugin:
    """A plugin: the options it takes with their defaults, how it edits a pod, and the objects it creates."""

    name: str
    defaults: Mapping[str, Value]
    edit_pod: Callable[[PodContext, Document], Document]
    objects: Callable[[ParsedJob, PluginOptions, MakePair | None], Sequence[Document]] = _no_objects


def read_options(plugin: JobPlugin, arguments: Sequence[str]) -> PluginOptions:
    """Read options such as ``--port=22``, ``--port 22`` and ``--no-root``."""
    values, left = dict(plugin.defaults), list(arguments)
    while left:
        argument = left.pop(0)
        name, sign, text = argument.lstrip("-").partition("=")
        if not argument.startswith("-") or name not in values:
            known = ", ".join(f"--{option}" for option in plugin.defaults) or "none"
            raise SnapshotError(f"spec.plugins.{plugin.name}: {argument!r} is no option of it; known are {known}")
        default = plugin.defaults[name]
        if not sign:
            text = "true" if isinstance(default, bool) else left.pop(0) if left else ""
        values[name] = _value(f"spec.plugins.{plugin.name}: --{name}", text, default)
    return PluginOptions(values)


def _value(where: str, text: str, default: Value) -> Value:
    if isinstance(default, bool):
        if text not in SWITCHES:
            raise SnapshotError(f"{where}: {text!r} is unknown; write true or false")
        return SWITCHES[text]
    if isinstance(default, int):
        if not (text.isascii() and text.isdigit()):
            raise SnapshotError(f"{where}: {text!r} is not a number; write for example --port={default}")
        return int(text)
    if not text:
        raise SnapshotError(f"{where}: has no value; write for example {default!r}")
    return text


def owned_object(job: ParsedJob, kind: str, name: str, body: Mapping[str, Any], *, api_version: str = "v1") -> Document:
    """Return an object that belongs to a Job."""
    meta = {"name": name, "namespace": job.namespace, "ownerReferences": [owner_reference(job.document)]}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}
