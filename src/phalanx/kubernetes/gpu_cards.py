"""GPU cards that pods share: what a container requests of them, which ones it gets, and how nodes and pods write that down.

Three kinds of sharing, all of Volcano's: a part of the memory of one card (`volcano.sh/gpu-memory`), whole cards (`...gpu-number`),
and vGPUs (`volcano.sh/vgpu-number`, `-memory`, `-memory-percentage`, `-cores`), which limit memory and cores and how many pods
share a card. The cards of a node are a tuple that never changes; taking some gives a new tuple. So a state of cards can be a key:
equal nodes share one plan (`plugins/deviceshare.py`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from phalanx.model.node import Node
from phalanx.model.shape import ContainerLimits, Shape

GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
VGPU = "volcano.sh/vgpu-"
GPU_INDEX, UNHEALTHY = "volcano.sh/gpu-index", "volcano.sh/gpu-unhealthy-ids"
REGISTER, HANDSHAKE = "volcano.sh/node-vgpu-register", "volcano.sh/node-vgpu-handshake"
VGPU_IDS, VGPU_MODE = "volcano.sh/vgpu-ids-new", "volcano.sh/vgpu-mode"
WANTED_MODELS, UNWANTED_MODELS = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
HAMI, ALL_CORES = "hami-core", 100

SharingKind = Literal["memory", "number", "vgpu"]


@dataclass(frozen=True, slots=True)
class GpuCard:
    """One GPU and what is taken of it; memory in the unit of its device plugin, cores in percent."""

    memory: int
    slots: int = 1 << 30
    """How many containers may share it."""
    model: str = ""
    is_healthy: bool = True
    takers: int = 0
    memory_taken: int = 0
    cores_taken: int = 0

    def plus(self, memory: int, cores: int, sign: int = 1) -> "GpuCard":
        """Return the card with one taker more, or one less."""
        return replace(
            self, takers=self.takers + sign, memory_taken=self.memory_taken + sign * memory,
            cores_taken=self.cores_taken + sign * cores,
        )  # fmt: skip


Cards = tuple[GpuCard, ...]


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """What one container, or a whole pod, requests of cards."""

    count: int
    memory: int = 0
    percent: int = 0
    """Of a card's memory, where no amount is given."""
    cores: int = 0
    wants_idle: bool = False

    def memory_on(self, card: GpuCard) -> int:
        """Return the memory it takes of a card."""
        return self.memory or card.memory * self.percent // 100

    def fits_on(self, card: GpuCard) -> bool:
        """Tell whether a card has enough left. All cores mean the card alone; a full card takes nobody, not even for 0 cores."""
        if not card.is_healthy or card.takers >= card.slots or card.memory - card.memory_taken < self.memory_on(card):
            return False
        if self.wants_idle or self.cores == ALL_CORES:
            return card.takers == 0
        return card.cores_taken + self.cores <= ALL_CORES and (self.cores > 0 or card.cores_taken < ALL_CORES)


@dataclass(frozen=True, slots=True)
class CardShare:
    """A part of one card that a container got."""

    card: int
    memory: int
    cores: int


CardGrant = tuple[tuple[CardShare, ...], ...]
"""The shares of each container that requests some."""


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a class of tasks requests of the cards of a node, container by container."""

    kind: SharingKind
    containers: tuple[ContainerRequest, ...]
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    mode: str = ""

    def grant(self, cards: Cards) -> tuple[CardGrant, Cards] | None:
        """Choose cards for each container in turn; None when some container finds too few."""
        shares: list[tuple[CardShare, ...]] = []
        for container in self.containers:
            chosen = self._choose(container, cards)
            if chosen is None:
                return None
            cards = take(cards, chosen)
            shares.append(chosen)
        return tuple(shares), cards

    def _choose(self, container: ContainerRequest, cards: Cards) -> tuple[CardShare, ...] | None:
        # The annotation shows which card it is, so the order matters: vGPUs come from the last card down, others from the first.
        numbers = range(len(cards)) if self.kind != "vgpu" else reversed(range(len(cards)))
        fitting = [number for number in numbers if container.fits_on(cards[number]) and self._allows_model(cards[number].model)]
        if len(fitting) < container.count:
            return None
        return tuple(
            CardShare(number, container.memory_on(cards[number]), container.cores) for number in fitting[: container.count]
        )

    def _allows_model(self, model: str) -> bool:
        """Tell whether the pod takes cards of this model. It names parts of model names; wanted ones count before unwanted ones."""
        if self.wanted:
            return any(part in model.upper() for part in self.wanted)
        return not any(part in model.upper() for part in self.unwanted)


def take(cards: Cards, shares: Iterable[CardShare], sign: int = 1) -> Cards:
    """Return the cards with these shares taken, or given back with -1; shares of cards that are gone count for nothing."""
    changed = list(cards)
    for share in shares:
        if share.card < len(changed):
            changed[share.card] = changed[share.card].plus(share.memory, share.cores, sign)
    return tuple(changed)


def card_request_of(shape: Shape, kind: SharingKind) -> CardRequest | None:
    """Return what a task requests of cards that are shared in this way; None when it requests nothing."""
    if kind == "memory":
        memory = shape.request.get(GPU_MEMORY, 0) // 1000
        return CardRequest(kind, (ContainerRequest(1, memory),)) if memory else None
    if kind == "number":
        count = shape.request.get(GPU_NUMBER, 0) // 1000
        return CardRequest(kind, (ContainerRequest(count, wants_idle=True),)) if count else None
    containers = tuple(filter(None, map(_vgpu_request, shape.container_limits)))
    wanted, unwanted = (_parts(shape.annotations.get(key, "")) for key in (WANTED_MODELS, UNWANTED_MODELS))
    return CardRequest(kind, containers, wanted, unwanted, shape.annotations.get(VGPU_MODE, "")) if containers else None


def _vgpu_request(limits: ContainerLimits) -> ContainerRequest | None:
    amounts = {name.removeprefix(VGPU): amount // 1000 for name, amount in limits if name.startswith(VGPU)}
    if not {"number", "memory"} & amounts.keys():
        return None
    memory, percent = amounts.get("memory", 0), amounts.get("memory-percentage", 0)
    return ContainerRequest(amounts.get("number", 1), memory, 0 if memory else percent or 100, amounts.get("cores", 0))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip().upper() for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class NodeCards:
    """The cards of a node as it reports them, with the names that annotations use."""

    cards: Cards = ()
    names: tuple[str, ...] = ()
    mode: str = HAMI


def cards_of(node: Node, kind: SharingKind) -> NodeCards:
    """Read the cards that a node offers for this kind of sharing; empty when it offers none."""
    return _vgpu_cards(node) if kind == "vgpu" else _plain_cards(node)


def _plain_cards(node: Node) -> NodeCards:
    memory, count = (node.reported.get(name, 0) // 1000 for name in (GPU_MEMORY, GPU_NUMBER))
    unhealthy = set(_parts(node.annotations.get(UNHEALTHY, "")))
    names = tuple(str(number) for number in range(min(count, 1 << 10)))
    return NodeCards(tuple(GpuCard(memory // count, is_healthy=name not in unhealthy) for name in names), names)


def _vgpu_cards(node: Node) -> NodeCards:
    """Read `UUID,containers,memory,model,healthy,mode`, cards separated by colons; nothing while the device plugin is gone."""
    if node.annotations.get(HANDSHAKE, "").startswith("Deleted"):
        return NodeCards()
    rows = [row.split(",") for row in node.annotations.get(REGISTER, "").split(":") if "," in row]
    if not all(len(row) >= 6 and row[1].isdecimal() and row[2].isdecimal() for row in rows):
        return NodeCards()
    cards = tuple(GpuCard(int(row[2]), int(row[1]), row[3], row[4].lower() == "true") for row in rows)
    return NodeCards(cards, tuple(row[0] for row in rows), rows[-1][5] if rows and rows[-1][5] == "mig" else HAMI)


def granted_to(annotations: Mapping[str, str], shape: Shape, offered: NodeCards, kind: SharingKind) -> CardGrant:
    """Return the shares that a running pod has, as its annotations say."""
    if kind == "vgpu":
        parts = annotations.get(VGPU_IDS, "").split(";")
        return tuple(tuple(_vgpu_shares(part, offered)) for part in parts if part)
    memory = shape.request.get(GPU_MEMORY, 0) // 1000
    indices = _parts(annotations.get(GPU_INDEX, ""))
    return (tuple(CardShare(offered.names.index(name), memory, 0) for name in indices if name in offered.names),)


def _vgpu_shares(text: str, offered: NodeCards) -> Iterator[CardShare]:
    for row in (part.split(",") for part in text.split(":") if "," in part):
        number = next((place for place, name in enumerate(offered.names) if name in row[0]), None)
        if number is not None and len(row) >= 4 and row[2].isdecimal() and row[3].isdecimal():
            yield CardShare(number, int(row[2]), int(row[3]))


def annotations_for(grant: CardGrant, offered: NodeCards, node: str, kind: SharingKind, now: float) -> dict[str, str]:
    """Return what a pod must say so that the device plugin of its node gives it these cards."""
    if kind != "vgpu":
        indices = ",".join(offered.names[share.card] for shares in grant for share in shares)
        return {GPU_INDEX: indices, "volcano.sh/predicate-time": str(int(now * 1e9))}
    ids = ";".join("".join(f"{offered.names[share.card]},NVIDIA,{share.memory},{share.cores}:" for share in part) for part in grant)
    return {
        VGPU_IDS: ids, "volcano.sh/devices-to-allocate": ids, "volcano.sh/vgpu-node": node, "volcano.sh/vgpu-time": str(int(now)),
        "volcano.sh/bind-phase": "allocating", "volcano.sh/bind-time": str(int(now)),
    }  # fmt: skip
