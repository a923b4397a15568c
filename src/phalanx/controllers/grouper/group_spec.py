"""The fields of a group besides its size: queue, priority class, preemptibility, and what is copied from its owner."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from phalanx.controllers.grouper.grouping import Grouping
from phalanx.controllers.grouper.owners import OwnerChain, kind_pair
from phalanx.controllers.grouper.pod_membership import LINK_KEYS
from phalanx.controllers.grouper.settings import KAI
from phalanx.controllers.objects import annotations_of, labels_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.reading import decode_as
from phalanx.dialects.schema import Read
from phalanx.errors import SnapshotError
from phalanx.model.kinds import PRIORITY, Document, kind_of

CONFIG_MAP = kind_of({"apiVersion": "v1", "kind": "ConfigMap"})
TYPES = "types"
PROJECT, PRIORITY_LABEL, PREEMPTIBILITY = "project", "priorityClassName", "kai.scheduler/preemptibility"
TOP_OWNER = "kai.scheduler/top-owner-metadata"
NOT_COPIED = LINK_KEYS | {"kubectl.kubernetes.io/last-applied-configuration"}
"""Labels and annotations that concern the owner alone."""


@dataclass(frozen=True, slots=True)
class GroupSetting:
    """The value of a field, and whether an owner sets it; what a pod or a default sets counts only when the group is created."""

    text: str
    is_from_owner: bool = False


@dataclass(frozen=True, slots=True)
class WantedGroup:
    """A group as it should be, whatever dialect it is written in."""

    namespace: str
    grouping: Grouping
    queue: str
    priority_class: GroupSetting
    preemptibility: GroupSetting
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class KindDefaults(Read):
    """Defaults for the groups of a kind of owner."""

    type_name: str = ""
    group: str = ""
    priority_name: str = ""
    preemptibility: str = ""


def group_of(chain: OwnerChain, grouping: Grouping, *, priority: str, defaults: Sequence[KindDefaults]) -> WantedGroup:
    """Return the group of a pod with all its fields."""
    fitting = _fitting(chain, defaults)
    return WantedGroup(
        namespace=str(meta_of(chain.pod).get("namespace") or "default"), grouping=grouping, queue=_queue(chain),
        priority_class=_priority_class(chain, grouping, [item.priority_name for item in fitting], priority),
        preemptibility=_preemptibility(chain, [item.preemptibility for item in fitting]),
        labels=_copied(labels_of(chain.head)),
        annotations={TOP_OWNER: _owner_text(chain.head), **_copied(annotations_of(chain.head))},
    )  # fmt: skip


# --- the queue -----------------------------------------------------------------------------------------------------------


def _queue(chain: OwnerChain) -> str:
    settings, owner, pod = chain.settings, labels_of(chain.head), labels_of(chain.pod)
    named = owner.get(settings.queue_label) or pod.get(settings.queue_label)
    if named:
        return named
    project = owner.get(PROJECT) or pod.get(PROJECT)
    if project:
        pool = pod.get(settings.node_pool_label)
        return f"{project}-{pool}" if pool else project
    is_of_kai = settings.dialect == "kai" and chain.pod["spec"].get("schedulerName") == KAI
    return settings.default_queue or ("default-queue" if is_of_kai else "default")


# --- the class -----------------------------------------------------------------------------------------------------------


def _priority_class(chain: OwnerChain, grouping: Grouping, defaults: Sequence[str], otherwise: str) -> GroupSetting:
    """Return the first class that is named and exists; the class of last resort need not exist."""
    if grouping.priority_class:
        return GroupSetting(grouping.priority_class, is_from_owner=True)
    for named in (*_named_classes(chain), *map(GroupSetting, defaults)):
        if named.text and chain.view.find(PRIORITY, "", named.text) is not None:
            return named
    return GroupSetting(otherwise)


def _named_classes(chain: OwnerChain) -> Iterator[GroupSetting]:
    for owner in chain.owners or (chain.head,):
        yield GroupSetting(labels_of(owner).get(PRIORITY_LABEL, ""), is_from_owner=True)
    yield GroupSetting(labels_of(chain.pod).get(PRIORITY_LABEL, ""))
    yield GroupSetting(str(chain.pod.get("spec", {}).get("priorityClassName") or ""))


# --- whether it may be evicted -------------------------------------------------------------------------------------------


def _preemptibility(chain: OwnerChain, defaults: Sequence[str]) -> GroupSetting:
    for owner in chain.owners or (chain.head,):
        if found := labels_of(owner).get(PREEMPTIBILITY):
            return GroupSetting(_known(describe(owner), found), is_from_owner=True)
    if found := labels_of(chain.pod).get(PREEMPTIBILITY):
        return GroupSetting(_known(describe(chain.pod), found))
    return GroupSetting(next((text.lower() for text in defaults if text), ""))


def _known(where: str, text: str) -> str:
    if text not in ("preemptible", "non-preemptible"):
        raise SnapshotError(f"{where}: label {PREEMPTIBILITY}: {text!r} is unknown; write 'preemptible' or 'non-preemptible'")
    return text


# --- what it copies ------------------------------------------------------------------------------------------------------


def _copied(texts: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if key not in NOT_COPIED}


def _owner_text(head: Document) -> str:
    """Return who the top owner is, as KAI's tools read it."""
    group, kind = kind_pair(head)
    version = str(head.get("apiVersion", "")).rpartition("/")[2]
    known = {"group": group, "kind": kind, "name": meta_of(head)["name"], "uid": meta_of(head).get("uid", ""), "version": version}
    return "".join(f"{key}: {msgspec.json.encode(str(text)).decode()}\n" for key, text in known.items())


# --- defaults by kind ----------------------------------------------------------------------------------------------------


def read_defaults(chain: OwnerChain) -> list[KindDefaults]:
    """Return the defaults that a ConfigMap has for kinds of owners; empty without one."""
    place = chain.settings.defaults_config_map
    namespace, _, name = place.rpartition("/")
    found = chain.view.find(CONFIG_MAP, namespace or "default", name) if place else None
    if found is None or TYPES not in (found.get("data") or {}):
        return []
    try:
        return decode_as(found["data"][TYPES], list[KindDefaults])
    except msgspec.DecodeError as problem:
        hint = '[{"typeName": "TrainJob", "group": "trainer.kubeflow.org", "priorityName": "train"}]'
        raise SnapshotError(f"{describe(found)}: data.{TYPES}: {problem}; write a list such as {hint}") from problem


def _fitting(chain: OwnerChain, defaults: Sequence[KindDefaults]) -> list[KindDefaults]:
    """Return the defaults for the owners of a pod, the nearest first; one without a group holds for a kind of any group."""
    kinds = chain.kinds or (kind_pair(chain.head),)
    return [item for group, kind in kinds for item in defaults if item.type_name == kind and item.group in ("", group)]
