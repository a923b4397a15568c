"""The report page in a real browser: what a reader of a simulation sees and does."""

import json
from collections.abc import Callable
from importlib.resources import files

from phalanx.sim.report_text import duration, number
from tests.support import sim_results as results
from tests.support.browser import Browser, Tab

EVIL = '</script><script>document.title="evil"</script><img src=x onerror=\'document.title="evil"\'>'
COLOURS = """[...document.querySelectorAll('.result:not([hidden]) [data-chart] > canvas, .viewport canvas, figure canvas')]
    .filter(canvas => canvas.clientWidth)
    .map(canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)
    .map(pixels => new Set(new Uint32Array(pixels)).size)"""
TIP = "document.getElementById('tip').textContent"
DRAWN = "Number(document.querySelector('.viewport canvas').dataset.drawn)"
PICTURE = "document.querySelector('.viewport canvas').toDataURL()"

Show = Callable[..., Tab]


def test_every_chart_is_drawn_and_nothing_is_asked_of_the_network(show: Show) -> None:
    tab = show(results.crowd(300, queues=3))
    colours = tab.value(COLOURS)
    assert len(colours) == 3 + 3, "gangs, nodes and waits, and one for each queue"
    assert min(colours) > 3
    assert tab.problems == []
    assert [address.rpartition("/")[2] for address in tab.requests] == ["report.html"]


def test_a_page_that_would_load_something_is_kept_from_it(show: Show) -> None:
    tab = show(results.deadlock())
    refused = tab.value(
        """new Promise(done => {
            document.addEventListener('securitypolicyviolation', event => done(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/picture.png'}));
        })"""
    )
    assert refused == "img-src"


def test_names_that_look_like_html_are_only_text(show: Show) -> None:
    nodes = {"names": [EVIL], "times": [0.0], "held": [[0.5]]}
    queues = {EVIL: {"times": [0.0], "held": [1.0], "deserved": [None]}}
    gangs = [results.gang(EVIL, queue=EVIL, why=EVIL)]
    evil = results.result(gangs, profile=EVIL, evictions=[results.eviction(EVIL, 5, EVIL)], nodes=nodes, queues=queues)
    tab = show(evil, evil)
    tab.value("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert tab.value("document.title") == f"Simulation: {EVIL}"
    assert tab.value("document.images.length") == 0
    assert tab.value("document.scripts.length") == 2
    assert tab.problems == []


def test_ten_thousand_gangs_are_drawn_and_found_by_name(show: Show) -> None:
    tab = show(results.crowd(10_000, nodes=500))
    assert tab.value(DRAWN) == 10_000
    tab.type("[data-control=filter]", "job-4711")
    assert tab.value(DRAWN) == 1
    assert tab.value("document.querySelector('[data-part=count]').textContent") == "1 of 10,000 gangs"
    assert tab.problems == []


def test_a_filter_that_finds_nothing_leaves_an_empty_chart(show: Show) -> None:
    tab = show(results.deadlock())
    tab.type("[data-control=filter]", "nobody")
    assert tab.value(DRAWN) == 0
    assert tab.problems == []


def test_the_table_of_gangs_follows_the_filter_and_turns_pages(show: Show) -> None:
    tab = show(results.crowd(300))
    tab.value("document.querySelector('[data-part=table]').open = true")
    rows = "[...document.querySelectorAll('[data-part=rows] tbody tr')].map(row => row.cells[0].textContent)"
    first = tab.value(rows)
    tab.click(".pager button:last-child")
    second = tab.value(rows)
    assert (len(first), len(second)) == (100, 100)
    assert not set(first) & set(second)
    tab.type("[data-control=filter]", "job-17 team")
    assert all("job-17" in name for name in tab.value(rows))


def test_a_gang_is_told_about_where_the_pointer_is(show: Show) -> None:
    tab = show(results.deadlock())
    tab.scroll_to(".viewport canvas")
    left, top, *_ = tab.place_of(".viewport canvas")
    tab.point(left + 400, top + 20 + 18 + 9)
    assert tab.value(TIP).splitlines() == [
        "research/left",
        "queue research, priority 0",
        "4 tasks, at least 4",
        "has waited 10 min, ran –",
        "in a deadlock: 2 of 4 tasks have a place; 2 more GPUs are needed",
    ]


def test_gangs_and_time_are_reached_by_keyboard(show: Show) -> None:
    tab = show(results.deadlock())
    tab.focus(".viewport canvas")
    whole = tab.value(PICTURE)
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        tab.press(key)
    assert tab.value(TIP).startswith("research/right\n")
    assert tab.value("document.getElementById('said').textContent") == tab.value(TIP)
    chosen = tab.value(PICTURE)
    tab.press("+")
    assert len({whole, chosen, tab.value(PICTURE)}) == 3
    tab.press("0")
    assert tab.value(PICTURE) == chosen


def test_another_result_is_chosen(show: Show) -> None:
    tab = show(results.crowd(20), results.deadlock() | {"profile": "kai"})
    seen = "[...document.querySelectorAll('.result h2')].filter(title => title.clientHeight).map(title => title.textContent)"
    assert tab.value(seen) == ["phalanx, seed 7"]
    tab.click("#chooser input[value='1']")
    assert tab.value(seen) == ["kai, seed 7"]
    assert min(tab.value(COLOURS)) > 3


def test_an_empty_result_says_so_instead_of_empty_charts(show: Show) -> None:
    tab = show(results.result([]))
    sentences = tab.value("[...document.querySelectorAll('.empty')].map(part => part.textContent)")
    assert sentences == ["No gang was submitted.", "There was no node.", "There was no queue.", "No gang was submitted."]
    assert tab.value(COLOURS) == []
    assert tab.problems == []


def test_a_phone_never_scrolls_sideways(show: Show) -> None:
    tab = show(results.crowd(50), results.crowd(50, profile="a-profile-with-a-long-name"), width=390)
    assert tab.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_colours_follow_the_system_and_paper_is_white(show: Show) -> None:
    tab = show(results.deadlock())
    ground = "getComputedStyle(document.body).backgroundColor"
    light = (tab.value(ground), tab.value(PICTURE))
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    tab.settle()
    dark = (tab.value(ground), tab.value(PICTURE))
    tab.value("window.dispatchEvent(new Event('beforeprint'))")
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    assert (tab.value(ground), tab.value(PICTURE)) == light


def test_the_page_and_the_program_use_the_same_words(browser: Browser) -> None:
    tab = browser.open("about:blank")
    seconds = [0, 0.04, 0.05, 0.25, 1, 9.94, 9.96, 10, 59.4, 59.5, 61, 3599.4, 3599.6, 3600, 5430, 86399, 86400, 90000, 1e6, 1e8]
    numbers = [0, 1, 0.5, 3.14, 99.99, 100.4, 1234567]
    module = files("phalanx").joinpath("ui", "static", "charts", "words.js").read_text(encoding="utf-8").replace("export ", "")
    ask = f"(() => {{ {module}\n return [{json.dumps(seconds)}.map(durationWords), {json.dumps(numbers)}.map(numberWords)]; }})()"
    assert tab.value(ask) == [[duration(value) for value in seconds], [number(value) for value in numbers]]
