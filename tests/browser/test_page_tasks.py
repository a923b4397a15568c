"""What people come to the live page for, one task each, done with the pointer and the keyboard as they would."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from phalanx.sim.result import Run, result
from phalanx.sim.served_results import RUNNING, ResultWriter
from phalanx.sim.world import World
from tests.browser.conftest import Keep, Look
from tests.support import sim_worlds as worlds
from tests.support import ui_clusters
from tests.support.browser import Tab
from tests.support.ui_clusters import lively as lively_objects
from tests.support.ui_pages import open_page, seen, setup_of, simulations_setup, still
from tests.support.ui_programs import page_of_program

HEADLINE = ".gang .headline"
NIGHT = "03:12"
MOST_MS = 2000


def to_view(tab: Tab, title: str) -> None:
    """Go to a view by the menu."""
    tab.click_text("#views a", title)
    tab.wait_text("h1", title)


def choose(tab: Tab, field: str, value: str) -> None:
    """Choose from a list, as a person does who has opened it."""
    tab.value(
        f"(field => {{ field.value = {value!r}; field.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
        f"(document.querySelector({field!r}))"
    )


def write(tab: Tab, field: str, text: str) -> None:
    """Replace what stands in a field."""
    tab.focus(field)
    tab.value(f"document.querySelector({field!r}).select()")
    tab.call("Input.insertText", text=text)


# --- why, and what would help --------------------------------------------------------------------------------------------


def test_somebody_finds_why_a_gang_waits_and_what_would_start_it(look: Look, keep: Keep, lively: str) -> None:
    tab = look(lively)
    tab.wait_text(".reasons", "research/mixtral")
    keep(tab, "overview")
    tab.colours("dark")
    keep(tab, "overview-dark")
    tab.colours("light")
    tab.click_text("#content .columns td a, #content .columns th a", "research/mixtral")
    said = seen(lively_objects()).gangs["research/mixtral"].why
    assert said in tab.wait_text(HEADLINE, "24 tasks fit"), "the sentence of the command line"
    tab.wait(f"document.querySelector({HEADLINE!r}).checkVisibility()")
    remedies = tab.wait_text(".remedies", "try it")
    assert "--if 'gang/research/mixtral.minMember=" in remedies
    keep(tab, "gang")


def test_a_remedy_is_tried_before_anything_is_done(look: Look, lively: str) -> None:
    tab = look(lively, "gang/research/mixtral")
    tab.wait_text(".remedies", "try it")
    tab.click(".remedies a")
    assert "would start" in tab.wait_text("[data-part=summary]", "gang")
    assert "research/mixtral" in tab.text("#content")


def test_somebody_asks_what_a_drained_node_would_cost(look: Look, lively: str) -> None:
    tab = look(lively)
    to_view(tab, "What if")
    tab.type("[name=node]", "node-00016")
    tab.click("[data-key=add]")
    tab.wait_text("[data-part=summary]", "gang")
    assert "node/node-00016=drained" in tab.text("#content")
    assert "batch/llama" in tab.text("#content").partition("Pays for it")[2]


@pytest.mark.parametrize(
    ("kind", "fields", "change"),
    [
        ("more", {"count": "16", "node": "node-00016"}, "node/+16=node-00016"),
        ("queue", {"queue": "batch", "value": "64"}, "queue/batch.capability.nvidia.com/gpu=64"),
        ("minimum", {"gang": "research/mixtral", "value": "12"}, "gang/research/mixtral.minMember=12"),
        ("end", {"gang": "batch/llama"}, "gang/batch/llama=gone"),
    ],
)  # fmt: skip
def test_somebody_asks_what_another_change_would_bring(
    look: Look, lively: str, kind: str, fields: dict[str, str], change: str
) -> None:  # fmt: skip
    tab = look(lively, "what-if")
    choose(tab, "[data-key=kind]", kind)
    for name, text in fields.items():
        write(tab, f"[name={name}]", text)
    tab.click("[data-key=add]")
    tab.wait_text("[data-part=summary]", "gang")
    assert change in tab.text("#content")


def test_somebody_asks_when_a_gang_is_expected_to_start(look: Look, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(lively_objects()))
    with page_of_program("ui", "-f", str(file)) as address:
        tab = look(address, "gang/research/mixtral")
        tab.wait_text("[data-key=eta]", "Estimate")
        tab.click("[data-key=eta]")
        assert "simulations" in tab.wait_text("#content", "Started in")


def test_a_change_that_makes_no_sense_says_what_to_write_instead(look: Look, lively: str) -> None:
    tab = look(lively, "what-if")
    choose(tab, "[data-key=kind]", "other")
    tab.type("[name=text]", "nodes/n1")
    tab.press("Enter")
    assert "nodes/n1" in tab.wait_text("#content .failure:not([hidden])", "nodes/n1")
    tab.forget_refusals()


# --- queues --------------------------------------------------------------------------------------------------------------


def test_somebody_sees_who_is_ahead_in_the_line_and_by_which_rule(look: Look, lively: str) -> None:
    tab = look(lively)
    to_view(tab, "Queues")
    tab.click_text("button.plain-link", "research")
    line = tab.wait_text("#content section:last-child table", "research/eval")
    assert line.index("research/mixtral") < line.index("research/eval")
    assert "behind research/mixtral: " in line


def test_somebody_sees_which_queue_lends_to_whom(look: Look, keep: Keep, lively: str) -> None:
    tab = look(lively)
    to_view(tab, "Queues")
    lending = tab.wait_text("#content", "lends: ")
    assert "production lends: " in lending
    assert "batch has" in lending
    bars = tab.value("[...document.querySelectorAll('table.queues svg.bar')].map(bar => bar.getAttribute('aria-label'))")
    assert any("borrowed" in label for label in bars)
    assert "most of them call it deserved" in tab.text("#content"), "reasons say 114.667 where the column says 48"
    keep(tab, "queues")


# --- gangs and sessions --------------------------------------------------------------------------------------------------


def test_somebody_finds_a_gang_among_thousands_as_they_type(look: Look, vast: str) -> None:
    tab = look(vast, "gangs")
    tab.wait_text("#content", "5,000 gangs")
    assert tab.value("document.querySelectorAll('.virtual tbody tr').length") < 100, "only rows in view are in the document"
    tab.press("/")
    tab.call("Input.insertText", text="job-04711")
    assert "1 of 5,000 gangs" in tab.wait_text("output", "1 of")
    tab.press("Escape")
    tab.press("j")
    tab.press("Enter")
    tab.wait_text("h1", "default/job-04711")


def test_ten_thousand_rows_are_as_smooth(look: Look) -> None:
    with open_page(lambda: setup_of(still(ui_clusters.vast(count=1000, gangs=10_000, size=1)))) as address:
        tab = look(address, "gangs")
        tab.wait_text("#content", "10,000 gangs")
        assert tab.value("document.querySelectorAll('.virtual tbody tr').length") < 100
        tab.press("/")
        begun = tab.value("performance.now()")
        tab.call("Input.insertText", text="job-09711")
        assert "1 of 10,000 gangs" in tab.wait_text("output", "1 of")
        assert tab.value("performance.now()") - begun < MOST_MS, "benchmarks/page.py measures it; this only sees what is far off"


def test_somebody_steps_through_a_session(look: Look, lively: str) -> None:
    tab = look(lively)
    to_view(tab, "Sessions")
    tab.click("#content table a")
    first = tab.wait_text("[data-part=step]", " ")
    tab.value("document.activeElement.blur()")
    tab.press("ArrowRight")
    tab.wait("location.hash.includes('step=') && document.querySelector('.steps h2').innerText.startsWith('Step ')")
    tab.wait(f"document.querySelector('[data-part=step]').innerText !== {first!r}")
    choose(tab, "[data-key=level]", "5")
    tab.wait_text("#content output", "steps")
    tab.wait("document.querySelectorAll('.event').length > 5")
    tab.type("[data-key=filter]", "scores")
    tab.wait("[...document.querySelectorAll('.virtual .event')].every(each => each.innerText.includes('score'))")
    tab.click(".virtual tbody tr:nth-of-type(3)")
    assert "Total" in tab.wait_text(".steps .panel", "node-00034")


# --- nodes ---------------------------------------------------------------------------------------------------------------


def test_somebody_frees_room_for_8_nodes_in_one_rack_among_10000(look: Look, keep: Keep, vast: str) -> None:
    tab = look(vast)
    to_view(tab, "Nodes")
    tab.wait("document.querySelector('canvas')?.dataset.drawn === '10000'")
    whole = tab.value("document.querySelector('canvas').toDataURL()")
    write(tab, "[name=nodes]", "8")
    write(tab, "[name=amount]", "8")
    choose(tab, "[name=level]", "topology.kubernetes.io/rack")
    tab.click("[data-key='room ask']")
    found = tab.wait_text("[data-part=room]", "8 nodes with 8 GPUs free")
    assert "rack-042 has 9, and" in found, "the fullest rack with room: what is left elsewhere stays whole"
    assert tab.value("document.querySelector('canvas').toDataURL()") != whole, "the nodes are marked on the map"
    tab.value("window.scrollTo(0, document.querySelector('[data-part=room]').getBoundingClientRect().top - 80)")
    keep(tab, "nodes")


def test_a_node_of_the_map_is_opened_by_keyboard_with_its_gangs(look: Look, lively: str) -> None:
    tab = look(lively, "nodes")
    tab.wait("document.querySelector('canvas')?.dataset.drawn")
    tab.focus("canvas")
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        tab.press(key)
    assert "research/bert" in tab.wait_text("[aria-label='The chosen node']", "research/bert")


def test_nodes_that_take_no_pods_are_no_free_ones(look: Look, lively: str) -> None:
    tab = look(lively, "nodes")
    assert "free: 13 nodes" in tab.wait_text(".legend", "not ready: 1"), "14 have nothing on them"


def test_the_colour_of_a_queue_stands_for_nothing_else(look: Look, lively: str) -> None:
    tab = look(lively, "nodes?by=queue")
    tab.wait("document.querySelector('canvas')?.dataset.drawn")
    colours = "[...document.querySelectorAll('.legend .key')].map(each => getComputedStyle(each).backgroundColor)"
    _, _, full, *marks_and_queues = tab.wait(f"(found => found.length > 5 && found)({colours})")
    assert full not in marks_and_queues


# --- simulations ---------------------------------------------------------------------------------------------------------


@contextmanager
def simulating(folder: Path) -> Iterator[tuple[World, ResultWriter]]:
    """Make a simulation that goes on as far as a test lets it."""
    world = worlds.world(nodes=3, gpus=1)
    for number in range(6):
        worlds.submit(world, worlds.gang(f"train-{number}", tasks=2 + number % 2, duration="10m", gpus=1), at=number * 120.0)
    yield world, ResultWriter(folder, "nightly", lambda: 0.0)


def test_somebody_follows_a_running_simulation(look: Look, tmp_path: Path) -> None:
    with simulating(tmp_path) as (world, writer):
        worlds.run(world, 300)
        writer.write(result(world, Run("phalanx", 1, ending=RUNNING)))
        with open_page(lambda: simulations_setup(tmp_path)) as address:
            tab = look(address, "simulations")
            early = tab.wait_text(".result .headline", " ")
            assert "runs" in tab.text("#content table")
            worlds.run(world, 7200)
            writer.write(result(world, Run("phalanx", 1)))
            tab.wait(f"document.querySelector('.result .headline')?.innerText !== {early!r}")
            assert "is over" in tab.wait_text("#content table", "is over")


def test_beside_a_night_of_the_past_results_are_as_old_as_their_files(look: Look, recording: Path, tmp_path: Path) -> None:
    with simulating(tmp_path) as (world, writer):
        writer.write(result(world, Run("phalanx", 1)))
    with page_of_program("ui", "--log", str(recording), "--results", str(tmp_path)) as address:
        tab = look(address, f"overview?at={NIGHT}")
        tab.wait_text("#state", "A moment of the past")
        to_view(tab, "Simulations")
        assert " ago" in tab.wait_text("#content table", "is over")


# --- yesterday -----------------------------------------------------------------------------------------------------------


def test_somebody_goes_back_to_0312_last_night(look: Look, keep: Keep, yesterday: str) -> None:
    tab = look(yesterday)
    now = tab.wait_text(".yesterday output", "UTC")
    tab.type(".yesterday input[type=text]", "03:12")
    tab.press("Enter")
    then = tab.wait_text(".yesterday output", "03:12:00 UTC")
    assert now != then
    tab.wait_text("#state", "A moment of the past")
    tab.wait_text("#content", "Longest waits")
    keep(tab, "yesterday")
    to_view(tab, "Sessions")
    tab.click("#content table a")
    assert tab.wait_text("[data-part=step]", " "), "its sessions are gone through, too"
    assert "at=" in tab.value("location.hash"), "links stay in the past"


def test_the_slider_moves_through_the_night(look: Look, yesterday: str) -> None:
    tab = look(yesterday)
    end = tab.wait_text(".yesterday output", "UTC")
    tab.focus(".yesterday input[type=range]")
    tab.value("(slider => { slider.value = Number(slider.min) + 7200; slider.dispatchEvent(new Event('input')); })"
              "(document.querySelector('.yesterday input[type=range]'))")  # fmt: skip
    assert tab.wait_text(".yesterday output", "02:00:00 UTC") != end
    tab.wait("location.hash.includes('at=')")
    tab.press("]")
    tab.wait_text(".yesterday output", "02:01:00 UTC")


def test_a_time_that_is_not_in_the_recording_is_refused_with_what_is(look: Look, yesterday: str) -> None:
    tab = look(yesterday)
    tab.wait_text(".yesterday output", "UTC")
    tab.type(".yesterday input[type=text]", "yesterday")
    tab.press("Enter")
    assert "write for example 03:12" in tab.wait_text(".yesterday .failure:not([hidden])", "2026-01-01")


def test_both_worlds_stand_side_by_side(look: Look, recording: Path) -> None:
    with page_of_program("ui", "--log", str(recording), "--profile", "phalanx") as address:
        _compare(look(address, "worlds"))


def _compare(tab: Tab) -> None:
    tab.click("[data-key=compare]")
    assert "Mean wait, recorded" in tab.wait_text("#content", "Mean wait, ours")
    assert tab.value("Number(document.querySelector('.figures dd').firstChild.textContent)") > 0, "gangs that start earlier with us"
    assert tab.value("document.querySelectorAll('.pair').length") == 60
