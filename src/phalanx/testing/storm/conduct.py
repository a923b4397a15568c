"""Judges what replicas do: every session they hold and every request they send, by what the server knows at that moment.

The end of a storm shows what was left behind. Some faults leave nothing behind and do harm all the same: a leader that writes
after its lease, a gang that is killed though it was whole and starts again, a request that is sent again at once. They are seen
here, when they happen.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from phalanx.controllers.binder.pending import MOST_ATTEMPTS
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.dialects.group_references import YUNIKORN_APP
from phalanx.errors import ClusterError, Forbidden
from phalanx.live.app import Live
from phalanx.live.election import LEASE
from phalanx.model.kinds import BIND_REQUEST, NODE, POD, Document, split_key
from phalanx.model.task import Task
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.session.decision import Decisions, Eviction
from phalanx.testing.storm.invariants import Amounts, QueueUse, has_place
from phalanx.testing.storm.judge import Judge
from phalanx.testing.storm.orders import JOB, NAMESPACE, VOLCANO, VOLCANO_JOB
from phalanx.testing.storm.replica import LEASE_SECONDS, Replica
from phalanx.testing.storm.wire import STORM, Wire, Witness
from phalanx.testing.storm.workloads import Workload

LAG_SECONDS = 5.0
"""So long after a change of a node a bind may still land that was decided before it."""
AFTER_TROUBLE_SECONDS = 14.0
"""So long after a fault something of it may still be on the way: what failed is sent again after 12.5 s at the latest."""
ROLL_BACK_SECONDS = 15.0
"""After a bind was refused, the rest of its gang is gone by then, or the gang is whole."""
PATIENCE_SECONDS = 55.0
"""A server that fails for a shorter time has refused nothing."""
ROUND_SECONDS, MOST_ROUNDS, ROUNDS_SECONDS = 0.5, 8, 60.0
"""How often a gang may be refused in a minute: waits of 1, 2, 4, 8, 16 and 32 s allow seven times."""
MOST_FORBIDDEN, FORBIDDEN_SECONDS = 14, 10.0
"""How often an object may be written in vain: each change of it is a reason to try, and status and annotations are two writes."""
HASTE = 0.7
"""Who waits for a smaller part of what the server asked for has not waited."""
SCALED_SECONDS = 40.0
"""So long after its owner changed a gang somebody may still go by what it was before."""
ALREADY = ("is being deleted", "not found", "is already assigned", "precondition")
"""Refusals of binds that are about the pod, and not about its place."""


@dataclass(slots=True)
class _Gang:
    """What the server knows of a gang."""

    held: dict[str, float] = field(default_factory=dict)
    """Pods that hold a place and do not leave, by uid, and since when."""
    whole_at: float = -1.0
    """When it last got the last of the members that it needs."""
    lost_at: float = -1.0
    """When it last lost one."""


class Conduct(Witness):
    """Looks at replicas."""

    def __init__(
        self, judge: Judge, workloads: Callable[[], Mapping[str, Workload]], limits: Mapping[str, Amounts],
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:  # fmt: skip
        """`workloads` returns who submits gangs, by name; `limits` are what queues may use."""
        self._judge, self._store, self._clock, self._workloads = judge, judge.store, judge.clock, workloads
        self._lease_seconds = lease_seconds
        self.lease_excused_until = self.queues_excused_until = 0.0
        """Until then somebody has meddled with the lease, or with groups."""
        self._gangs: dict[str, _Gang] = defaultdict(_Gang)
        self._use = QueueUse(limits)
        self._unfit: dict[str, float] = {}
        """Nodes that take no pods, and since when."""
        self._renewed = 0.0
        self._decided: set[tuple[str, str]] = set()
        self._doomed: set[str] = set()
        self._rounds: list[tuple[float, str, str]] = []
        self._refusals: dict[str, list[float]] = defaultdict(list)
        """When gangs were refused, by the uid of their group; pods that start alone, each by its own."""
        self._refused_last: dict[str, str] = {}
        """Whose binds of them were refused last, by the same uid."""
        self._terms: Counter[str] = Counter()
        """How often each process began to lead."""
        self._term_of: dict[tuple[str, str], int] = {}
        """In which term a process last decided something of a pod."""
        self._failing: dict[str, float] = {}
        """Pods whose binds fail without being refused, and since when."""
        self._not_before: dict[tuple[str, str, str], float] = {}
        self._forbidden: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    # --- sessions --------------------------------------------------------------------------------------------------------

    def watch(self, replica: Replica) -> None:
        """Look at a process from its beginning on."""
        live, wire = replica.live, replica.wire
        assert live is not None
        assert wire is not None
        assert replica.process is not None
        wire.witness, wire.identity = self, replica.process.name
        who = replica.process.name
        live.loop.decided.append(lambda snapshot, decisions: self._decide(who, live, decisions))
        live.loop.binding.rolled_back.append(lambda task, text: self._rolled_back(who, task, text))

    def begins_term(self, who: str) -> None:
        """A process begins to lead: what it decided before is void, and with it what the server asked of that."""
        self._terms[who] += 1
        self._not_before = {key: moment for key, moment in self._not_before.items() if key[0] != who}

    def _decide(self, who: str, live: Live, decisions: Decisions) -> None:
        state = live.cache.cluster.state
        for key in (*decisions.binds, *decisions.evictions):
            self._term_of[who, f"pods {split_key(key)[1]}"] = self._terms[who]
        placed = [task for key in (*decisions.binds, *decisions.pipelined) if (task := state.task(key)) is not None]
        self._decided.update((task.uid, decisions.binds[task.key]) for task in placed if task.key in decisions.binds)
        served = {name for task in placed for name in (task.gang, task.key)}
        for eviction in decisions.evictions.values():
            self._doomed.add(eviction.task.uid)
            if eviction.preemptor and eviction.preemptor not in served:
                self._judge.accuse("evicted in vain", f"pod {eviction.task.key} for {eviction.preemptor}, which gets no place")
            self._judge_healing(eviction)

    def _judge_healing(self, eviction: Eviction) -> None:
        """A gang that has lost nobody since it was whole works, whatever its owner wants of it by now."""
        app = self._app(eviction.task)
        gang = self._gangs[app]
        was_part = gang.held.get(eviction.task.uid, float("inf")) <= gang.whole_at
        if eviction.action == "heal" and "what is left of gang" in eviction.message and gang.whole_at > gang.lost_at and was_part:
            self._judge.accuse("killed a healthy gang", f"gang {app} has lost nobody: {eviction.message}")

    def _rolled_back(self, who: str, task: Task, text: str) -> None:
        self._doomed.add(task.uid)
        self._term_of[who, f"pods {task.name}"] = self._terms[who]
        app = self._app(task)
        workload = self._workloads().get(app)
        if workload is None:
            return
        is_settled = self._clock() - workload.changed_at > SCALED_SECONDS
        if is_settled and len(self._gangs[app].held) >= _still_needed(workload):
            self._judge.accuse("killed a healthy gang", f"gang {app} is whole, and {text}")
        culprit = text.partition(": pod ")[2].partition(" of its gang")[0]
        if STORM in text and self._clock() - self._failing.get(culprit, 0.0) < PATIENCE_SECONDS:
            self._judge.accuse("killed a healthy gang", f"gang {app} was not refused, and {text}")

    def _app(self, task: Task) -> str:
        return self._app_of(task.name)

    def _app_of(self, name: str) -> str:
        pod = self._store.find(POD, NAMESPACE, name)
        return "" if pod is None else _app_of_pod(pod)

    # --- requests --------------------------------------------------------------------------------------------------------

    def sends(self, wire: Wire, verb: str, about: str) -> None:
        """A write goes out: its sender must lead, and wait for as long as the server asked it to."""
        who, now = wire.identity, self._clock()
        lease = self._store.find(LEASE, NAMESPACE, "phalanx")
        holder = "" if lease is None else str((lease.get("spec") or {}).get("holderIdentity") or "")
        if now > self.lease_excused_until and holder != who:
            self._judge.say(f"{who} sends {verb} {about}")
            self._judge.accuse("wrote without the lease", f"{who} writes, and {holder or 'nobody'} holds the lease")
        elif now > self.lease_excused_until and now - self._renewed > self._lease_seconds:
            self._judge.accuse("wrote without the lease", f"{who} writes after its lease has run out")
        is_past = self._term_of.get((who, about), self._terms[who]) < self._terms[who]
        if verb in ("bind", "evict") and is_past and not self._is_requested(about.removeprefix("pods ")):
            self._judge.accuse("wrote for a past term", f"{who} sends {verb} {about}, which it decided before it led again")
        if now < self._not_before.pop((who, verb, about), 0.0):
            self._judge.accuse("in haste", f"{verb} {about} is sent again sooner than the server asked for")

    def _is_requested(self, name: str) -> bool:
        """Tell whether a bind request stands for a decision: whoever leads carries it out, or rolls it back."""
        return self._store.find(BIND_REQUEST, NAMESPACE, name) is not None

    def failed(self, wire: Wire, verb: str, about: str, problem: ClusterError) -> None:
        """Something went wrong on the wire."""
        if verb == "bind":
            self._failing.setdefault(about.removeprefix("pods "), self._clock())
        if problem.retry_after and verb in ("bind", "evict"):  # patches of an object come from several who do not know each other
            self._not_before[wire.identity, verb, about] = self._clock() + HASTE * problem.retry_after

    def refused(self, wire: Wire, verb: str, about: str, problem: ClusterError) -> None:
        """The server said no."""
        now = self._clock()
        if isinstance(problem, Forbidden):
            times = self._forbidden[wire.identity, verb, about]
            times[:] = [*(moment for moment in times if now - moment < FORBIDDEN_SECONDS), now]
            if len(times) > MOST_FORBIDDEN:
                self._judge.accuse("no back-off", f"{verb} {about} is sent again and again, though it is forbidden")
        if verb == "bind" and not any(word in str(problem).lower() for word in ALREADY):
            self._refuse_bind(wire.identity, about.removeprefix("pods "), now)

    def _refuse_bind(self, who: str, name: str, now: float) -> None:
        app = self._app_of(name)
        workload = self._workloads().get(app)
        if workload is None:
            return
        # Who was deleted and made anew by its owner begins anew: a gang with its group, a pod that starts alone with itself.
        is_gang = workload.kind is not None and _minimum(workload) > 1
        found = workload.group() if is_gang else self._store.find(POD, NAMESPACE, name)
        uid = "" if found is None else found["metadata"]["uid"]
        rounds = self._refusals[uid]
        if self._refused_last.get(uid) != who and not _remembers(found):  # no write of an earlier leader came through
            rounds.clear()
        self._refused_last[uid] = who
        since = self._gangs[app].whole_at if is_gang else 0.0  # once bound, a gang forgets what failed before
        if not rounds or now - rounds[-1] > ROUND_SECONDS:
            rounds[:] = [*(moment for moment in rounds if now - moment < ROUNDS_SECONDS and moment > since), now]
            self._rounds.append((now, who, app))
        if len(rounds) > MOST_ROUNDS * (MOST_ATTEMPTS if self._is_requested(name) else 1):
            self._judge.accuse("no back-off", f"{app} was refused more than {MOST_ROUNDS} times in {ROUNDS_SECONDS:g} s")

    def evicted(self, pod: Document) -> None:
        """A pod is asked to go: somebody must have decided that of this one, and not of one of the same name."""
        if pod["metadata"]["uid"] not in self._doomed and not self._is_requested(pod["metadata"]["name"]):
            self._judge.accuse("never decided", f"pod {pod['metadata']['name']} is evicted, and no session wanted that")

    # --- the store -------------------------------------------------------------------------------------------------------

    def hear(self, event: WatchEvent) -> None:
        """Look at a change."""
        if event.kind is POD:
            self._hear_pod(event)
        elif event.kind is LEASE:
            self._renewed = self._clock()
        elif event.kind is NODE:
            name = event.object["metadata"]["name"]
            if event.type == DELETED or _is_unfit(event.object):
                self._unfit.setdefault(name, self._clock())
            else:
                self._unfit.pop(name, None)

    def _hear_pod(self, event: WatchEvent) -> None:
        pod, uid, now = event.object, event.object["metadata"]["uid"], self._clock()
        if event.type == DELETED:  # what is asked for another pod of that name is another request
            about = f"pods {pod['metadata']['name']}"
            self._not_before = {key: moment for key, moment in self._not_before.items() if key[2] != about}
        app = _app_of_pod(pod)
        gang, workload = self._gangs[app], self._workloads().get(app)
        if workload is None:
            return
        is_there = event.type != DELETED
        self._use.note(_queue(workload), pod, is_there=is_there)
        if not (is_there and has_place(pod)):
            if gang.held.pop(uid, None) is not None and (pod.get("status") or {}).get("phase") != "Succeeded":
                gang.lost_at = now
        elif uid not in gang.held:
            gang.held[uid] = now
            if len(gang.held) >= _still_needed(workload):
                gang.whole_at = now
            if not ((event.before or {}).get("spec") or {}).get("nodeName"):
                self._hear_bind(pod, _queue(workload))

    def _hear_bind(self, pod: Document, queue: str) -> None:
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        self._failing.pop(name, None)
        now = self._clock()
        if (pod["metadata"]["uid"], node) not in self._decided:
            self._judge.accuse("never decided", f"pod {name} is bound to {node}, and no session decided that")
        # Where volumes are made first, the bind comes long after the decision, as with every scheduler.
        is_quiet = now - self._judge.troubled_at > AFTER_TROUBLE_SECONDS and not self._is_requested(name)
        if is_quiet and now - self._unfit.get(node, now) > LAG_SECONDS:
            self._judge.accuse("unfit node", f"pod {name} is bound to {node}, which takes no pods")
        if now > max(self._judge.excused_until, self.queues_excused_until) and (found := self._use.beyond(queue)) is not None:
            self._judge.accuse(found.invariant, found.text)

    def was_placed(self, app: str, since: float) -> bool:
        """Tell whether a gang has got all of its members since a moment."""
        return self._gangs[app].whole_at >= since

    def look_anew(self) -> None:
        """Take the store as it is: it was set back."""
        closed = {item["metadata"]["name"] for item in self._store.items(NODE) if _is_unfit(item)}
        self._unfit = {name: self._unfit.get(name, self._clock()) for name in closed}
        self._gangs.clear()
        self._use.pods.clear()
        self._refusals.clear()  # the groups that remembered them do so no more
        self._not_before.clear()  # the server that asked for patience is another one now
        for pod in self._store.items(POD):
            if pod["spec"].get("nodeName"):
                self._decided.add((pod["metadata"]["uid"], pod["spec"]["nodeName"]))
                self._hear_pod(WatchEvent(0, "ADDED", POD, pod, pod))

    def forget(self) -> None:
        """Begin anew with an empty cluster; whoever judges for a month must not grow."""
        for memory in (
            self._gangs,
            self._use.pods,
            self._decided,
            self._doomed,
            self._refusals,
            self._refused_last,
            self._term_of,
            self._failing,
        ):
            memory.clear()
        self._not_before.clear()
        self._forbidden.clear()
        self._rounds.clear()

    def tick(self, replicas: list[Replica]) -> None:
        """Look at who leads, and at what has lasted too long."""
        now = self._clock()
        if any(_is_in_trouble(replica) for replica in replicas):
            self._judge.troubled_at = now
        leaders = [replica.name for replica in replicas if replica.is_leader]
        if len(leaders) > 1 and now > self.lease_excused_until:
            self._judge.accuse("two lead", f"{' and '.join(leaders)} lead at the same time")
        leading = {replica.process.name for replica in replicas if replica.is_leader and replica.process is not None}
        self._not_before = {key: moment for key, moment in self._not_before.items() if key[0] in leading}
        due = [item for item in self._rounds if now - item[0] >= ROLL_BACK_SECONDS]
        self._rounds = [item for item in self._rounds if now - item[0] < ROLL_BACK_SECONDS]
        for moment, who, app in due:
            if who in leading and self._judge.troubled_at < moment - AFTER_TROUBLE_SECONDS:
                self._judge_round(moment, app)

    def _judge_round(self, moment: float, app: str) -> None:
        """Look whether what landed of a gang is still there, although another bind of it was refused."""
        gang, workload = self._gangs[app], self._workloads().get(app)
        if workload is None or not len(gang.held) < _still_needed(workload):
            return
        # What landed before is left to `heal`, and so is what is left of a gang that was whole: a drain took the others.
        first = max(moment - ROLL_BACK_SECONDS, self._judge.troubled_at + LAG_SECONDS, gang.whole_at)
        left = [uid for uid, since in gang.held.items() if first < since <= moment + LAG_SECONDS]
        if left and workload.changed_at < moment - SCALED_SECONDS:
            text = f"{len(left)} of {_still_needed(workload)} members are there {ROLL_BACK_SECONDS:g} s after a bind was refused"
            self._judge.accuse("half-started", f"gang {app}: {text}")


def _app_of_pod(pod: Document) -> str:
    """Return the gang of a pod; a placeholder, which we make ourselves, has the label of its application alone."""
    labels = pod["metadata"].get("labels") or {}
    return str(labels.get("app") or labels.get(YUNIKORN_APP) or "")


def _minimum(workload: Workload) -> int:
    """Return how many members start together; the pods of a Job start alone."""
    return 1 if workload.order.dialect == JOB else workload.minimum


def _still_needed(workload: Workload) -> int:
    """Return how many members a gang needs besides those that are done."""
    return max(_minimum(workload) - workload.done(), 1)


def _queue(workload: Workload) -> str:
    return workload.order.queue if workload.order.dialect in (VOLCANO, VOLCANO_JOB) else ""


def _is_unfit(node: Document) -> bool:
    taints = node["spec"].get("taints") or ()
    conditions = (node.get("status") or {}).get("conditions") or ()
    is_ready = all(item["status"] == "True" for item in conditions if item["type"] == "Ready")
    return bool(node["spec"].get("unschedulable")) or any(item["effect"] != "PreferNoSchedule" for item in taints) or not is_ready


def _is_in_trouble(replica: Replica) -> bool:
    is_frozen = replica.process is not None and replica.process.is_frozen
    return not replica.is_running or is_frozen or bool(replica.wire is not None and replica.wire.windows)


def _remembers(document: Document | None) -> bool:
    """Tell whether an object says that binds failed."""
    return document is not None and FAILED_BINDS in (document["metadata"].get("annotations") or {})
