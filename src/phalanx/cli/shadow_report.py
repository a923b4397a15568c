"""What `phalanx shadow report` does: it looks at a recording, simulates its work twice, and sets both worlds side by side."""

import gc
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phalanx import __version__
from phalanx.cli import output
from phalanx.cli.policy_options import asked_policy
from phalanx.cli.recorded_simulations import RecordedLoad, feed, outcomes, recording_of, refuse_empty, simulations
from phalanx.cli.shadow import ShadowOptions
from phalanx.cli.shadow_page import page
from phalanx.cli.shadow_sections import sections, text_lines
from phalanx.cli.simulate_run import GARBAGE
from phalanx.cli.streams import escaped
from phalanx.config.policies import policy_of_profile
from phalanx.errors import ConfigError
from phalanx.explain.reason_text import counted
from phalanx.live.catalogue import connected
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.listing import listed
from phalanx.recording.cluster_watch import ClusterWatch
from phalanx.recording.gang_lives import GangLife
from phalanx.recording.load import load_of
from phalanx.recording.moment import span_of, time_text
from phalanx.recording.observed_cluster import ObservedCluster
from phalanx.recording.observed_work import ObservedWork, scheduler_of
from phalanx.recording.other_outcome import AGREED_SECONDS, compared
from phalanx.recording.reading import Recording
from phalanx.recording.replay import policy_of_config
from phalanx.recording.shadow_outcome import Worlds, both_uses, counted_resource, seen
from phalanx.session.policy import Policy
from phalanx.sim.metrics import short_time
from phalanx.sim.world import START

Json = dict[str, Any]  # Any: as JSON has it
NATIVE = GROUP_BY_DIALECT["native"]
MOST_NAMED = 8
SHORT_SECONDS = 5.0
"""Looks that are closer miss nothing that matters."""
RESEMBLING = {
    "default-scheduler": "default-scheduler", "volcano": "volcano", "kai-scheduler": "kai", "phalanx": "phalanx",
    "scheduler-plugins-scheduler": "coscheduling", "koord-scheduler": "coscheduling",
}  # fmt: skip
"""The profile that decides most like a scheduler, by the name that pods have."""
WITH_NATIVE_GANGS = "coscheduling"
"""The same for the default scheduler where Kubernetes' own PodGroups are: it binds no pod until all of a gang have a node."""


@dataclass(frozen=True, slots=True)
class RecordedProfile:
    """Who scheduled, and whom a simulation takes for it."""

    schedulers: Counter[str]
    """How many gangs each had."""
    name: str
    is_unknown: bool
    """No profile is known to resemble it."""


def write_report(asked: ShadowOptions) -> bool:
    """Write the report; tell whether nobody interrupted it."""
    gc.set_threshold(*GARBAGE)
    document = report(asked)
    if document is None:
        output.complain("interrupted before both simulations were over: nothing to compare")
        return False
    parts = sections(document)
    if asked.html:
        _write_page(asked.html, page(parts))
    if asked.form == "table":
        output.write_lines(text_lines(parts))
    else:
        output.write_data(document, asked.form)
    return True


def _write_page(path: str, text: str) -> None:
    try:
        Path(path).write_text(escaped(text), encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"--html: {path}: cannot be written: {problem.strerror}") from problem
    output.note(f"the page is in {path}")


def report(asked: ShadowOptions) -> Json | None:
    """Return everything that is reported; None on Ctrl-C."""
    other = asked_policy(asked.config, asked.profile) if asked.config or asked.profile else None
    if asked.recorded_profile:
        policy_of_profile(asked.recorded_profile)  # a wrong one is refused before anything is read
    recording = recording_of(asked.folder)
    span = span_of(Recording(Path(asked.folder), tell=lambda text: None))
    name, policy = _ours(asked, recording, other)
    followed = ObservedCluster(ClusterWatch(connected(policy)), span.ended - span.begun)
    feed(recording, followed.enter)
    followed.finish()
    refuse_empty(followed.work, asked.folder)
    return _compared(asked, followed, (name, policy))


def _ours(asked: ShadowOptions, recording: Recording, other: Policy | None) -> tuple[str, Policy]:
    """Return by whose rules our world goes, and their name."""
    if other is not None:
        return Path(asked.config).name if asked.config else asked.profile or "", other
    config = recording.headers()[0][1].config
    return config.profile or "the recorded configuration", policy_of_config(config)


def _compared(asked: ShadowOptions, followed: ObservedCluster, ours: tuple[str, Policy]) -> Json | None:
    work, watch = followed.work, followed.watch
    load = load_of(work, start=START, assumed=asked.assumed, runs_on=True)
    theirs = _recorded_profile(asked, work, load.names)
    results: list[Mapping[str, Any]] = [{"gangs": [], "metrics": {}}] * 2
    if load.names:
        results = simulations(RecordedLoad(work, load), [(theirs.name, policy_of_profile(theirs.name)), ours])
    if len(results) < 2:
        return None
    same, other = map(outcomes, results)
    worlds = Worlds.of(compared(load.names, work.ended, same, other), {half.gang for half in watch.all_half_starts()})
    return {
        "version": __version__, "from": time_text(work.begun), "to": time_text(work.ended), "seconds": round(load.seconds, 3),
        "profile": ours[0], "recordedProfile": theirs.name, "schedulers": dict(theirs.schedulers),
        **seen(watch, counted_resource(work.use)), **worlds.document(), "use": both_uses(work.use, results[1]["metrics"]),
        "uncertainty": {
            "unmeasuredDurations": load.unmeasured, "marginSeconds": round(worlds.margin, 3), **worlds.distance.document(),
            "text": _uncertainty(worlds, load.unmeasured, theirs),
        },
        "notes": [*load.notes, *_notes(followed, theirs)],
    }  # fmt: skip


def _recorded_profile(asked: ShadowOptions, work: ObservedWork, lives: Mapping[str, GangLife]) -> RecordedProfile:
    schedulers = Counter(scheduler_of(life.seats[0].pod) for life in lives.values() if life.seats)
    most = next((name for name, _ in schedulers.most_common(1)), "")
    is_native = most == "default-scheduler" and any(
        group["apiVersion"].startswith(f"{NATIVE.group}/") for life in lives.values() for group in life.groups.values()
    )
    named = asked.recorded_profile or _own_profile(work)
    found = named or (WITH_NATIVE_GANGS if is_native else RESEMBLING.get(most, "phalanx"))
    return RecordedProfile(schedulers, found, is_unknown=bool(most) and not named and most not in RESEMBLING)


def _own_profile(work: ObservedWork) -> str:
    """Return the profile by which a scheduler of ours decided, whose recording this is; empty where others did."""
    return "" if work.is_by_others or work.config is None else work.config.profile


def _uncertainty(worlds: Worlds, unmeasured: int, theirs: RecordedProfile) -> str:
    """Say what the differences are worth."""
    far = worlds.distance
    durations = f"{unmeasured} of {counted(len(worlds.rows), 'duration')} could not be measured"
    if not far.gangs:
        return (
            f"{durations}; no gang says how far simulations are from what happened, so that differences up to "
            f"{short_time(worlds.margin)} count as none and larger ones are not certain"
        )
    worst = f", at most by {short_time(far.largest)} ({far.farthest})" if far.farthest else ""
    return (
        f"{durations}; a simulation under {theirs.name} differs from what was recorded by {short_time(far.mean)} of waiting on "
        f"average{worst}, and {far.agreeing} of {counted(far.gangs, 'gang')} agree within {AGREED_SECONDS:g}s; nine of ten are "
        f"closer than the margin: differences up to {short_time(worlds.margin)} mean nothing"
    )


def _notes(followed: ObservedCluster, theirs: RecordedProfile) -> Iterator[str]:
    work = followed.work
    yield "gangs that never started count with their wait until the end, or until they were deleted"
    if work.is_by_others:
        yield "evictions in the recording are pods that left a node in order before their end and came back"
    if len(theirs.schedulers) > 1:
        yield f"gangs of several schedulers: our world schedules all of them, and {theirs.name} stands for all that were recorded"
    if theirs.is_unknown:
        name = theirs.schedulers.most_common(1)[0][0]
        yield f"no profile is known to resemble the scheduler {name!r}, and {theirs.name} stands for it; see --recorded-profile"
    if followed.between > SHORT_SECONDS:
        yield f"the cluster was looked at every {short_time(followed.between)}: what lasted less may not have been seen"
    if work.header is not None and work.header.hidden:
        yield f"as if there were none, because the shadow may not list them: {listed(work.header.hidden, MOST_NAMED)}"
    if work.dropped:
        yield f"{counted(work.dropped, 'change')} could not be recorded"
