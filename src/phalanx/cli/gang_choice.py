"""Which gang of a cluster somebody means: by its key, its name alone, the name of its owner, or how its name begins.

Groups that controllers make have names that nobody types. The gangs are those of an input that was read (`chosen_gang`), or those
that a cluster lists (`gang_called`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from phalanx.errors import Missing, SnapshotError
from phalanx.model.kinds import GROUP_KINDS, Document, object_key
from phalanx.model.listing import listed

if TYPE_CHECKING:
    from phalanx.cli.session_input import SessionInput
    from phalanx.state.snapshot import Snapshot
    from phalanx.store.kube.client import Client

PREFIXES = ("gang/", "gangs/", "podgroup/")
GROUP_NAMES = frozenset(kind.kind for kind in GROUP_KINDS)
MOST_NAMED = 8


def owners_by_gang(given: "SessionInput", snapshot: "Snapshot") -> dict[str, set[str]]:
    """Return all gangs, also those that nobody describes or that were refused, with the names of what owns them."""
    from phalanx.explain.missing_groups import missing_groups

    known = [*snapshot.gangs, *missing_groups(snapshot), *given.intake.refused_groups]
    owners: dict[str, set[str]] = {str(key): set() for key in known}
    for key, members in snapshot.members.items():
        if key in owners:
            owners[key].update(_owner_names(task.owners for task in members.values()))
    for document in given.documents:
        if document["kind"] in GROUP_NAMES and object_key(document) in owners:
            owners[object_key(document)].update(_owners(document))
    return owners


def _owner_names(owners: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[2] for several in set(owners) for name in several.split(",") if name}


def chosen_gang(typed: str, namespace: str | None, owners_by_gang: Mapping[str, Collection[str]]) -> str:
    """Return the key of the gang that is meant; `owners_by_gang` has all gangs, with the names of what owns each."""
    word = _without_prefix(typed, owners_by_gang)
    where = namespace or (word.rpartition("/")[0] if "/" in word else "")
    name = word.rpartition("/")[2]
    here = [key for key in owners_by_gang if not where or key.startswith(f"{where}/")]
    found = _meant(name, here, owners_by_gang)
    if len(found) > 1:
        raise SnapshotError(f"{name!r} may be one of {listed(sorted(found), MOST_NAMED)}; write which, with its namespace")
    if not found:
        raise SnapshotError(_unknown(f"{where}/{name}" if where else name, here, owners_by_gang))
    return found[0]


def _without_prefix(typed: str, known: Collection[str]) -> str:
    """Return ``ns/name`` of ``gang/ns/name``; a namespace may itself be called gang."""
    prefix = next((prefix for prefix in PREFIXES if typed.startswith(prefix)), "")
    return typed if typed in known else typed.removeprefix(prefix)


def _meant(name: str, here: list[str], owners_by_gang: Mapping[str, Collection[str]]) -> list[str]:
    """Return the gangs that a name means by the most literal reading by which it means any."""
    return next(filter(None, _readings(name, here, owners_by_gang)), [])


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


# --- gangs that a cluster lists ------------------------------------------------------------------------------------------


async def gang_called(client: "Client", namespace: str, name: str) -> Document:
    """Return the gang that is meant in a namespace."""
    from phalanx.cli.get_run import gangs

    gang_by_key = {object_key(item): item for item in await gangs(client, namespace)}
    owners = await _listed_owners(client, list(gang_by_key.values()))
    found = _meant(name, list(gang_by_key), owners)
    if len(found) > 1:
        names = [gang_by_key[key]["metadata"]["name"] for key in found]
        raise Missing(f'gang "{name}" not found; it may be one of {listed(names)}')
    if not found:
        (missing,) = await gangs(client, namespace, [name])
        return missing
    return gang_by_key[found[0]]


async def _listed_owners(client: "Client", here: Sequence[Document]) -> dict[str, set[str]]:
    """Return the gangs with the names of what owns their groups."""
    from phalanx.cli.get_run import group_kind

    owners: dict[tuple[str, str], set[str]] = {}
    one_of_each = {item["group"]: item for item in here if item["group"]}
    for api, gang in one_of_each.items():
        kind = await group_kind(client, gang)
        groups = [] if kind is None else (await client.list(kind, gang["metadata"]["namespace"])).items
        owners |= {(api, group["metadata"]["name"]): _owners(group) for group in groups}
    return {object_key(item): owners.get((item["group"], item["metadata"]["name"]), set()) for item in here}


def _owners(group: Document) -> set[str]:
    return {str(owner.get("name")) for owner in group["metadata"].get("ownerReferences") or ()}
