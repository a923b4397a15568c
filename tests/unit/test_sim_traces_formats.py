"""Traces of public clusters: what becomes of the rows of each format."""

from pathlib import Path

import pytest

from phalanx.sim.traces import FORMATS, RecordedTrace, detect_format, read_trace
from phalanx.sim.workload import HIGH, LOW, NORMAL, WorkloadGang, WorkloadPart

DATA = Path(__file__).parents[1] / "data" / "traces"
SAMPLES = {name: DATA / name for name in FORMATS} | {"acme": DATA / "acme" / "trace_kalos.csv"}


def sample(name: str, *, nodes: int | None = None) -> RecordedTrace:
    return read_trace(name, [SAMPLES[name]], nodes=nodes)


def gang(name: str, trace: RecordedTrace) -> WorkloadGang:
    return next(gang for gang in trace.workload.gangs if gang.name == name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_sample_is_told_by_its_contents(name: str) -> None:
    assert detect_format([SAMPLES[name]]) == name


@pytest.mark.parametrize("name", FORMATS)
def test_the_first_gang_arrives_at_zero_and_the_others_in_order(name: str) -> None:
    times = [gang.submitted for gang in sample(name).workload.gangs]
    assert times[0] == 0
    assert times == sorted(times)


@pytest.mark.parametrize("name", FORMATS)
def test_every_gang_has_a_name_of_its_own_a_queue_with_a_weight_and_a_duration(name: str) -> None:
    workload = sample(name).workload
    assert len({gang.name for gang in workload.gangs}) == len(workload.gangs)
    assert {gang.queue for gang in workload.gangs} <= set(workload.weight_by_queue)
    assert all(gang.duration > 0 for gang in workload.gangs)


def test_philly_has_a_task_for_each_machine_of_the_first_attempt_and_runs_as_long_as_all_attempts() -> None:
    trace = sample("philly")
    first = gang("application-150000-1", trace)
    assert first.parts == (WorkloadPart(1, {"nvidia.com/gpu": "8"}),)
    assert first.duration == 2 * 60 + 2 * 3600
    assert gang("application-150000-2", trace).parts == (WorkloadPart(2, {"nvidia.com/gpu": "8"}),)
    assert gang("application-150000-3", trace).parts == (
        WorkloadPart(1, {"nvidia.com/gpu": "2"}, "worker-2gpu"),
        WorkloadPart(2, {"nvidia.com/gpu": "1"}, "worker-1gpu"),
    )


def test_philly_takes_the_virtual_cluster_for_the_queue_and_the_machines_from_their_list() -> None:
    workload = sample("philly").workload
    assert workload.weight_by_queue == {"red": 1, "vc-11cb48": 1}
    assert [(node.name, node.offers["nvidia.com/gpu"]) for node in workload.machines] == [("m1", "8"), ("m2", "8"), ("m3", "2")]


def test_philly_leaves_out_jobs_without_a_known_run_and_refuses_broken_ones_alone() -> None:
    trace = sample("philly")
    assert trace.left_out == 2
    assert trace.notes == (
        "cluster_job_log, job 6: vc: expected `str`, got `int`",
        "cluster_job_log, job 7: submitted_time: 'soon' is not a time; expected for example '2020-06-09 18:41:01'",
        "cluster_job_log, job 9: end_time: '2017-10-07 01:49:00' is before start_time, '2017-10-07 01:50:00'",
        "cluster_machine_list, line 5: number of GPUs: 'two' is not a number",
    )


def test_helios_has_a_task_for_each_node_and_shares_gpus_and_cpus_among_them() -> None:
    trace = sample("helios")
    assert gang("job-9002", trace).parts == (WorkloadPart(2, {"cpu": "48", "nvidia.com/gpu": "8"}),)
    assert gang("job-9003", trace).parts == (WorkloadPart(1, {"cpu": "32"}),)
    assert gang("job-9005", trace).parts == (WorkloadPart(2, {"cpu": "12500m", "nvidia.com/gpu": "6"}),)
    assert gang("job-9008", trace).parts == (
        WorkloadPart(1, {"cpu": "10", "nvidia.com/gpu": "4"}, "worker-4gpu"),
        WorkloadPart(2, {"cpu": "10", "nvidia.com/gpu": "3"}, "worker-3gpu"),
    )


def test_helios_keeps_queues_apart_whose_names_differ_only_in_case() -> None:
    trace = sample("helios")
    assert gang("job-9001", trace).queue == "vcred"
    assert gang("job-9004", trace).queue == "vcred-2"


def test_helios_takes_weights_and_nodes_from_the_gpus_of_the_best_day() -> None:
    workload = sample("helios").workload
    assert workload.weight_by_queue == {"vcred": 24, "vcblue": 24, "vcred-2": 1}
    assert len(workload.machines) == 6  # 44 GPUs
    assert len(sample("helios", nodes=3).workload.machines) == 3


def test_helios_says_which_cell_is_wrong_and_counts_what_never_ran() -> None:
    trace = sample("helios")
    assert trace.left_out == 2
    assert trace.notes == (
        "cluster_log.csv, line 7: gpu_num: 'x' is not a number",
        "cluster_log.csv, line 13: submit_time: '04.05.2020 08:17' is not a time; expected for example '2020-06-09 18:41:01'",
    )


def test_acme_reads_kalos_with_memory_of_each_pod_and_times_in_any_zone() -> None:
    trace = sample("acme")
    assert gang("dlcaaa01", trace).parts == (WorkloadPart(8, {"cpu": "120", "memory": "1000Gi", "nvidia.com/gpu": "8"}),)
    assert gang("dlcaaa02", trace).parts == (WorkloadPart(1, {"cpu": "12", "memory": "64000Mi", "nvidia.com/gpu": "1"}),)
    assert gang("dlcaaa03", trace).submitted == 5.5 * 60
    assert gang("dlcaaa03", trace).queue == "u200"
    assert (trace.left_out, trace.notes) == (1, ("trace_kalos.csv, line 6: mem_per_pod_GB: 'lots' is not a number",))


def test_acme_reads_seren_which_says_nothing_of_memory() -> None:
    trace = read_trace("acme", [DATA / "acme" / "trace_seren.csv"])
    assert gang("job-71004", trace).parts == (WorkloadPart(4, {"cpu": "128", "nvidia.com/gpu": "8"}),)
    assert (trace.left_out, trace.notes) == (0, ())


def test_pai_makes_a_gang_of_the_tasks_of_a_job_and_rounds_shares_of_gpus_up() -> None:
    first = gang("aa01", sample("pai"))
    assert first.parts == (
        WorkloadPart(4, {"cpu": "6", "memory": "30000Mi", "nvidia.com/gpu": "1"}, "worker"),
        WorkloadPart(1, {"cpu": "4", "memory": "10Gi"}, "ps"),
    )
    assert (first.submitted, first.duration, first.queue) == (0, 3610, "user-red")


def test_pai_leaves_out_tasks_without_an_end_and_jobs_without_any_that_ran() -> None:
    trace = sample("pai")
    assert [part.name for part in gang("ff06", trace).parts] == ["chief"]
    assert trace.left_out == 1
    assert trace.notes == (
        "pai_task_table.csv, line 6: inst_num: 'some' is not a number",
        "pai_task_table.csv, line 9: end_time: '1550.0' is before start_time, '1600.0'",
    )


def test_pai_without_its_table_of_jobs_has_one_queue_and_submits_at_the_start() -> None:
    trace = read_trace("pai", [DATA / "pai" / "pai_task_table.csv", DATA / "pai" / "pai_machine_spec.csv"])
    assert trace.workload.weight_by_queue == {"default": 1}
    assert gang("bb02", trace).submitted == 1200 - 990


def test_pai_machines_say_their_model_of_gpu() -> None:
    machines = sample("pai").workload.machines
    assert machines[0].labels == {"nvidia.com/gpu.product": "V100"}
    assert machines[0].offers == {"cpu": "96", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
    assert machines[2].offers == {"cpu": "64", "memory": "256Gi", "pods": "110"}


def test_pai_is_read_with_a_line_of_columns_too(tmp_path: Path) -> None:
    header, rows = ((DATA / "pai" / f"pai_task_table.{suffix}").read_text() for suffix in ("header", "csv"))
    (tmp_path / "tasks.csv").write_text(header + rows)
    assert detect_format([tmp_path]) == "pai"
    bare = read_trace("pai", [DATA / "pai" / "pai_task_table.csv"]).workload
    assert read_trace("pai", [tmp_path]).workload == bare


def test_openb_makes_each_pod_a_gang_with_the_priority_of_its_quality_of_service() -> None:
    trace = sample("openb")
    assert gang("pod-b", trace).parts == (WorkloadPart(1, {"cpu": "6", "memory": "12Gi", "nvidia.com/gpu": "1"}),)
    assert (gang("pod-b", trace).submitted, gang("pod-b", trace).duration) == (100, 2990)
    priorities = [gang(f"pod-{letter}", trace).priority for letter in "aedcih"]
    assert priorities == [HIGH, HIGH, NORMAL, LOW, NORMAL, NORMAL]
    assert trace.left_out == 1
    assert trace.notes == (
        "pods.csv, line 8: deletion_time: '5400' is before scheduled_time, '5500'",
        "nodes.csv, line 7: gpu: '-2' is not a whole number from 0 to 1000000",
    )


def test_openb_sends_a_pod_exactly_to_the_nodes_with_a_model_that_it_names() -> None:
    trace = sample("openb")

    def models(name: str) -> set[str | None]:
        wished = gang(name, trace).parts[0].node_labels.items()
        nodes = [node for node in trace.workload.machines if wished <= node.labels.items()]
        return {node.labels.get("nvidia.com/gpu.product") for node in nodes}

    assert models("pod-c") == {"V100M16", "V100M32"}
    assert models("pod-d") == {"G3"}
    assert models("pod-i") == {"T4"}
    assert models("pod-a") == {None, "G3", "V100M16", "V100M32", "T4"}


def test_spot_gpu_has_workers_of_a_model_and_the_priority_of_their_type() -> None:
    trace = sample("spot-gpu")
    many = gang("job-504", trace)
    assert many.parts == (
        WorkloadPart(94, {"cpu": "15500m", "nvidia.com/gpu": "1"}, node_labels={"nvidia.com/gpu.product": "A100-SXM4-80GB"}),
    )
    assert (many.queue, many.priority, gang("job-501", trace).priority) == ("organization-57", LOW, HIGH)
    assert gang("job-511", trace).priority == NORMAL
    assert gang("job-509", trace).parts[0].node_labels == {}


def test_spot_gpu_divides_a_worker_that_no_node_of_its_model_can_hold() -> None:
    wide = gang("job-505", sample("spot-gpu"))
    assert wide.parts == (WorkloadPart(4, {"cpu": "48", "nvidia.com/gpu": "8"}, node_labels={"nvidia.com/gpu.product": "H800"}),)


def test_spot_gpu_refuses_broken_rows_alone() -> None:
    trace = sample("spot-gpu")
    assert trace.left_out == 1
    assert trace.notes == (
        "job_info_df.csv, line 8: worker_num: '0' is not a whole number from 1 to 1000000",
        "job_info_df.csv, line 11: submit_time: 'fast' is not a number",
    )


def test_tiresias_divides_jobs_by_the_gpus_of_a_node_and_names_the_switch_of_each() -> None:
    trace = sample("tiresias")
    assert gang("job-4", trace).parts == (WorkloadPart(4, {"nvidia.com/gpu": "4"}),)
    assert gang("job-8", trace).parts == (WorkloadPart(2, {"nvidia.com/gpu": "3"}),)
    assert (gang("job-4", trace).submitted, gang("job-4", trace).duration) == (85, 900)
    assert [node.labels["phalanx.dev/switch"] for node in trace.workload.machines] == ["switch-0"] * 3 + ["switch-1"] * 3
    assert trace.workload.machines[0].offers == {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "4", "pods": "110"}
    assert (trace.left_out, trace.notes) == (1, ("jobs.csv, line 5: num_gpu: 'many' is not a number",))


def test_tiresias_without_a_cluster_has_nodes_of_eight_gpus() -> None:
    trace = read_trace("tiresias", [DATA / "tiresias" / "jobs.csv"])
    assert gang("job-4", trace).parts == (WorkloadPart(2, {"nvidia.com/gpu": "8"}),)
    assert {node.offers["nvidia.com/gpu"] for node in trace.workload.machines} == {"8"}
