"""What each incident of a plan does to a storm, and what ends it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING

from phalanx.config.policies import policy_of_profile, policy_of_text
from phalanx.errors import ClusterError
from phalanx.live.election import LEASE
from phalanx.model.kinds import POD, kind_at
from phalanx.testing.storm.orders import BARE, COSCHEDULING, COSCHEDULING_KIND, NAMESPACE, VOLCANO, VOLCANO_GROUP, Order
from phalanx.testing.storm.plan import GROUPS, STORM_SECONDS, Incident
from phalanx.testing.storm.replica import LEASE_SECONDS, Replica
from phalanx.testing.storm.wire import LATEST_SECONDS, Fault, Window
from phalanx.testing.storm.workloads import Workload

if TYPE_CHECKING:
    from phalanx.testing.storm.storm import Storm

QUEUE = kind_at("scheduling.volcano.sh", "queues")
HALF, FOR_GOOD = 0.5, 1.0
GROUPED = (VOLCANO, COSCHEDULING)
GROUP_KINDS = (VOLCANO_GROUP, COSCHEDULING_KIND, QUEUE)
"""Kinds whose definitions come with or without a status subresource."""
RENAMED = "-renamed"
OTHER_CONFIGURATION = b"""
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: bindbackoff}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
"""Gangs are admitted, and nobody is evicted, not even by those who heal and relieve."""
UNSEEN = Order(name="", dialect=VOLCANO, size=2, gpus=2, priority="high", queue="default", seconds=20.0, at=0.0)
"""What is submitted while an heir sees no pods: it fits on one node, and comes before most others."""
OF_DECISIONS = (Fault.EVICTION, Fault.LOST, Fault.TWICE, Fault.REPEATED)
"""Faults that do harm where something is bound or evicted meanwhile."""
HEIR_SECONDS = 5.0
"""After so long a leader whose followers hear nothing dies."""
REFUSED_INDEX = "0"
REFUSING_SECONDS = 60.0
"""So long after the storm a node may still refuse."""
GROUP_SECONDS = 40.0
"""For so long nobody knows for sure to which queue the pods of a group belong that was deleted by hand."""
ROUND_SECONDS = 0.1
"""So long it takes to send the binds of a gang."""
End = Callable[[], None] | None


def begin(storm: "Storm", incident: Incident) -> End:
    """Let an incident happen; return what ends it, if it lasts."""
    storm.judge.say(f"INCIDENT {incident}")
    if incident.name.upper() in Fault.__members__:
        return _weather(storm, incident)
    action = ACTIONS.get(incident.name)
    assert action is not None, f"no incident is called {incident.name}"
    with suppress(ClusterError):
        return action(storm, incident)
    return None


def _weather(storm: "Storm", incident: Incident) -> End:
    """Let requests of one replica go wrong, or of all."""
    fault, until = Fault[incident.name.upper()], asyncio.get_running_loop().time() + incident.seconds
    chosen = storm.replicas if incident.target % 2 else [_replica(storm, incident)]
    for replica in chosen:
        storm.weather(replica, Window(fault, incident.amount, until))
    if fault in OF_DECISIONS:
        storm.hurry_next()
    return None


def _replica(storm: "Storm", incident: Incident) -> Replica:
    """Return the leader for some targets, and one by its number for others."""
    leader = next((replica for replica in storm.replicas if replica.is_leader), None)
    return leader if leader is not None and incident.target % 3 else storm.replicas[incident.target % len(storm.replicas)]


def _kill(storm: "Storm", incident: Incident) -> End:
    replica = _replica(storm, incident)
    replica.kill()
    return replica.start


def _stop(storm: "Storm", incident: Incident) -> End:
    replica = _replica(storm, incident)
    replica.stop()
    return replica.start


def _freeze(storm: "Storm", incident: Incident) -> End:
    """Stop a process beyond its lease; what was on the wire lands, and nothing may follow."""
    replica = _replica(storm, incident)
    replica.freeze()
    storm.excuse(incident.seconds + 1.0)
    return replica.thaw


def _strand(storm: "Storm", incident: Incident) -> End:
    """Leave the next binds of a process on the wire until another one leads; it stands still meanwhile."""
    replica, loop = _replica(storm, incident), asyncio.get_running_loop()
    wire, seconds = replica.wire, LEASE_SECONDS + incident.seconds / 3

    def strand(verb: str, about: str) -> None:
        if verb != "bind" or wire is None or storm.judge.is_calm:
            return
        storm.judge.say(f"{replica.name}: {verb} {about} and what follows stays on the wire for {seconds:.1f} s")
        wire.on_write, wire.stranded_until = (lambda verb, about: None), loop.time() + seconds
        storm.excuse(seconds + LATEST_SECONDS + 1.0)  # the next leader may have binds on the wire, too, when these land
        loop.call_later(ROUND_SECONDS, replica.freeze, context=Context())
        loop.call_later(seconds, replica.thaw, context=Context())

    if wire is not None:
        wire.on_write = strand
    return None


def _cut_off(storm: "Storm", incident: Incident) -> End:
    """Let nothing that a process sends get through, while there is something to send."""
    replica, until = _replica(storm, incident), asyncio.get_running_loop().time() + incident.seconds
    for fault in (Fault.REFUSED, Fault.LEASE):
        storm.weather(replica, Window(fault, 1.0, until))
    storm.hurry_next()
    return None


def _deaf_heir(storm: "Storm", incident: Incident) -> End:
    """Let those who do not lead hear nothing, and then kill the leader, after it has bound something."""
    loop, leader = asyncio.get_running_loop(), next((replica for replica in storm.replicas if replica.is_leader), None)
    for replica in storm.replicas:
        if replica is not leader:
            storm.weather(replica, Window(Fault.SILENT, 1.0, loop.time() + HEIR_SECONDS + 2 * LEASE_SECONDS + incident.seconds))
    storm.hurry_next()
    if leader is not None and len(storm.replicas) > 1:
        loop.call_later(HEIR_SECONDS, leader.kill)
    return leader.start if leader is not None else None


def _blind_heir(storm: "Storm", incident: Incident) -> End:
    """Let a node come back and somebody submit something while those who do not lead see no pods; then kill the leader."""
    loop, leader = asyncio.get_running_loop(), next((replica for replica in storm.replicas if replica.is_leader), None)
    if leader is None or len(storm.replicas) == 1:
        return None
    name = _node(storm, incident)
    storm.nodes.drain(name)

    def blind() -> None:
        until = loop.time() + HEIR_SECONDS + 2 * LEASE_SECONDS + incident.seconds
        for replica in storm.replicas:
            if replica is not leader:
                storm.weather(replica, Window(Fault.SILENT, 1.0, until, frozenset({POD})))
        storm.submit(replace(UNSEEN, name=f"unseen-{len(storm.workloads)}", at=storm.judge.clock()))
        loop.call_later(HEIR_SECONDS / 2, storm.nodes.come_back, name)
        loop.call_later(2 * HEIR_SECONDS, leader.kill)

    loop.call_later(HEIR_SECONDS, blind)
    return leader.start


def _look_away(storm: "Storm", incident: Incident) -> End:
    """At its next eviction let a process see no pods for a while; it has to list them then."""
    replica, loop = _replica(storm, incident), asyncio.get_running_loop()
    wire, seconds = replica.wire, HEIR_SECONDS + incident.seconds / 3

    def look_away(verb: str, about: str) -> None:
        if verb != "evict" or wire is None or storm.judge.is_calm:
            return
        storm.judge.say(f"{replica.name} sees no pods for {seconds:.1f} s")
        wire.on_write = lambda verb, about: None
        until = loop.time() + seconds
        wire.windows += [
            Window(Fault.SILENT, 1.0, until, frozenset({POD})),
            Window(Fault.EXPIRED, 1.0, until + 1.0, frozenset({POD})),
        ]

    if wire is not None:
        wire.on_write = look_away
        storm.hurry_next()
    return None


def _clock(storm: "Storm", incident: Incident) -> End:
    replica = _replica(storm, incident)
    replica.clock_offset = (incident.amount - 0.5) * 1200.0

    def right() -> None:
        replica.clock_offset = 0.0

    return right


def _crash_at_write(storm: "Storm", incident: Incident) -> End:
    """Kill a process between two of its next writes."""
    replica, left = _replica(storm, incident), [max(int(incident.amount * 10), 1)]

    def count(verb: str, about: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            storm.judge.say(f"{replica.name} crashes at {verb} {about}")
            replica.kill()

    wire = replica.wire
    if wire is not None:
        wire.on_write = count

    def end() -> None:
        left[0] = 0
        replica.start()

    return end


def _node(storm: "Storm", incident: Incident) -> str:
    return f"n{incident.target % storm.plan.nodes}"


def _die(storm: "Storm", incident: Incident) -> End:
    name = _node(storm, incident)
    storm.nodes.die(name)
    return lambda: storm.nodes.come_back(name)


def _drain(storm: "Storm", incident: Incident) -> End:
    name = _node(storm, incident)
    storm.nodes.drain(name)
    return lambda: storm.nodes.come_back(name)


def _cordon(storm: "Storm", incident: Incident) -> End:
    name = _node(storm, incident)
    storm.nodes.cordon(name)
    return _end_of(storm, incident, name)


def _taint(storm: "Storm", incident: Incident) -> End:
    name = _node(storm, incident)
    storm.nodes.taint(name)
    return _end_of(storm, incident, name)


def _end_of(storm: "Storm", incident: Incident, name: str) -> End:
    """Let a node come back; some stay as they are for good."""
    return None if incident.amount == FOR_GOOD else lambda: storm.nodes.come_back(name)


def _delete_node(storm: "Storm", incident: Incident) -> End:
    name = _node(storm, incident)
    storm.nodes.delete(name)
    return _end_of(storm, incident, name)


def _rename_node(storm: "Storm", incident: Incident) -> End:
    """Let a machine leave and come back under another name; some under both in the end."""
    name = _node(storm, incident)
    storm.nodes.delete(name)
    storm.nodes.add(f"{name}{RENAMED}")
    return _end_of(storm, incident, name)


def _refuse_binds(storm: "Storm", incident: Incident) -> End:
    """Let a node refuse every pod; or let one pod of a gang be refused everywhere, while the others land."""
    refusing = storm.nodes.refusing
    what = _node(storm, incident)
    if incident.amount > HALF:
        gangs = [item for item in storm.workloads if item.order.dialect in GROUPED and item.size > 1]
        workload = gangs[incident.target % len(gangs)] if gangs else _workload(storm, incident)
        workload.restarts_whole |= bool(incident.target % 3)
        what = f"{workload.order.name} {REFUSED_INDEX}"
        workload.begins_at = min(workload.begins_at, storm.judge.clock())
    refusing.add(what)
    if incident.amount == FOR_GOOD:  # and in calm weather, too
        until = max(STORM_SECONDS + REFUSING_SECONDS - storm.judge.clock(), 0.0)
        asyncio.get_running_loop().call_later(until, refusing.discard, what)
        return None
    return lambda: refusing.discard(what)


def _workload(storm: "Storm", incident: Incident) -> Workload:
    return storm.workloads[incident.target % len(storm.workloads)]


def _scale(storm: "Storm", incident: Incident) -> End:
    """Let an owner want one less or two more; or more than there is room for, of a gang that runs."""
    workload, grows = _workload(storm, incident), incident.amount > HALF
    more = 2 if grows else -1
    if incident.amount == FOR_GOOD:
        running = [item for item in storm.workloads if item.order.dialect in GROUPED and len(list(item.members())) >= item.size]
        workload, more = (running[incident.target % len(running)], 2 * storm.plan.nodes) if running else (workload, more)
    if workload.order.dialect != BARE:
        workload.scale(max(1, workload.size + more))
    return None


def _suspend(storm: "Storm", incident: Incident) -> End:
    workload = _workload(storm, incident)
    workload.is_suspended = True

    def resume() -> None:
        workload.is_suspended = False

    return resume


def _fail(storm: "Storm", incident: Incident) -> End:
    workload = _workload(storm, incident)
    workload.fail(incident.target % workload.size)
    return None


def _delete_pods(storm: "Storm", incident: Incident) -> End:
    _workload(storm, incident).forget_pods()
    return None


def _delete_object(storm: "Storm", incident: Incident) -> End:
    storm.conduct.queues_excused_until = storm.judge.clock() + GROUP_SECONDS
    _workload(storm, incident).delete_object()
    return None


def _remove(storm: "Storm", incident: Incident) -> End:
    _workload(storm, incident).remove()
    return None


def _evict_by_hand(storm: "Storm", incident: Incident) -> End:
    for pod in list(_workload(storm, incident).members())[:1]:
        storm.server.store.evict(NAMESPACE, pod["metadata"]["name"])
    return None


def _priority(storm: "Storm", incident: Incident) -> End:
    workload = _workload(storm, incident)
    if workload.order.dialect == VOLCANO:
        patch = {"spec": {"priorityClassName": "high" if incident.amount > HALF else "low"}}
        storm.server.store.patch(VOLCANO_GROUP, NAMESPACE, workload.order.name, patch)
    return None


def _hide_group(storm: "Storm", incident: Incident) -> End:
    group = GROUPS[incident.target % len(GROUPS)]
    storm.server.hidden.add(group)
    return lambda: storm.server.hidden.discard(group)


def _take_lease(storm: "Storm", incident: Incident) -> End:
    """Delete the lease by hand: for a moment two may believe that they lead."""
    storm.excuse(LEASE_SECONDS)
    storm.conduct.lease_excused_until = storm.judge.clock() + LEASE_SECONDS
    storm.server.store.delete(LEASE, NAMESPACE, "phalanx")
    return None


def _edit_queue(storm: "Storm", incident: Incident) -> End:
    storm.server.store.patch(QUEUE, "", "wide", {"spec": {"weight": 1 + incident.target % 5}})
    return None


def _lose_status(storm: "Storm", incident: Incident) -> End:
    """Let a definition be exchanged for one without a status subresource, such as Volcano's own; some stay so."""
    kind, without = GROUP_KINDS[incident.target % len(GROUP_KINDS)], storm.server.store.without_status
    without.add(kind)
    return None if incident.amount == FOR_GOOD else lambda: without.discard(kind)


def _reload(storm: "Storm", incident: Incident) -> End:
    """Let the configuration be read again; for a while it may be another one."""
    if incident.amount <= HALF:
        storm.configure(policy_of_profile(storm.plan.profile))
        return None
    storm.configure(policy_of_text(OTHER_CONFIGURATION, "storm.yaml"))
    return lambda: storm.configure(policy_of_profile(storm.plan.profile))


def _compact(storm: "Storm", incident: Incident) -> End:
    storm.server.store.history.compact(storm.server.store.history.version)
    return None


def _restore(storm: "Storm", incident: Incident) -> End:
    storm.excuse(LEASE_SECONDS)
    storm.conduct.lease_excused_until = storm.judge.clock() + LEASE_SECONDS
    storm.set_back()
    return None


ACTIONS: dict[str, Callable[["Storm", Incident], End]] = {
    "kill": _kill, "freeze": _freeze, "stop": _stop, "clock": _clock, "crash at write": _crash_at_write,
    "strand": _strand, "cut off": _cut_off, "deaf heir": _deaf_heir, "blind heir": _blind_heir,
    "look away": _look_away,
    "die": _die, "drain": _drain, "cordon": _cordon, "taint": _taint, "delete node": _delete_node, "refuse binds": _refuse_binds,
    "rename node": _rename_node, "lose status": _lose_status,
    "scale": _scale, "suspend": _suspend, "fail": _fail, "delete pods": _delete_pods, "delete object": _delete_object,
    "remove": _remove, "evict by hand": _evict_by_hand, "priority": _priority, "hide group": _hide_group,
    "take lease": _take_lease, "edit queue": _edit_queue, "reload": _reload, "compact": _compact, "restore": _restore,
}  # fmt: skip
