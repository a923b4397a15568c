"""Traces: which files are read, what is refused, and the cluster of a trace without machines."""

from pathlib import Path

import pytest

from phalanx.errors import ConfigError, TraceError
from phalanx.sim.traces import FORMATS, detect_format, read_trace
from phalanx.sim.traces.draft import LONGEST_NAME, UniqueNames
from phalanx.sim.traces.tasks import spread
from phalanx.sim.traces.trace_cluster import made_cluster
from phalanx.sim.workload import WorkloadGang, WorkloadPart

DATA = Path(__file__).parents[1] / "data" / "traces"
JOBS = "job_id,num_gpu,submit_time,duration\n"
SPOT = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"


def jobs_file(folder: Path, *rows: str, columns: str = JOBS) -> Path:
    path = folder / "jobs.csv"
    path.write_text(columns + "".join(f"{row}\n" for row in rows))
    return path


def gang(submitted: float, duration: float, tasks: int = 1, **request: str) -> WorkloadGang:
    return WorkloadGang(f"at-{submitted}", submitted, duration, (WorkloadPart(tasks, request),))


def gpus(count: int) -> dict[str, str]:
    return {"nvidia.com/gpu": str(count)}


def test_an_unknown_format_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(
        ConfigError, match="trace format 'borg': unknown; write one of: acme, helios, openb, pai, philly, spot-gpu, tiresias"
    ):
        read_trace("borg", [DATA])


def test_files_that_are_no_trace_are_named(tmp_path: Path) -> None:
    path = jobs_file(tmp_path, columns="a,b\n")
    with pytest.raises(TraceError, match=r"^jobs.csv: no trace that we know; expected jobs in one of the formats: acme, "):
        detect_format([path])
    with pytest.raises(TraceError, match=r"^jobs.csv: no jobs in there; expected a CSV file with the columns job_id,vc,"):
        read_trace("helios", [path])
    with pytest.raises(TraceError, match=r"^jobs.csv: no jobs in there; expected a JSON list of jobs with jobid"):
        read_trace("philly", [path])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nowhere.csv: No such file or directory; name the files of a trace"):
        detect_format([tmp_path / "nowhere.csv"])


def test_a_folder_with_two_lists_of_jobs_asks_for_one() -> None:
    with pytest.raises(
        TraceError, match=r"trace_kalos.csv, trace_seren.csv are each a CSV file with the columns .*; name one of them"
    ):
        read_trace("acme", [DATA / "acme"])


def test_a_file_may_begin_with_a_byte_order_mark_and_quote_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes('\ufeff"job_id","num_gpu","submit_time","duration"\r\n"a","2","5","60"\r\n'.encode())
    assert detect_format([path]) == "tiresias"
    assert read_trace("tiresias", [path]).workload.gangs == (WorkloadGang("a", 0, 60, (WorkloadPart(1, gpus(2)),)),)


def test_a_short_row_is_refused_alone(tmp_path: Path) -> None:
    trace = read_trace("tiresias", [jobs_file(tmp_path, "a,1,5,60", "b", "c,1,7,60")])
    assert [found.name for found in trace.workload.gangs] == ["a", "c"]
    assert trace.notes == ("jobs.csv, line 3: num_gpu: is empty; expected a value",)


@pytest.mark.parametrize("number", ["1e12", "-1", "1.5", "inf", "nan?"])
def test_a_number_that_no_cluster_can_have_is_refused_alone(tmp_path: Path, number: str) -> None:
    trace = read_trace("tiresias", [jobs_file(tmp_path, f"a,{number},5,60", "b,1,7,60")])
    assert len(trace.workload.gangs) == 1
    assert trace.notes[0].startswith(f"jobs.csv, line 2: num_gpu: '{number}' is not a ")


@pytest.mark.parametrize("seconds", ["-5", "1e300"])
def test_an_impossible_duration_is_refused_alone(tmp_path: Path, seconds: str) -> None:
    trace = read_trace("tiresias", [jobs_file(tmp_path, f"a,1,5,{seconds}", "b,1,7,60")])
    assert trace.notes == (f"jobs.csv, line 2: duration: '{seconds}' is not a number of seconds from 0 to 10000000000",)


def test_more_tasks_than_any_cluster_holds_are_refused_alone(tmp_path: Path) -> None:
    path = jobs_file(tmp_path, "a,o,A10,1,1000000,1000000,5,60,HP", "b,o,A10,1,1,1,5,60,HP", columns=SPOT)
    trace = read_trace("spot-gpu", [path])
    assert trace.notes == ("jobs.csv, line 2: gpu_request: with 1000000 workers that makes more than 1000000 tasks",)


def test_a_trace_without_a_job_that_ran_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(
        TraceError, match=r"no job that ran: 1 left out, 1 refused; the first: jobs.csv, line 3: num_gpu: 'x' is not a number"
    ):
        read_trace("tiresias", [jobs_file(tmp_path, "a,1,5,", "b,x,6,60")])


def test_a_log_that_is_not_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster_job_log").write_text('[{"jobid": "a", "attempts": []')
    with pytest.raises(TraceError, match=r"^cluster_job_log: Input data was truncated; expected a JSON list of jobs"):
        read_trace("philly", [tmp_path])


def test_a_number_of_nodes_is_for_traces_that_name_none() -> None:
    jobs = DATA / "tiresias" / "jobs.csv"
    assert len(read_trace("tiresias", [jobs], nodes=7).workload.machines) == 7
    with pytest.raises(ConfigError, match="nodes: the trace names its machines, 6; leave out the number, or the file with them"):
        read_trace("tiresias", [DATA / "tiresias"], nodes=7)
    with pytest.raises(ConfigError, match="nodes: 0 is too few; write 1 or more"):
        read_trace("tiresias", [jobs], nodes=0)


def test_without_machines_no_gang_wants_a_model_of_gpu() -> None:
    gangs = read_trace("spot-gpu", [DATA / "spot-gpu" / "job_info_df.csv"]).workload.gangs
    assert all(not part.node_labels for found in gangs for part in found.parts)


def test_a_made_cluster_holds_the_largest_gang() -> None:
    assert len(made_cluster([gang(0, 10, 5, **gpus(8)), gang(1000, 10, 1, **gpus(1))])) == 5
    assert len(made_cluster([gang(0, 10, 5, **gpus(3)), gang(1000, 10, 1, **gpus(1))])) == 3


def test_a_made_cluster_is_ninety_per_cent_busy_on_average() -> None:
    always = [gang(0, 1000, 1, **gpus(8)) for _ in range(9)]
    assert len(made_cluster([*always, gang(1000, 10, 1, **gpus(1))])) == 10
    assert len(made_cluster(always)) == 10


def test_only_work_until_the_last_submission_counts_for_a_made_cluster() -> None:
    late = gang(500, 10**6, 1, **gpus(8))
    assert len(made_cluster([late, gang(1000, 1, 1, **gpus(1))])) == 1


def test_a_made_cluster_is_sized_by_the_resource_that_is_shortest() -> None:
    assert len(made_cluster([gang(0, 1000, 18, cpu="64"), gang(1000, 1, 1, **gpus(1))])) == 10


def test_the_nodes_of_a_made_cluster_can_hold_any_single_task() -> None:
    node = made_cluster([gang(0, 10, 1, cpu="200", memory="3Ti", **gpus(16))])[0]
    assert node.offers == {"cpu": "200", "memory": "3072Gi", "nvidia.com/gpu": "16", "pods": "110"}


@pytest.mark.parametrize(
    ("total", "nodes", "tasks_by_gpus"),
    [
        (1, 1, {1: 1}),
        (8, 1, {8: 1}),
        (9, 1, {5: 1, 4: 1}),
        (64, 8, {8: 8}),
        (64, 2, {8: 8}),
        (10, 3, {4: 1, 3: 2}),
        (0, 2, {0: 2}),
        (0, 0, {0: 1}),
    ],
)
def test_gpus_are_spread_evenly_over_as_many_nodes_as_they_need(total: int, nodes: int, tasks_by_gpus: dict[int, int]) -> None:
    assert spread(total, nodes=nodes) == tasks_by_gpus


def test_names_are_valid_and_never_shared() -> None:
    names = UniqueNames("vc")
    assert [names.fresh(text) for text in ("vcRed", "VCRED", "vcred-2", "11cb", "", "ä_b.C")] == [
        "vcred", "vcred-2", "vcred-2-2", "vc-11cb", "vc", "b-c",
    ]  # fmt: skip
    assert names.same("Blue") == names.same("Blue") == "blue"
    long = [names.fresh("x" * 60), names.fresh("x" * 60)]
    assert long == ["x" * LONGEST_NAME, "x" * LONGEST_NAME + "-2"]


def test_every_format_is_told_apart_from_every_other() -> None:
    for name in FORMATS:
        path = DATA / name
        others = [other for other in FORMATS if other != name]
        for other in others:
            with pytest.raises(TraceError, match="no jobs in there"):
                read_trace(other, [path])
