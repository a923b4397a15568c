"""The page of a simulation: one HTML file that needs nothing else, for one result or several to compare.

Words and tables are written here and are there without a script; charts are drawn in the browser from packed data. The parts of
the page stand in the folder `page`: a frame, the part of one result, and what starts the charts. The charts themselves, their
words and the style sheet are those of the live page (`ui/static/charts`); all modules are joined into one script. The content
policy lets only that script and that style sheet in, so that nothing in the data can run or load anything.
"""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from phalanx.sim.comparison import Comparison, compared
from phalanx.sim.report_data import pack
from phalanx.sim.report_tables import autoscaler, comparison, evictions, figures, nodes, queues, waits
from phalanx.sim.report_text import Result, deadlocks, headline, resource_word, titles

CHARTS = ("words", "canvas", "times", "gangs", "gantt", "gantt_view", "heat", "shares", "waits")
MODULES = (*CHARTS, "report")
"""Each uses only those before it."""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "[./\w]*?(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:function|const) (\w+))", re.MULTILINE)


def page(results: list[Result], found: Comparison | None = None) -> str:
    """Write the page of some results; a comparison comes first, if there is one, and may be about more than these results."""
    script, style = joined_script(), _chart_part("report.css")
    if found is None and len(results) > 1:
        found = compared({title: [result] for title, result in zip(titles(results), results, strict=True)})
    return Template(_part("report.html")).substitute(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'",
        title=escape(_page_title(results)),
        style=style,
        script=script,
        comparison=comparison(found),
        chooser=_chooser(results),
        results="".join(_section(number, *named) for number, named in enumerate(zip(titles(results), results, strict=True)))
        or "<p>There is no result to show.</p>",
        data=_as_json([pack(result) for result in results]),
    )


def joined_script() -> str:
    """Return the modules of the page as one script, each in a scope of its own."""
    return "".join(_scoped(name, _chart_part(f"{name}.js")) for name in CHARTS) + _scoped("report", _part("report.js"))


def _scoped(name: str, module: str) -> str:
    """Turn a module into a function that is called once and returns what the module exports."""
    exported = ", ".join(_EXPORT.findall(module))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = \2;", module))
    return f"const {name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"


def _part(name: str) -> str:
    return files("phalanx").joinpath("sim", "page", name).read_text(encoding="utf-8")


def _chart_part(name: str) -> str:
    return files("phalanx").joinpath("ui", "static", "charts", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _page_title(results: list[Result]) -> str:
    names = dict.fromkeys(str(result["profile"]) for result in results)
    return f"Simulation: {', '.join(names)}" if names else "Simulation"


def _as_json(data: object) -> str:
    """Write data so that no text in it can close the element around it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _chooser(results: list[Result]) -> str:
    if len(results) < 2:
        return ""
    choices = "".join(
        f'<label><input type="radio" name="result" value="{number}"{" checked" if number == 0 else ""}> {escape(title)}</label>'
        for number, title in enumerate(titles(results))
    )
    return f'<fieldset class="chooser" id="chooser"><legend>Show the result of</legend>{choices}</fieldset>'


def _section(number: int, title: str, result: Result) -> str:
    return Template(_part("result.html")).substitute(
        number=number,
        title=escape(title),
        headline=escape(headline(result)),
        figures=figures(result),
        resource=escape(resource_word(result)),
        deadlocks="".join(f"<p>{escape(sentence)}</p>" for sentence in deadlocks(result)),
        has_deadlock="has-deadlock" if result["deadlocks"] else "",
        autoscaler=autoscaler(result),
        nodes=nodes(result),
        queues=queues(result),
        waits=waits(result),
        evictions=evictions(result),
    )
