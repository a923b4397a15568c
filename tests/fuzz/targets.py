"""What is fuzzed: each target takes bytes and may raise our own errors only, in time, and with a message that says where."""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request

from phalanx.cli.convert import in_dialect
from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile, policy_of_text
from phalanx.dialects.convert import DIALECTS
from phalanx.errors import ClusterError, PhalanxError
from phalanx.kubernetes.cel import compile_selector
from phalanx.model.cron import Cron
from phalanx.model.duration import grace_of, seconds_in, seconds_of
from phalanx.model.moment import moment_of
from phalanx.model.patterns import compile_pattern
from phalanx.model.quantity import to_milli, to_units
from phalanx.model.storage import Device
from phalanx.session.cycle import run_isolated
from phalanx.sim.gang_history import read_history
from phalanx.sim.scenario import find_scenarios
from phalanx.sim.settings import span_in
from phalanx.sim.statefile import read_state
from phalanx.sim.traces import FORMATS, detect_format, read_trace
from phalanx.store.input_files import notes_on, read_usage, take_in
from phalanx.store.memory import MemoryStore
from phalanx.store.selection import selection
from phalanx.testing import build
from phalanx.web.api import Api
from phalanx.whatif.changes import parse_all
from phalanx.whatif.trial_cluster import TrialCluster
from tests.support.trial_clusters import running_gang, trial_cluster

MOST_SECONDS = 5
"""No input may take longer."""
HEAD = b"apiVersion: phalanx.dev/v1alpha1\nkind: Scenario\n"
GPU = Device("gpu-0", attributes=(("model", "a100"), ("x/n", 3), ("ok", True)), capacity=(("memory", 40 << 30),))
SERVER_FAILED = 500


class Violation(AssertionError):
    """A target did something that it may not do."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that reads bytes."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    """Inputs from which others are made."""
    names_file: bool = False
    """An error begins with the name of the file."""

    def check(self, data: bytes) -> None:
        """Run it once; only errors of our own may come out."""
        try:
            self.run(data)
        except PhalanxError as problem:
            if not str(problem) or (self.names_file and "input" not in str(problem)):
                raise Violation(f"a message that does not say where: {problem}") from problem


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="phalanx-fuzz-"))


def _file(data: bytes, suffix: str = ".yaml") -> Path:
    path = _folder() / f"input{suffix}"
    path.write_bytes(data)
    return path


# --- values --------------------------------------------------------------------------------------------------------------


def _quantities(data: bytes) -> None:
    to_units(_text(data))
    to_milli(_text(data))


def _times(data: bytes) -> None:
    text = _text(data)
    for read in (seconds_of, grace_of, seconds_in, span_in, moment_of):
        read(text)
    Cron(text).next(1_767_225_600.0)


def _selectors(data: bytes) -> None:
    with suppress(ClusterError):  # fields are read whatever the labels are
        selection("", _text(data), "").wants({"metadata": {"labels": {"app": "train", "tier": "3"}}})
    selection("", "", _text(data)).wants({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}})


def _patterns(data: bytes) -> None:
    pattern = compile_pattern(_text(data))
    for text in ("node-1", "a" * 63, ""):
        pattern.is_in(text)


def _cel(data: bytes) -> None:
    compile_selector(_text(data)).matches("gpu.example.com", GPU)


# --- files ---------------------------------------------------------------------------------------------------------------


def _manifests(data: bytes) -> None:
    """Read manifests, hold a session, and convert them."""
    path = str(_file(data))
    intake = take_in([path], goes_on=True)
    snapshot = intake.cluster.snapshot(1_767_225_600.0)
    list(intake.warnings())
    list(notes_on(intake, snapshot))
    run_isolated(snapshot, policy_of_profile("phalanx"), CATALOGUE)
    for dialect in DIALECTS:
        in_dialect([path], dialect)


def _configurations(data: bytes) -> None:
    policy_of_text(data, "input.yaml")


def _scenarios(data: bytes) -> None:
    find_scenarios(HEAD + data, "input.yaml")


def _traces(data: bytes) -> None:
    path = _file(data, ".csv")
    detect_format([path])
    for name in FORMATS:
        try:
            read_trace(name, [path])
        except PhalanxError as problem:
            if "input" not in str(problem):
                raise Violation(f"a message that does not say where: {problem}") from problem


def _usage(data: bytes) -> None:
    read_usage([str(_file(data))])


def _histories(data: bytes) -> None:
    read_history(data, "input.json")


def _states(data: bytes) -> None:
    state = read_state(_file(data, ".json"))
    assert state is not None
    MemoryStore(lambda: state.now).restore(state.objects, version=state.version, numbers=state.numbers)


# --- questions -----------------------------------------------------------------------------------------------------------


@cache
def _trial() -> TrialCluster:
    running = running_gang("old", "n0", gpus=1)
    queue = build.queue("wide", capability={"nvidia.com/gpu": 4})
    return trial_cluster(build.node("n0", gpus=4), queue, running, build.gang("train", tasks=2, gpus=2, queue="wide"))


def _changes(data: bytes) -> None:
    """Ask what would be with changes, one in each line, as `--if` and the page do."""
    with _trial().with_changes(parse_all(_text(data).split("\n"))) as cluster:
        cluster.decide()


# --- requests ------------------------------------------------------------------------------------------------------------


def _requests(data: bytes) -> None:
    """Answer a request: a line with method, path and type of the body, then the body."""
    line, _, body = data.partition(b"\n")
    method, path, form = (*_text(line).split(" "), "", "", "")[:3]
    if not method.isalpha() or not path.startswith("/") or not path.isascii():
        return
    asyncio.run(_answer(method.upper(), path, form if form.isascii() and form.isprintable() else "", body))


async def _answer(method: str, path: str, form: str, body: bytes) -> None:
    loop = asyncio.get_running_loop()
    protocol = mock.Mock(spec=BaseProtocol)
    payload = StreamReader(protocol, 2**16, loop=loop)
    payload.feed_data(body)
    payload.feed_eof()
    headers = {"Host": "localhost", "Content-Type": form or "application/json"}
    try:
        request = make_mocked_request(method, path, headers, payload=payload, client_max_size=3 << 20)
    except ValueError:
        return  # no path at all: aiohttp refuses it before we see it
    if "watch" in path:
        return
    answer = await Api(MemoryStore(lambda: 1_767_225_600.0)).answer(request)
    assert isinstance(answer, web.Response)
    if answer.status >= SERVER_FAILED:
        raise Violation(f"answered {answer.status}: {answer.text}")


POD = b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}'
PROTOBUF = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v"
OBJECTS = (Path(__file__).parents[1] / "data" / "objects" / "one-of-each-kind.yaml").read_bytes()
PARTS = OBJECTS.split(b"\n---")[1:]
TABLE = (
    b"job_id,user,gpu_num,cpu_num,node_num,submit_time,start_time,end_time,duration,state,queue,vc\n1,u,2,4,1,2020-01-01 00:00:00,"
)
PHILLY = (
    b'[{"jobid": "a", "vc": "b", "submitted_time": "2017-10-03 01:00:00", "attempts": [{"start_time": "2017-10-03 01:00:00", '
    b'"end_time": "2017-10-03 02:00:00", "detail": [{"ip": "m", "gpus": ["g"]}]}]}]'
)
STATE = (
    b'{"format": 1, "now": 0, "version": 3, "numbers": 2, "objects": [{"apiVersion": "v1", "kind": "Pod", "metadata": '
    b'{"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1"}}]}'
)
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
TARGETS = {
    "quantities": Target(_quantities, (b"1500m", b"4Gi", b"1e3", b"-.5E-3", b"+1.Ki", b"9" * 40)),
    "times": Target(_times, (b"1h30m", b"30m..2h", b"*/5 1-3 * * MON", b"2026-01-01T00:00:00Z", b"0 0 31 2 *", b"1.5d", b"-1ms")),
    "selectors": Target(_selectors, (b"app=train,tier!=test", b"a in (x, y),!b", b"spec.nodeName=n,kind!=a", b"a notin ()")),
    "patterns": Target(_patterns, (b"^rack-1[0-9]+$", b"^(a+)+$", b"[[:alpha:]]{1,1000}", b"(?i)x|y")),
    "cel": Target(
        _cel,
        (
            b'device.driver == "gpu.example.com" && device.attributes["x"].n in [1, 2, 3]',
            b'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0 || !has(device.attributes["x"].m)',
            b'cel.bind(a, [[1], [2]], a[0] == [1.0] ? "x".startsWith("x") : semver("1.2.3").isLessThan(semver("2.0.0-rc.1")))',
            b'"a".matches("^(a+)+$") && -1 < 0x1F && device.allowMultipleAllocations != true',
        ),
    ),
    "manifests": Target(_manifests, (*(b"\n---".join(PARTS[place : place + 3]) for place in range(0, len(PARTS), 3)), POD), True),
    "configurations": Target(
        _configurations,
        (
            b'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: binpack, arguments: {binpack.weight: 3}}]\n',
            b"profile: kai\nconfigurations:\n- name: allocate\n  arguments: {predicateErrorCacheEnable: true}\n",
            b"kind: ConfigMap\ndata: {volcano-scheduler.conf: 'profile: volcano'}\n",
        ),
        True,
    ),
    "scenarios": Target(
        _scenarios,
        (
            b"until: 2h\nseed: 3\narrivals: [{at: 1m, gangs: [a], every: 5m, times: 3}]\nfailures: [{at: 1m, bind: n0}]\n",
            b"nodes:\n- {at: 5m, node: a, event: drain}\ndurations:\n- {match: a*, duration: 30m..2h}\ndelays: {bind: 1s..2s}\n",
            b"expect:\n- {profiles: [kai], gangs: {a: {starts: true, why: x}}, deadlocks: 0}\nrestart: never\n",
        ),
        True,
    ),
    "traces": Target(_traces, (TABLE + b"2020-01-01 00:01:00,2020-01-01 01:00:00,3600,COMPLETED,q,vc\n", PHILLY)),
    "usage": Target(_usage, (b'{"status": "success", "data": {"resultType": "matrix", "result": []}}',), True),
    "histories": Target(_histories, (b'{"gang": "research/bert", "seconds": 5400}\n',), True),
    "states": Target(_states, (STATE,)),
    "changes": Target(
        _changes,
        (
            b"node/n0=drained\nnode/+2=n0\nnode/n0.taints.a=b:NoSchedule\nnode/n0.labels.a/b=c",
            b"queue/wide.capability.nvidia.com/gpu=+4\nqueue/new=new\nqueue/wide.weight=3\nqueue/wide.parent=new",
            b"gang/default/train.minMember=1\ngang/default/train.pods=+2\ngang/default/train.queue=default",
            b"gang/default/train.requests.nvidia.com/gpu=500m\ngang/default/train.tolerations=a=b:NoExecute",
            b"gang/default/old=gone\npod/default/train-0.nodeSelector.a=b\npod/default/train-1=gone",
        ),
    ),
    "requests": Target(
        _requests,
        (
            b"POST /api/v1/namespaces/default/pods\n" + POD,
            b"GET /api/v1/pods?labelSelector=a%3Db&fieldSelector=spec.nodeName%3Dx&limit=3&continue=x\n",
            b'PATCH /api/v1/namespaces/default application/json-patch+json\n[{"op": "add", "path": "/metadata/a", "value": {}}]',
            f"POST {JOBS}\n".encode() + b'{"spec": {"minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "template": {}}]}}',
            b'PUT /api/v1/namespaces/default/status\n{"metadata": {"name": "default"}, "status": {}}',
            b'DELETE /api/v1/namespaces/default?gracePeriodSeconds=0\n{"preconditions": {"uid": "x"}}',
            b'POST /api/v1/namespaces/default/pods/a/binding\n{"target": {"name": "n"}}',
            b'PATCH /api/v1/namespaces/default application/strategic-merge-patch+json\n{"metadata": {"$patch": "replace"}}',
            b"PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m&force=1 application/apply-patch+yaml\n"
            b'{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": ""}, '
            b'"metadata": {"managedFields": [{"manager": "m", "fieldsV1": {"k:{}": {}}}]}}',
            b"POST /api/v1/namespaces/default/configmaps application/vnd.kubernetes.protobuf\n" + PROTOBUF,
        ),
    ),
}  # fmt: skip
