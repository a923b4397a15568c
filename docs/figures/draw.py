"""Draws the figures of the documentation: `python docs/figures/draw.py` writes one SVG file each, beside this one.

Every figure brings its own ground, so that it can be read on any page, and follows the reader's choice of light or dark.
"""

import json
from collections.abc import Iterable
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

FOLDER = Path(__file__).parent
RACE = FOLDER.parents[1] / "benchmarks" / "race.json"
"""What `make race` has measured; it draws the figure anew."""
EXTRA = "recorded"
"""The contender that shows what a recording costs; beside the others it says nothing."""

STYLE = """
svg { font: 14px system-ui, sans-serif; }
.ground { fill: #fbfbfa; stroke: #d8d8d4; }
text { fill: #23272b; }
.small { font-size: 12px; }
.quiet { fill: #5b636b; }
.head { font-weight: 600; }
.mono { font-family: ui-monospace, monospace; font-size: 13px; }
.box { fill: #ffffff; stroke: #8a949e; }
.blue { fill: #cfe3f7; stroke: #3d7ab8; }
.orange { fill: #fbdcc0; stroke: #b8662b; }
.green { fill: #d3ecd0; stroke: #4d8a46; }
.gone { fill: none; stroke: #b23b3b; stroke-dasharray: 4 3; }
.line { fill: none; stroke: #5b636b; stroke-width: 1.5; }
.tip { fill: #5b636b; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #1b1e21; stroke: #3b4147; }
  text { fill: #e4e7ea; }
  .quiet { fill: #a3acb5; }
  .box { fill: #262a2e; stroke: #77818b; }
  .blue { fill: #1f3d5c; stroke: #6ba6de; }
  .orange { fill: #583317; stroke: #dd9256; }
  .green { fill: #234a20; stroke: #7fbf76; }
  .gone { stroke: #e07a7a; }
  .line { stroke: #a3acb5; }
  .tip { fill: #a3acb5; }
}
"""


class Drawing:
    """Shapes on a ground, added one after the other; sizes and places are in pixels."""

    def __init__(self, width: int, height: int, about: str) -> None:
        """Begin with the ground and a sentence for those who cannot see it."""
        self._size, self._about = (width, height), about
        self._parts = [f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>']

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Write words; `anchor` says which part of them is at x."""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box", words: str = "") -> None:
        """Draw a box, with words in its middle."""
        self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>')
        lines = words.split("\n") if words else []
        for number, line in enumerate(lines):
            middle = y + height / 2 + 5 + (number - (len(lines) - 1) / 2) * 18
            self.text(x + width / 2, middle, line, "", "middle")

    def arrow(self, *points: tuple[float, float]) -> None:
        """Draw a line through the points with a tip at the last one."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        (x1, y1), (x2, y2) = points[-2:]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length * 9, (y2 - y1) / length * 9
        tip = f"{x2:g},{y2:g} {x2 - dx - dy / 2:g},{y2 - dy + dx / 2:g} {x2 - dx + dy / 2:g},{y2 - dy - dx / 2:g}"
        self._parts += [f'<polyline class="line" points="{path}"/>', f'<polygon class="tip" points="{tip}"/>']

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draw a line without a tip."""
        self._parts.append(f'<line class="line" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>')

    def slots(self, x: float, y: float, kinds: Iterable[tuple[str, str]], size: float = 44) -> None:
        """Draw places side by side, each of a kind and with words."""
        for number, (kind, words) in enumerate(kinds):
            self.box(x + number * size, y, size, size, kind, words)

    def svg(self) -> str:
        """Return the file."""
        width, height = self._size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        )
        return "\n".join([head, f"<title>{escape(self._about)}</title>", f"<style>{STYLE}</style>", *self._parts, "</svg>\n"])


def deadlock() -> Drawing:
    """Two gangs of three on three GPUs, pod by pod and as gangs."""
    drawing = Drawing(
        720, 190, "Pod by pod two gangs block each other; as gangs one runs and the other waits without holding anything"
    )
    for x, title in ((40, "pod by pod"), (400, "with Phalanx")):
        drawing.text(x, 36, title, "head")
        drawing.text(x, 124, "gpu-1", "small quiet")
        drawing.text(x + 60, 124, "gpu-2", "small quiet")
        drawing.text(x + 120, 124, "gpu-3", "small quiet")
    drawing.slots(40, 50, [("blue", "A1"), ("blue", "A2"), ("orange", "B1")], 60)
    drawing.slots(400, 50, [("blue", "A1"), ("blue", "A2"), ("blue", "A3")], 60)
    drawing.text(40, 150, "A waits for one more, B for two:")
    drawing.text(40, 170, "neither starts, and nothing is free")
    drawing.text(400, 150, "A runs. B holds nothing,")
    drawing.text(400, 170, "and its status says what it needs")
    return drawing


def session() -> Drawing:
    """From a snapshot to decisions."""
    drawing = Drawing(
        760, 340, "A session is opened on a snapshot; actions ask plugins and change the ledger; decisions and verdicts come out"
    )
    drawing.box(20, 110, 110, 64, "box", "snapshot\nand policy")
    drawing.arrow((130, 142), (168, 142))
    drawing.box(170, 20, 420, 300, "box")
    drawing.text(186, 44, "session", "head")
    drawing.text(186, 72, "actions, in order", "small quiet")
    names = ("allocate", "backfill", "gangpreempt", "gangreclaim", "heal", "relieve")
    for number, name in enumerate(names):
        drawing.box(186, 82 + number * 36, 112, 26, "blue", name)
        if number:
            drawing.arrow((242, 72 + number * 36), (242, 81 + number * 36))
    drawing.text(350, 72, "plugins, tier by tier", "small quiet")
    drawing.box(350, 82, 224, 44, "orange", "priority  gang  pdb ...")
    drawing.box(350, 136, 224, 44, "orange", "drf  predicates  capacity ...")
    drawing.text(324, 112, "ask", "small quiet", "middle")
    drawing.arrow((298, 120), (348, 120))
    drawing.arrow((350, 158), (300, 158))
    drawing.text(324, 174, "answer", "small quiet", "middle")
    drawing.box(350, 212, 224, 60, "green", "ledger: what is idle, used,\nreleasing and pipelined")
    drawing.arrow((298, 238), (348, 238))
    drawing.text(324, 230, "change", "small quiet", "middle")
    drawing.arrow((590, 100), (628, 100))
    drawing.arrow((590, 200), (628, 200))
    drawing.box(630, 64, 112, 72, "box", "decisions:\nbind, evict,\nnominate")
    drawing.box(630, 164, 112, 72, "box", "verdicts:\nwhy each\ngang waits")
    return drawing


def statement() -> Drawing:
    """A statement that is kept and one that is undone."""
    drawing = Drawing(
        720, 250, "A statement places task after task; if the gang is complete it is committed, otherwise the ledger is as before"
    )
    for x, title, taken in ((20, "before", 0), (200, "task 1", 1), (380, "task 2", 2)):
        drawing.text(x, 32, title, "head")
        drawing.slots(x, 44, [("blue", "A") if number < taken else ("box", "") for number in range(3)])
    for x in (160, 340):
        drawing.arrow((x - 6, 66), (x + 32, 66))
    drawing.text(20, 112, "three GPUs are free; gang A needs three, gang B four", "small quiet")
    drawing.arrow((512, 66), (556, 66))
    drawing.text(560, 32, "A is complete: commit", "head")
    drawing.slots(560, 44, [("blue", "A")] * 3)
    drawing.text(20, 156, "B, instead of A", "head")
    drawing.slots(20, 168, [("orange", "B")] * 3)
    drawing.arrow((154, 190), (196, 190))
    drawing.box(200, 168, 44, 44, "gone", "B")
    drawing.text(254, 186, "no place for the fourth:", "")
    drawing.text(254, 206, "3 of 4 tasks fit", "quiet")
    drawing.arrow((430, 190), (556, 190))
    drawing.text(560, 156, "discard", "head")
    drawing.slots(560, 168, [("box", "")] * 3)
    drawing.text(560, 232, "as before, bit for bit", "small quiet")
    return drawing


def evictions() -> Drawing:
    """Units of victims, and the fewest of them."""
    drawing = Drawing(720, 350, "Three nodes before and after room is made for a gang of two tasks of three GPUs each")
    rows = (
        ("dgx-1", "blue S,blue S,blue S,blue S", "orange L,orange L,orange L,blue S"),
        ("dgx-2", "green B,green B,green B,green B", "green B,green B,green B,green B"),
        ("dgx-3", "box,box,box,box", "orange L,orange L,orange L,box"),
    )
    drawing.text(90, 36, "before", "head")
    drawing.text(430, 36, "after", "head")
    for number, (name, before, after) in enumerate(rows):
        y = 50 + number * 58
        drawing.text(30, y + 27, name, "small quiet")
        drawing.slots(90, y, _places(before))
        drawing.arrow((290, y + 22), (400, y + 22))
        drawing.slots(430, y, _places(after))
    drawing.text(30, 240, "llama (L) is urgent and needs two tasks of three GPUs each.")
    drawing.text(30, 262, "sweep (S) has four tasks of one GPU and needs one: it can spare any three, one by one.")
    drawing.text(30, 284, "bert (B) needs both of its tasks: it could only go as a whole.")
    drawing.text(30, 306, "Three tasks of sweep go, and dgx-3 was free.")
    drawing.text(30, 328, "Put any one of the three back and llama has no place.")
    return drawing


def _places(written: str) -> list[tuple[str, str]]:
    """Read places such as ``blue S,box``: a kind each, and a letter."""
    parts = (part.partition(" ") for part in written.split(","))
    return [(kind, letter) for kind, _, letter in parts]


def shares() -> Drawing:
    """A quota first, the rest by weight."""
    drawing = Drawing(720, 240, "Eight GPUs are divided: each queue gets its quota of two, the other four by weight one to three")
    unit = 70
    drawing.text(30, 34, "8 GPUs, two queues: quotas of 2 each, weights 1 and 3", "head")
    drawing.box(30, 52, 2 * unit, 36, "blue", "quota of vision")
    drawing.box(30 + 2 * unit, 52, 2 * unit, 36, "orange", "quota of language")
    drawing.box(30 + 4 * unit, 52, 4 * unit, 36, "box", "left over: divided by weight")
    drawing.box(30, 116, 2 * unit, 36, "blue")
    drawing.box(30 + 2 * unit, 116, unit, 36, "blue")
    drawing.text(30 + 3 * unit + 16, 139, "vision: 2 + 4 × 1/4 = 3")
    drawing.box(30, 172, 2 * unit, 36, "orange")
    drawing.box(30 + 2 * unit, 172, 3 * unit, 36, "orange")
    drawing.text(30 + 5 * unit + 16, 195, "language: 2 + 4 × 3/4 = 5")
    return drawing


def arrays() -> Drawing:
    """One row per resource, one column per node."""
    drawing = Drawing(
        720, 270, "Room is a table of resources by nodes; a request is compared row by row, and one answer per node comes out"
    )
    table = (("cpu", [40, 8, 96, 64, 12]), ("memory", [512, 64, 900, 200, 96]), ("gpu", [4, 0, 8, 1, 2]))
    drawing.text(130, 34, "room on each node", "head")
    drawing.text(560, 34, "a task asks for", "head")
    for column in range(5):
        drawing.text(130 + column * 74 + 35, 58, f"node {column}", "small quiet", "middle")
    for row, ((name, amounts), wanted) in enumerate(zip(table, (16, 128, 2), strict=True)):
        y = 68 + row * 42
        drawing.text(30, y + 24, name, "mono")
        for column, amount in enumerate(amounts):
            drawing.box(130 + column * 74, y, 70, 36, "green" if amount >= wanted else "orange", str(amount))
        drawing.text(516, y + 24, "≥", "", "middle")
        drawing.box(560, y, 70, 36, "blue", str(wanted))
    drawing.text(30, 220, "fits", "mono")
    for column, fits in enumerate((True, False, True, False, False)):
        drawing.box(130 + column * 74, 198, 70, 36, "green" if fits else "orange", "yes" if fits else "no")
    drawing.text(30, 256, "Three comparisons of whole rows answer for every node at once.", "small quiet")
    return drawing


def live() -> Drawing:
    """From a watch to a bind and back."""
    drawing = Drawing(
        760, 330, "Watches feed the cache, sessions decide on snapshots of it, requests are sent in order, and watches confirm them"
    )
    drawing.box(20, 30, 130, 270, "box", "API server")
    drawing.box(220, 44, 150, 56, "blue", "mirror:\nobjects as watched")
    drawing.box(440, 44, 150, 56, "blue", "cache: gangs and\nassumed pods")
    drawing.box(440, 160, 150, 56, "green", "session:\ndecisions")
    drawing.box(220, 244, 150, 56, "orange", "outbox:\nrequests in order")
    drawing.box(220, 144, 150, 56, "green", "controllers:\nwrites")
    drawing.arrow((150, 72), (218, 72))
    drawing.text(184, 64, "watch", "small quiet", "middle")
    drawing.arrow((370, 72), (438, 72))
    drawing.text(404, 64, "changes", "small quiet", "middle")
    drawing.arrow((515, 100), (515, 158))
    drawing.text(523, 134, "snapshot", "small quiet")
    drawing.arrow((515, 216), (515, 272), (372, 272))
    drawing.text(523, 262, "binds, evictions, statuses", "small quiet")
    drawing.arrow((295, 100), (295, 142))
    drawing.arrow((295, 200), (295, 242))
    drawing.arrow((220, 272), (152, 272))
    drawing.text(186, 264, "requests", "small quiet", "middle")
    drawing.arrow((590, 188), (700, 188), (700, 72), (592, 72))
    drawing.text(692, 60, "assume, at once", "small quiet", "end")
    return drawing


def architecture() -> Drawing:
    """The packages, and the way of one pod through them."""
    drawing = Drawing(
        760,
        452,
        "A watch event goes from the store through the cache to a session, and its decisions go back to the store as requests",
    )
    drawing.box(262, 44, 176, 280, "box")
    drawing.text(276, 68, "scheduling", "head")
    for number, part in enumerate(("cache", "loop", "binding, eviction", "status, events")):
        drawing.box(278, 82 + number * 60, 144, 44, "blue", part)
    _stores(drawing)
    _deciding(drawing)
    drawing.text(24, 360, "used on the way", "small quiet")
    foundations = ("dialects: objects to model", "explain: verdicts to text", "placement: arrays", "model: nouns")
    for number, part in enumerate(foundations):
        drawing.box(24 + number * 180, 370, 172, 32, "box")
        drawing.text(110 + number * 180, 391, part, "small", "middle")
    drawing.text(24, 434, "On both stores the same code decides and carries out.", "small quiet")
    return drawing


def _stores(drawing: Drawing) -> None:
    """Draw the two stores, each with what runs on it; one of them is in use."""
    drawing.box(24, 44, 168, 280, "box")
    drawing.text(38, 68, "either", "small quiet")
    drawing.text(38, 204, "or", "small quiet")
    for y, runner, store in ((78, "live", "store/kube"), (212, "sim", "store/memory")):
        drawing.box(38, y, 140, 40, "green", runner)
        drawing.box(38, y + 48, 140, 40, "orange", store)
    drawing.text(108, 182, "a real API server", "small quiet", "middle")
    drawing.text(108, 317, "objects in memory", "small quiet", "middle")
    drawing.arrow((192, 104), (276, 104))
    drawing.text(226, 96, "watch", "small quiet", "middle")
    drawing.arrow((278, 224), (194, 224))
    drawing.text(226, 216, "write", "small quiet", "middle")


def _deciding(drawing: Drawing) -> None:
    """Draw how the state of the cluster becomes decisions, and who is asked."""
    drawing.box(510, 44, 226, 60, "green", "state: nodes, gangs,\nqueues; snapshots")
    drawing.arrow((424, 92), (508, 74))
    drawing.text(474, 66, "update", "small quiet", "middle")
    drawing.box(510, 142, 226, 102, "box")
    drawing.text(524, 166, "session", "head")
    drawing.box(524, 178, 94, 52, "blue", "actions")
    drawing.box(630, 178, 94, 52, "orange", "plugins")
    drawing.arrow((618, 204), (630, 204))
    drawing.arrow((623, 104), (623, 140))
    drawing.text(632, 127, "snapshot", "small quiet")
    drawing.arrow((424, 164), (508, 190))
    drawing.text(468, 160, "open", "small quiet", "middle")
    drawing.box(510, 274, 226, 50, "box", "decisions: bind, evict,\nnominate")
    drawing.arrow((623, 244), (623, 272))
    drawing.text(632, 263, "return", "small quiet")
    drawing.arrow((510, 300), (474, 300), (474, 224), (424, 224))
    drawing.text(474, 318, "carry out", "small quiet", "middle")


def race(results: Path = RACE) -> Drawing:
    """One panel for each row of the race, with a bar for each scheduler."""
    found = json.loads(results.read_text()) if results.exists() else {"titles": {}, "rows": []}
    measured, panels = found["rows"], [_bars(row) for row in found["rows"]]
    lines = max((len(bars) for bars in panels), default=0)
    height = 62 + lines * 20
    drawing = Drawing(
        760,
        20 + height * max(1, (len(panels) + 1) // 2),
        "Times of Phalanx, of raw binds and of other schedulers on one API server",
    )
    if not panels:
        drawing.text(24, 32, "Not measured yet: run 'make race'.", "quiet")
    for number, (row, bars) in enumerate(zip(measured, panels, strict=True)):
        _panel(drawing, (24 + number % 2 * 368, 32 + number // 2 * height), row, bars, found["titles"])
    return drawing


def _bars(row: dict[str, Any]) -> list[tuple[str, float | None]]:
    """Return the median of each contender by name; none if one of its rounds failed."""
    number = "p50" if row["load"] in ("arrivals", "backlog") else "seconds"
    rounds: dict[str, list[float | None]] = {}
    for outcome in row["outcomes"]:
        if outcome["contender"] != EXTRA:
            rounds.setdefault(outcome["contender"], []).append(outcome["numbers"].get(number))
    return [(name, None if None in found else median(each or 0.0 for each in found)) for name, found in rounds.items()]


def _panel(
    drawing: Drawing, corner: tuple[float, float], row: dict[str, Any], bars: list[tuple[str, float | None]], titles: dict[str, str]
) -> None:
    """Draw one row of the race; bars are as long as its times, the longest as wide as there is room."""
    x, y = corner
    about = {"arrivals": "complete to started, p50", "backlog": "room to next start, p50", "overload": "until all room is used"}
    drawing.text(x, y, row["title"], "small head")
    drawing.text(x, y + 17, about.get(row["load"], "process start to last bind"), "small quiet")
    longest = max((value for _, value in bars if value is not None), default=0.0) or 1.0
    for number, (name, value) in enumerate(bars):
        top = y + 26 + number * 20
        drawing.text(x + 172, top + 12, titles.get(name, name), "small", "end")
        width = 0.0 if value is None else max(1.0, value / longest * 110)
        if value is not None:
            drawing.box(x + 180, top, width, 15, {"phalanx": "blue", "raw": "box"}.get(name, "orange"))
        drawing.text(x + 186 + width, top + 12, "not in time" if value is None else _time(value), "small quiet")


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


FIGURES = {
    figure.__name__: figure for figure in (deadlock, session, statement, evictions, shares, arrays, live, architecture, race)
}

if __name__ == "__main__":
    for name, figure in FIGURES.items():
        (FOLDER / f"{name}.svg").write_text(figure().svg(), encoding="utf-8")
