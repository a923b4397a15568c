"""Kubeconfig files: which cluster and which user a context names.

Several files count as one: of two entries with the same name the first one is taken. Only the entries of the chosen context are
read closely, so that a fault elsewhere in a file does no harm. Paths in a file are relative to its folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from phalanx.dialects.documents import parse_text
from phalanx.dialects.wrong_field import readable
from phalanx.errors import ConfigError, SnapshotError
from phalanx.store.bounded_files import read_bounded

Entry = Mapping[str, Any]
Struct = TypeVar("Struct", bound=msgspec.Struct)


class NamedValue(msgspec.Struct):
    """One variable of the environment of a command."""

    name: str
    value: str


class ExecConfig(msgspec.Struct, rename="camel"):
    """A command that prints credentials."""

    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[NamedValue] | None = None
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class Extension(msgspec.Struct):
    """Something that a cluster says to one program only."""

    name: str = ""
    extension: Any = None  # Any: passed on to that program unread


class KubeconfigCluster(msgspec.Struct, rename="kebab"):
    """The address of an API server and its certificate authority."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] | None = None


class KubeconfigUser(msgspec.Struct, rename="kebab"):
    """Who asks, and how that is proved."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: Any = None  # Any: refused, whatever it says
    act_as: str = msgspec.field(name="as", default="")
    as_groups: list[str] | None = None
    as_uid: str = ""


class KubeconfigContext(msgspec.Struct):
    """Which user asks which cluster, and in which namespace if a command names none."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ChosenContext:
    """The cluster and user of a context; `place` names it in messages."""

    name: str
    place: str
    cluster: KubeconfigCluster
    user: KubeconfigUser
    namespace: str


def choose(paths: Sequence[Path], context: str = "", *, may_miss: bool = False) -> ChosenContext:
    """Return what a context of some files says, or the current one; `may_miss` passes over files that are not there."""
    files = [_File(path, _read(path)) for path in paths if not may_miss or path.exists()]
    where = " and ".join(map(str, paths))
    if not files:
        raise ConfigError(f"{where}: no such file; name a kubeconfig with --kubeconfig or $KUBECONFIG")
    name = context or next((file.current for file in files if file.current), "")
    if not name:
        known = ", ".join(_names(files, "contexts")) or "none"
        raise ConfigError(f"{where}: no current-context; name a context with --context (known: {known})")
    file, entry = _find(files, "contexts", name, where)
    place = f"{file.path}: context {name!r}"
    chosen = _read_as(entry, KubeconfigContext, place)
    return ChosenContext(name, place, *_sides(files, chosen, place), chosen.namespace or "default")


def _sides(files: Sequence["_File"], context: KubeconfigContext, place: str) -> tuple[KubeconfigCluster, KubeconfigUser]:
    if not context.cluster:
        raise ConfigError(f"{place}: cluster: missing; name one of {', '.join(_names(files, 'clusters')) or 'the clusters'}")
    file, entry = _find(files, "clusters", context.cluster, place)
    cluster = _with_absolute_paths(_read_as(entry, KubeconfigCluster, f"{file.path}: cluster {context.cluster!r}"), file.path)
    if not context.user:
        return cluster, KubeconfigUser()
    file, entry = _find(files, "users", context.user, place)
    return cluster, _with_absolute_paths(_read_as(entry, KubeconfigUser, f"{file.path}: user {context.user!r}"), file.path)


# --- files ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _File:
    """One file, as it is written."""

    path: Path
    document: Entry

    @property
    def current(self) -> str:
        return str(self.document.get("current-context") or "")

    def entries(self, section: str) -> Iterator[Entry]:
        listed = self.document.get(section)
        yield from (item for item in (listed if isinstance(listed, list) else ()) if isinstance(item, Mapping))


def _read(path: Path) -> Entry:
    try:
        documents = parse_text(read_bounded(path), f"{path}: no YAML")
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}; name another file with --kubeconfig or $KUBECONFIG") from problem
    except SnapshotError as problem:
        raise ConfigError(f"{problem}; write it anew, or name another file") from problem
    document = documents[0] if documents else None
    if not isinstance(document, Mapping) and document is not None:
        raise ConfigError(f"{path}: not a kubeconfig; it has to say clusters, users and contexts")
    return document or {}


def _names(files: Sequence[_File], section: str) -> list[str]:
    return list(dict.fromkeys(str(item["name"]) for file in files for item in file.entries(section) if item.get("name")))


def _find(files: Sequence[_File], section: str, name: str, place: str) -> tuple[_File, object]:
    """Return the file that has the first entry of a name, and the entry, whatever it is."""
    noun = section.removesuffix("s")
    for file in files:
        for item in file.entries(section):
            if item.get("name") == name:
                return file, item.get(noun) or {}
    known = _names(files, section)
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
    raise ConfigError(f"{place}: no {noun} {name!r}; {hint}")


def _read_as(entry: object, kind: type[Struct], place: str) -> Struct:
    """Read an entry."""
    try:
        return msgspec.convert(_without_nulls(entry), kind)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{place}: {readable(problem)}") from problem


def _without_nulls(entry: object) -> object:
    """Return an entry without the fields that are null, which count as absent."""
    if not isinstance(entry, Mapping):
        return entry
    return {key: _without_nulls(value) for key, value in entry.items() if value is not None}


def _with_absolute_paths(read: Struct, file: Path) -> Struct:
    """Return an entry whose paths no longer depend on where the file is."""
    fields = ("certificate_authority", "client_certificate", "client_key", "token_file")
    found: dict[str, object] = {field: str(file.parent / path) for field in fields if (path := getattr(read, field, ""))}
    if isinstance(read, KubeconfigUser) and read.exec is not None and "/" in read.exec.command:
        found["exec"] = msgspec.structs.replace(read.exec, command=str(file.parent / read.exec.command))
    return msgspec.structs.replace(read, **found)
