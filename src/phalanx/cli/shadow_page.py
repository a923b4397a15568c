"""The page of a shadow's report: one HTML file that needs nothing else and runs no script, with the words of the terminal."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape

from phalanx.cli.shadow_sections import Section

TITLE = "Report of a shadow"
STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; font: 1rem/1.5 system-ui, sans-serif; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem .2rem 0; text-align: right; border-bottom: 1px solid #8888; white-space: nowrap; }
th.text, td.text { text-align: left; }
"""


def page(parts: Sequence[Section]) -> str:
    """Write the sections as a page."""
    digest = b64encode(sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return "\n".join([
        '<!doctype html>', '<html lang="en">', "<head>", '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">', f"<title>{TITLE}</title>",
        f"<style>{STYLE}</style>", "</head>", "<body>", f"<h1>{TITLE}</h1>", "<main>",
        *(line for part in parts for line in _part(part)),
        "</main>", "</body>", "</html>", "",
    ])  # fmt: skip


def _part(part: Section) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(part.title)}</h2>" if part.title else "<section>"
    yield from (f"<p>{escape(text)}</p>" for text in part.sentences)
    if part.table:
        header, *rows = part.table
        head, body = _row("th", header, part.texts), "\n".join(_row("td", row, part.texts) for row in rows)
        yield f'<div class="table">\n<table>\n<thead>\n{head}\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>'
    if part.rest:
        yield f"<p>{escape(part.rest)}</p>"
    yield "</section>"


def _row(tag: str, cells: Sequence[str], texts: int) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    kinds = [' class="text"' if place < texts else "" for place in range(len(cells))]
    made = [f"<{tag}{scope}{kind}>{escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)]
    return "".join(["<tr>", *made, "</tr>"])
