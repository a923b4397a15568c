"""Which gang of a cluster somebody means: by its key, its name alone, the name of its owner, or how its name begins."""

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from phalanx.errors import SnapshotError

PREFIXES = ("gang/", "gangs/", "podgroup/")
MOST_NAMED = 8


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
            raise SnapshotError(f"{name!r} may be one of {_listed(found)}; write which, with its namespace")
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
    by_word = {(key if "/" in word else _plain(key)): key for key in everywhere}
    close = get_close_matches(word, by_word, n=1, cutoff=0.75)
    hint = f"did you mean {by_word[close[0]]}?" if close else f"there {'is' if len(known) == 1 else 'are'} {_listed(known)}"
    return f"there is no gang {word}; {hint}"


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)
    more = len(shown) - MOST_NAMED
    return ", ".join(shown[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
