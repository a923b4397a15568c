"""Which gang of a cluster somebody means: by its key, its name alone, the name of its owner, or how its name begins."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from phalanx.cli.session_input import SessionInput
from phalanx.errors import SnapshotError
from phalanx.explain.missing_groups import missing_groups
from phalanx.model.kinds import GROUP_KINDS, object_key
from phalanx.model.listing import listed
from phalanx.state.snapshot import Snapshot

PREFIXES = ("gang/", "gangs/", "podgroup/")
GROUP_NAMES = frozenset(kind.kind for kind in GROUP_KINDS)
MOST_NAMED = 8


def owners_by_gang(given: SessionInput, snapshot: Snapshot) -> dict[str, set[str]]:
    """Return all gangs, also those that nobody describes or that were refused, with the names of what owns them."""
    known = [*snapshot.gangs, *missing_groups(snapshot), *given.intake.refused_groups]
    owners: dict[str, set[str]] = {str(key): set() for key in known}
    for key, members in snapshot.members.items():
        if key in owners:
            owners[key].update(_owner_names(task.owners for task in members.values()))
    for document in given.documents:
        if document["kind"] in GROUP_NAMES and object_key(document) in owners:
            owned = document["metadata"].get("ownerReferences") or ()
            owners[object_key(document)].update(str(owner.get("name")) for owner in owned)
    return owners


def _owner_names(owners: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[2] for several in set(owners) for name in several.split(",") if name}


def chosen_gang(typed: str, namespace: str | None, owners_by_gang: Mapping[str, Collection[str]]) -> str:
    """Return the key of the gang that is meant; `owners_by_gang` has all gangs, with the names of what owns each."""
    word = _without_prefix(typed, owners_by_gang)
    where = namespace or (word.rpartition("/")[0] if "/" in word else "")
    name = word.rpartition("/")[2]
    here = [key for key in owners_by_gang if not where or key.startswith(f"{where}/")]
    for found in _readings(name, here, owners_by_gang):
        if len(found) == 1:
            return found[0]
        if found:
            raise SnapshotError(f"{name!r} may be one of {listed(sorted(found), MOST_NAMED)}; write which, with its namespace")
    raise SnapshotError(_unknown(f"{where}/{name}" if where else name, here, owners_by_gang))


def _without_prefix(typed: str, known: Collection[str]) -> str:
    """Return ``ns/name`` of ``gang/ns/name``; a namespace may itself be called gang."""
    prefix = next((prefix for prefix in PREFIXES if typed.startswith(prefix)), "")
    return typed if typed in known else typed.removeprefix(prefix)


def _readings(name: str, here: list[str], owners_by_gang: Mapping[str, Collection[str]]) -> Iterator[list[str]]:
    """Yield the gangs that a name may mean, the most literal reading first."""
    yield [key for key in here if key.rpartition("/")[2] == name]
    yield [key for key in here if _plain(key) == name]
    yield [key for key in here if name in owners_by_gang[key]]
    yield [key for key in here if name and _plain(key).startswith(name)]


def _plain(key: str) -> str:
    """Return the name of a gang; its dialect may follow in the key."""
    return key.rpartition("/")[2].partition("@")[0]


def _unknown(word: str, here: list[str], everywhere: Collection[str]) -> str:
    known = here or list(everywhere)
    if not known:
        return f"there is no gang {word}, nor any other"
    by_word = {_plain(key): key for key in here} or {key.partition("@")[0]: key for key in everywhere}
    typed = word.rpartition("/")[2] if here else word  # a namespace in common makes no names alike
    close = get_close_matches(typed, by_word, n=1, cutoff=0.75)
    hint = (
        f"did you mean {by_word[close[0]]}?"
        if close
        else f"there {'is' if len(known) == 1 else 'are'} {listed(sorted(known), MOST_NAMED)}"
    )
    return f"there is no gang {word}; {hint}"
