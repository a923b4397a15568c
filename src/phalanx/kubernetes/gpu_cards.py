"""GPU cards that pods share: what a container asks of them, which ones it gets, and how nodes and pods write that down.

Three ways, all of Volcano's: a part of the memory of one card (`volcano.sh/gpu-memory`), whole cards (`volcano.sh/gpu-number`),
and vGPUs (`volcano.sh/vgpu-number`, `-memory`, `-memory-percentage`, `-cores`), which limit memory and cores and how many pods
share a card. The cards of a node are a tuple that never changes; taking some gives a new tuple, so equal nodes are equal.
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

Way = Literal["memory", "number", "vgpu"]


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU and what is taken of it; memory in the unit of its device plugin, cores in percent."""

    memory: int
    slots: int = 1 << 30
    """How many containers may share it."""
    model: str = ""
    is_healthy: bool = True
    takers: int = 0
    memory_taken: int = 0
    cores_taken: int = 0

    def plus(self, memory: int, cores: int, sign: int = 1) -> "Card":
        """Return the card with one taker more, or one less."""
        return replace(
            self, takers=self.takers + sign, memory_taken=self.memory_taken + sign * memory,
            cores_taken=self.cores_taken + sign * cores,
        )  # fmt: skip


Cards = tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """What one container, or a whole pod, wants of cards."""

    count: int
    memory: int = 0
    percent: int = 0
    """Of a card's memory, where no amount is given."""
    cores: int = 0
    wants_idle: bool = False

    def memory_on(self, card: Card) -> int:
        """Return the memory it takes of a card."""
        return self.memory or card.memory * self.percent // 100

    def suits(self, card: Card) -> bool:
        """Tell whether a card has enough left. All cores mean the card alone; a full card takes nobody, not even for 0 cores."""
        if not card.is_healthy or card.takers >= card.slots or card.memory - card.memory_taken < self.memory_on(card):
            return False
        if self.wants_idle or self.cores == ALL_CORES:
            return card.takers == 0
        return card.cores_taken + self.cores <= ALL_CORES and (self.cores > 0 or card.cores_taken < ALL_CORES)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of one card that a container got."""

    card: int
    memory: int
    cores: int


Grant = tuple[tuple[Share, ...], ...]
"""The shares of each container that asks."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a class of tasks asks of the cards of a node."""

    way: Way
    asks: tuple[Ask, ...]
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    mode: str = ""

    def grant(self, cards: Cards) -> tuple[Grant, Cards] | None:
        """Choose cards for each container in turn; None when some container finds too few."""
        shares: list[tuple[Share, ...]] = []
        for ask in self.asks:
            chosen = self._choose(ask, cards)
            if chosen is None:
                return None
            cards = take(cards, chosen)
            shares.append(chosen)
        return tuple(shares), cards

    def _choose(self, ask: Ask, cards: Cards) -> tuple[Share, ...] | None:
        numbers = range(len(cards)) if self.way != "vgpu" else reversed(range(len(cards)))
        suiting = [number for number in numbers if ask.suits(cards[number]) and self._likes(cards[number].model)]
        if len(suiting) < ask.count:
            return None
        return tuple(Share(number, ask.memory_on(cards[number]), ask.cores) for number in suiting[: ask.count])

    def _likes(self, model: str) -> bool:
        """Tell whether the model of a card is one that the pod names; a name may be a part of it."""
        if self.wanted:
            return any(part in model.upper() for part in self.wanted)
        return not any(part in model.upper() for part in self.unwanted)


def take(cards: Cards, shares: Iterable[Share], sign: int = 1) -> Cards:
    """Return the cards with these shares taken, or given back with -1; shares of cards that are gone count for nothing."""
    changed = list(cards)
    for share in shares:
        if share.card < len(changed):
            changed[share.card] = changed[share.card].plus(share.memory, share.cores, sign)
    return tuple(changed)


def wish_of(shape: Shape, way: Way) -> Wish | None:
    """Return what a task asks of cards in this way; None when it asks nothing."""
    if way == "memory":
        memory = shape.request.get(GPU_MEMORY, 0) // 1000
        return Wish(way, (Ask(1, memory),)) if memory else None
    if way == "number":
        count = shape.request.get(GPU_NUMBER, 0) // 1000
        return Wish(way, (Ask(count, wants_idle=True),)) if count else None
    asks = tuple(filter(None, map(_vgpu_ask, shape.container_limits)))
    wanted, unwanted = (_parts(shape.annotations.get(key, "")) for key in (WANTED_MODELS, UNWANTED_MODELS))
    return Wish(way, asks, wanted, unwanted, shape.annotations.get(VGPU_MODE, "")) if asks else None


def _vgpu_ask(limits: ContainerLimits) -> Ask | None:
    amounts = {name.removeprefix(VGPU): amount // 1000 for name, amount in limits if name.startswith(VGPU)}
    if not {"number", "memory"} & amounts.keys():
        return None
    memory, percent = amounts.get("memory", 0), amounts.get("memory-percentage", 0)
    return Ask(amounts.get("number", 1), memory, 0 if memory else percent or 100, amounts.get("cores", 0))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip().upper() for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class Rack:
    """The cards of a node as it reports them, with the names that annotations use."""

    cards: Cards = ()
    names: tuple[str, ...] = ()
    mode: str = HAMI


def rack_of(node: Node, way: Way) -> Rack:
    """Read the cards of a node; empty when it has none of this kind."""
    return _vgpu_rack(node) if way == "vgpu" else _plain_rack(node)


def _plain_rack(node: Node) -> Rack:
    memory, count = (node.reported.get(name, 0) // 1000 for name in (GPU_MEMORY, GPU_NUMBER))
    unhealthy = set(_parts(node.annotations.get(UNHEALTHY, "")))
    names = tuple(str(number) for number in range(min(count, 1 << 10)))
    return Rack(tuple(Card(memory // count, is_healthy=name not in unhealthy) for name in names), names)


def _vgpu_rack(node: Node) -> Rack:
    """Read `UUID,containers,memory,model,healthy,mode`, cards separated by colons; nothing while the device plugin is gone."""
    if node.annotations.get(HANDSHAKE, "").startswith("Deleted"):
        return Rack()
    rows = [row.split(",") for row in node.annotations.get(REGISTER, "").split(":") if "," in row]
    if not all(len(row) >= 6 and row[1].isdecimal() and row[2].isdecimal() for row in rows):
        return Rack()
    cards = tuple(Card(int(row[2]), int(row[1]), row[3], row[4].lower() == "true") for row in rows)
    return Rack(cards, tuple(row[0] for row in rows), rows[-1][5] if rows and rows[-1][5] == "mig" else HAMI)


def shares_of(annotations: Mapping[str, str], shape: Shape, rack: Rack, way: Way) -> Grant:
    """Return the cards that a running pod has, as its annotations say."""
    if way == "vgpu":
        parts = annotations.get(VGPU_IDS, "").split(";")
        return tuple(tuple(_vgpu_shares(part, rack)) for part in parts if part)
    memory = shape.request.get(GPU_MEMORY, 0) // 1000
    indices = _parts(annotations.get(GPU_INDEX, ""))
    return (tuple(Share(rack.names.index(name), memory, 0) for name in indices if name in rack.names),)


def _vgpu_shares(text: str, rack: Rack) -> Iterator[Share]:
    for row in (part.split(",") for part in text.split(":") if "," in part):
        number = next((place for place, name in enumerate(rack.names) if name in row[0]), None)
        if number is not None and len(row) >= 4 and row[2].isdecimal() and row[3].isdecimal():
            yield Share(number, int(row[2]), int(row[3]))


def annotations_for(grant: Grant, rack: Rack, node: str, way: Way, now: float) -> dict[str, str]:
    """Return what a pod must say so that the device plugin of its node gives it these cards."""
    if way != "vgpu":
        indices = ",".join(rack.names[share.card] for shares in grant for share in shares)
        return {GPU_INDEX: indices, "volcano.sh/predicate-time": str(int(now * 1e9))}
    ids = ";".join("".join(f"{rack.names[share.card]},NVIDIA,{share.memory},{share.cores}:" for share in part) for part in grant)
    return {
        VGPU_IDS: ids, "volcano.sh/devices-to-allocate": ids, "volcano.sh/vgpu-node": node, "volcano.sh/vgpu-time": str(int(now)),
        "volcano.sh/bind-phase": "allocating", "volcano.sh/bind-time": str(int(now)),
    }  # fmt: skip
