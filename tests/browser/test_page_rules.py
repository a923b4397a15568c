"""What holds for every view of the live page: hostile names are text, keys reach everything, nothing scrolls sideways."""

from collections.abc import Iterator

import pytest

from phalanx.errors import Unauthorized
from phalanx.model.kinds import Document
from phalanx.testing import build
from phalanx.ui.scope import EVERYTHING, Scope
from phalanx.ui.seen import SeenCluster
from tests.browser.conftest import Look
from tests.support import ui_clusters
from tests.support.browser import Browser, Tab
from tests.support.ui_pages import open_page, setup_of, slow, still
from tests.support.ui_programs import page_of_program

VIEWS = {
    "overview": ".figures", "queues": "table.queues", "queues?queue=research": "#content section:last-child table",
    "gangs": ".virtual td", "gang/research/mixtral": ".stages", "gang/research/bert": ".life svg",
    "nodes": "canvas[data-drawn]", "nodes?node=node-00003": ".panel dl", "sessions": "#content table",
    "session/latest": "[data-part=step]", "what-if": "[data-key=add]",
    "what-if?changes=%5B%22node%2Fnode-00016%3Ddrained%22%5D": "[data-part=summary]",
}  # fmt: skip
"""Every view of a cluster, and what is there when it has loaded."""
EVIL = "<img src=x onerror=\"document.title='evil'\"><script>document.title='evil'</script>"
TURNED = "\u202egnp.exe\u200b"
FOCUSED = "document.activeElement"


def opened(look: Look, address: str, view: str, **size: int) -> Tab:
    """Open a view and wait until it is whole."""
    tab = look(address, view, **size)
    tab.wait(f"document.querySelector({VIEWS[view]!r}) && !document.querySelector('.busy')")
    return tab


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_scrolls_sideways_on_a_phone(look: Look, lively: str, view: str) -> None:
    tab = opened(look, lively, view, width=390, height=844)
    wide = """[...document.querySelectorAll('#content *')].filter(each => each.getBoundingClientRect().right > innerWidth + 1
        && !each.closest('.scroll, .life, canvas, .unseen')).map(each => each.outerHTML.slice(0, 120))"""
    assert tab.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), tab.value(wide)


LONG_GANG = f"gang/{ui_clusters.LONG_SPACE}/{ui_clusters.LONG_GANG}"


@pytest.fixture(scope="module")
def wordy() -> Iterator[str]:
    with open_page(lambda: setup_of(still(ui_clusters.long_names()))) as address:
        yield address


@pytest.mark.parametrize("view", ["overview", f"queues?queue={ui_clusters.LONG_QUEUE}", "gangs", LONG_GANG, "nodes", "sessions"])
def test_names_of_any_length_stay_on_a_phone(look: Look, wordy: str, view: str) -> None:
    tab = look(wordy, view, width=390, height=844)
    tab.wait("document.querySelector('h1') && !document.querySelector('.busy')")
    assert tab.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_name_of_a_queue_is_no_column_of_single_words(look: Look, wordy: str) -> None:
    tab = look(wordy, "queues")
    tab.wait(f"document.querySelector({VIEWS['queues']!r})")
    heights = "[...document.querySelectorAll('table.queues .plain-link')].map(each => each.offsetHeight)"
    assert max(tab.value(heights)) < 300, "nine lines or so, where each word had its own"


def test_sentences_in_tables_are_read_on_a_phone_without_scrolling(look: Look, lively: str) -> None:
    tab = opened(look, lively, "overview", width=390, height=844)
    cells = "[...document.querySelectorAll('td.long')].map(each => each.getBoundingClientRect())"
    assert tab.value(f"{cells}.length") > 3
    assert tab.value(f"{cells}.every(box => box.left > 0 && box.right <= innerWidth)")
    assert tab.value("getComputedStyle(document.querySelector('td.long'), '::before').content") == '"Why: "'


@pytest.mark.parametrize("width", [390, 1280])
def test_the_life_of_a_gang_is_written_as_large_as_other_text(look: Look, lively: str, width: int) -> None:
    tab = opened(look, lively, "gang/research/bert", width=width, height=844)
    assert (
        tab.value("Math.min(...[...document.querySelectorAll('.life text')].map(each => each.getBoundingClientRect().height))") > 11
    )
    last = "Math.max(...[...document.querySelectorAll('.life text')].map(each => each.getBoundingClientRect().right))"
    assert tab.value(last) <= width
    assert "2027-01-15 05:58:00 UTC" in tab.value("document.querySelector('.life').textContent"), "where the line begins"


def test_the_columns_of_steps_stay_in_their_table(look: Look, lively: str) -> None:
    tab = opened(look, lively, "session/latest")
    tab.wait("document.querySelectorAll('.steps .event').length")
    assert tab.value("(list => list.scrollWidth <= list.clientWidth)(document.querySelector('.steps .scroll'))")


@pytest.mark.parametrize(
    ("view", "says"),
    [("gang/%E0%A4%A", "there is no gang %E0%A4%A"), ("gang", "Gangs"), ("session", "Sessions"), ("%", "Overview")],
)
def test_an_address_that_is_wrong_says_so_or_leads_to_a_list(look: Look, lively: str, view: str, says: str) -> None:
    tab = look(lively, view)
    tab.wait_text("#content", says)
    tab.forget_refusals()


def test_who_has_no_pointer_reads_when_something_was(look: Look, lively: str) -> None:
    tab = opened(look, lively, "overview")
    tab.focus(".changes time")
    assert tab.text("#tip") == tab.value("document.activeElement.title") == "2027-01-15 07:55:00 UTC"
    tab.press("Tab")
    tab.wait("document.getElementById('tip').hidden")


def test_the_legend_of_the_map_has_the_colours_of_the_map_by_day_and_night(look: Look, lively: str) -> None:
    tab = look(lively, "nodes?by=queue")
    tab.wait("document.querySelector('canvas')?.dataset.drawn")
    batch = "[...document.querySelectorAll('.legend li')].find(each => each.innerText === 'batch')"
    sample = f"getComputedStyle({batch}.firstChild).backgroundColor"
    light = tab.wait(f"document.querySelectorAll('.legend li').length > 5 && {sample}")
    tab.colours("dark")
    tab.wait(f"{sample} !== {light!r}")


def test_every_link_and_button_is_reached_by_keyboard_and_shows_it(look: Look, lively: str) -> None:
    tab = opened(look, lively, "overview")
    wanted = tab.value(
        "[...document.querySelectorAll('a, button, input, select, time')].filter(each => each.checkVisibility()).length"
    )
    reached = set()
    for _ in range(wanted + 5):
        tab.press("Tab")
        reached.add(tab.value(f"[...document.querySelectorAll('*')].indexOf({FOCUSED})"))
        style = tab.value(f"(style => style.outlineStyle + ' ' + style.outlineWidth)(getComputedStyle({FOCUSED}))")
        assert style.split()[0] != "none" or tab.value(f"{FOCUSED} === document.body"), tab.value(f"{FOCUSED}.outerHTML")
    assert len(reached) >= wanted


def test_keys_open_views_and_explain_themselves(look: Look, lively: str) -> None:
    tab = opened(look, lively, "overview")
    tab.press("3")
    tab.wait_text("h1", "Gangs")
    tab.press("?")
    assert "find: go to the filter" in tab.wait_text("#help", "Keys")
    tab.press("Escape")
    tab.wait("!document.getElementById('help').open")
    tab.press("1")
    tab.wait_text("h1", "Overview")


def test_a_screen_reader_hears_which_row_is_chosen(look: Look, lively: str) -> None:
    tab = opened(look, lively, "gangs")
    tab.press("j")
    assert tab.wait("document.getElementById('said').textContent").startswith(tab.text("tr.chosen th"))


# --- hostile names -------------------------------------------------------------------------------------------------------


def hostile() -> list[Document]:
    """Return a cluster whose objects say what a browser should never believe."""
    made = ui_clusters.lively()
    for document in made:
        if document["kind"] == "Event":
            document |= {"message": EVIL, "reason": EVIL, "reportingComponent": EVIL}
        if document["kind"] == "PodGroup":
            document.setdefault("status", {})["conditions"] = [
                {"type": EVIL, "status": "True", "reason": EVIL, "message": TURNED, "lastTransitionTime": ui_clusters.at(60)}
            ]
            document["spec"]["priorityClassName"] = EVIL
        if document["kind"] == "Node":
            document["metadata"]["labels"] |= {"example.com/team": EVIL, ui_clusters.RACK: EVIL}
            document["spec"]["taints"] = [{"key": EVIL, "value": TURNED, "effect": "PreferNoSchedule"}]
    return [*made, build.queue(EVIL)]


@pytest.fixture(scope="module")
def dangerous() -> Iterator[str]:
    with open_page(lambda: setup_of(still(hostile()), title=EVIL)) as address:
        yield address


@pytest.mark.parametrize("view", ["overview", "queues", "gangs", "gang/research/mixtral", "nodes?node=node-00003", "sessions"])
def test_names_and_messages_that_look_like_html_are_only_text(look: Look, dangerous: str, view: str) -> None:
    tab = look(dangerous, view)
    tab.wait("document.querySelector('h1') && !document.querySelector('.busy')")
    tab.value("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert tab.value("document.images.length") == 0
    assert tab.value("document.scripts.length") == 1
    assert "evil" not in tab.value("document.title")
    assert tab.value("document.body.innerHTML.includes('\\u202e')") is False, "nothing turns a line around"


def test_they_are_shown_as_what_they_are(look: Look, dangerous: str) -> None:
    tab = look(dangerous, "gang/research/mixtral")
    assert EVIL in tab.wait_text("#content", "onerror")
    tab.wait("document.querySelectorAll('.life text').length")
    assert "\\u202egnp.exe\\u200b" in tab.wait("document.querySelector('.life').parentElement.textContent")


def test_what_would_load_something_is_kept_from_it(browser: Browser, lively: str) -> None:
    tab = browser.open(lively)
    refused = tab.value(
        """new Promise(done => {
            document.addEventListener('securitypolicyviolation', event => done(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/picture.png'}));
        })"""
    )
    tab.close()
    assert refused == "img-src"


# --- signing in ----------------------------------------------------------------------------------------------------------


class Token:
    """Lets one token see everything."""

    needs_token = True

    async def scope(self, authorization: str, seen: SeenCluster | None) -> Scope:
        if authorization != "Bearer right":
            raise Unauthorized("the API server does not know this token")
        return EVERYTHING


def test_where_a_token_is_needed_it_is_asked_for_and_stays_in_the_tab(look: Look) -> None:
    with open_page(lambda: setup_of(still(ui_clusters.lively()), access=Token())) as address:
        tab = look(address)
        tab.wait_text("h1", "Show who you are")
        tab.type("#token", "wrong")
        tab.press("Enter")
        tab.wait("document.readyState === 'complete' && document.querySelector('#token')?.value === ''")
        tab.wait_text("h1", "Show who you are")
        tab.forget_refusals()
        tab.type("#token", "right")
        tab.press("Enter")
        tab.wait_text("h1", "Overview")
        assert tab.value("document.cookie + localStorage.length") == "0"
        assert all("right" not in asked for asked in tab.requests), "a token is in no address"


# --- what goes on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["overview", "queues", "gangs", "gang/research/mixtral", "nodes", "sessions"])
def test_before_the_first_look_a_view_says_that_one_is_taken(look: Look, view: str) -> None:
    source = slow(ui_clusters.lively())
    with open_page(lambda: setup_of(source)) as address:
        tab = look(address, view)
        tab.wait_text("#content", "The cluster is looked at")
        source.go_on.set()
        tab.wait(f"document.querySelector({VIEWS[view]!r}) && !document.querySelector('.busy')")
    tab.forget_refusals()


def test_files_are_not_called_live_and_their_time_stands_still(look: Look, lively: str) -> None:
    tab = look(lively)
    tab.wait_text("#state", "Files, as they were read")
    tab.wait_text(".changes", "15 min ago")
    assert tab.value("import('./app/clock.js').then(found => found.clock.now())") == ui_clusters.NOW


def test_a_cluster_that_runs_is_called_live(look: Look) -> None:
    with page_of_program("up", "--nodes", "1") as address:
        tab = look(address)
        tab.wait_text("#state", "Live")
    tab.forget_refusals()


def test_a_lost_connection_is_said_and_the_page_stays(look: Look) -> None:
    with open_page(lambda: setup_of(still(ui_clusters.lively()))) as address:
        tab = opened(look, address, "overview")
        tab.wait_text("#state", "Files, as they were read")
    assert tab.wait_text("#state", "Connection lost")
    assert "Gangs that wait" in tab.text("#content")
    tab.forget_refusals()
