"""What exactly stands against a task on the nodes: the taint, the label, the port, the pod, the volume, the device."""

from typing import Any

import pytest

from phalanx.explain.free_room import nearest_nodes
from phalanx.explain.node_causes import node_causes, search_of
from phalanx.state.verdict import FitError
from phalanx.testing import build

POLICY = build.policy(tiers=(("priority", "gang"), ("predicates", "nodeorder")))
ZONE = "topology.kubernetes.io/zone"


def cycle(*objects: Any, nodes: int = 0, policy: Any = POLICY, **offers: Any) -> build.Cluster:
    cluster = build.cluster(nodes=nodes, policy=policy, **offers).submit(*objects)
    cluster.run_cycle()
    return cluster


def why(*objects: Any, **more: Any) -> str:
    return cycle(*objects, **more).why("train")


def train(tasks: int = 1, spec: dict[str, Any] | None = None, labels: dict[str, str] | None = None, **asks: Any) -> list[Any]:
    """Return a gang called "train" whose pods have this spec and these labels."""
    pods = [build.pod(f"train-{number}", group="train", spec=spec, **(asks or {"cpu": 1})) for number in range(tasks)]
    for pod in pods:
        pod["metadata"]["labels"].update(labels or {})
    return [build.pod_group("train", min_member=tasks), *pods]


def tainted(name: str, key: str, value: str = "", effect: str = "NoSchedule", **offers: Any) -> Any:
    return build.node(name, spec={"taints": [{"key": key, "value": value, "effect": effect}]}, **offers)


def affinity(kind: str, key: str = "kubernetes.io/hostname", **labels: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def node_affinity(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def labelled(pod: dict[str, Any], **labels: str) -> dict[str, Any]:
    pod["metadata"]["labels"].update(labels)
    return pod


# --- nodes ---------------------------------------------------------------------------------------------------------------


def test_taints_are_named_and_nodes_with_the_same_one_counted_together() -> None:
    nodes = [tainted("a", "team", "ml"), tainted("b", "team", "ml"), tainted("c", "spot", effect="NoExecute")]
    assert "(3 nodes: 2 have the untolerated taint team=ml:NoSchedule, 1 has the untolerated taint spot:NoExecute)" in why(
        nodes, train()
    )


def test_a_taint_that_is_tolerated_is_not_named() -> None:
    node = build.node("a", spec={"taints": [{"key": "ok", "effect": "NoSchedule"}, {"key": "team", "effect": "NoSchedule"}]})
    assert "1 has the untolerated taint team:NoSchedule)" in why(
        node, train(spec={"tolerations": [{"key": "ok", "operator": "Exists"}]})
    )


def test_many_different_taints_are_not_all_named() -> None:
    found = why([tainted(f"n{number}", f"k{number}") for number in range(9)], train())
    assert "1 has the untolerated taint k0:NoSchedule, 1 has the untolerated taint k1:NoSchedule, 7 have a taint" in found


@pytest.mark.parametrize("key", ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])
def test_nodes_that_are_not_ready_are_named(key: str) -> None:
    assert "(2 nodes: 2 are not ready (a, b))" in why(tainted("a", key), tainted("b", key), train())


def test_cordoned_nodes_are_named_if_they_are_few() -> None:
    cordoned = [build.node(f"n{number}", spec={"unschedulable": True}) for number in range(4)]
    assert "(2 nodes: 2 are cordoned (n0, n1))" in why(cordoned[:2], train())
    assert "(4 nodes: 4 are cordoned)" in why(cordoned, train())


def test_a_node_selector_is_named_with_the_values_that_exist() -> None:
    nodes = [*(build.node(f"h{number}", labels={"disk": "hdd"}) for number in range(4)), build.node("x"), build.node("y")]
    assert "6 do not match the nodeSelector disk=ssd (4 have disk=hdd, 2 have no label disk))" in why(
        nodes, train(spec={"nodeSelector": {"disk": "ssd"}})
    )


def test_a_value_that_was_perhaps_meant_is_proposed() -> None:
    node = build.node("a", labels={"gpu": "nvidia-h100"})
    assert "(1 has gpu=nvidia-h100; did you mean nvidia-h100?)" in why(node, train(spec={"nodeSelector": {"gpu": "nvidia-h10"}}))


def test_a_label_that_was_perhaps_meant_is_proposed() -> None:
    node = build.node("a", labels={"disktype": "ssd"})
    assert "(no node has the label disktyp, did you mean disktype?)" in why(node, train(spec={"nodeSelector": {"disktyp": "h"}}))


def test_a_node_affinity_is_named() -> None:
    spec = node_affinity({"key": ZONE, "operator": "In", "values": ["a", "b"]}, {"key": "old", "operator": "DoesNotExist"})
    assert f"1 does not match the node affinity {ZONE} in [a, b] (1 has {ZONE}=c)" in why(
        build.node("x", labels={ZONE: "c"}), train(spec=spec)
    )


def test_what_has_to_change_first_is_said_first() -> None:
    full = [build.node(f"full{number}", gpus=1) for number in range(3)]
    old = [build.pod(f"old{number}", on=f"full{number}", gpus=1) for number in range(3)]
    found = why(full, old, tainted("free", "team", gpus=1), train(gpus=1))
    assert "(4 nodes: 1 has the untolerated taint team:NoSchedule, 3 lack nvidia.com/gpu (0 of 3 are free, 1 needed))" in found


def test_the_node_group_that_a_queue_may_not_use_is_named() -> None:
    policy = build.policy(tiers=(("priority", "gang"), ("predicates", "nodeorder", "nodegroup")))
    queue = build.queue("research", affinity={"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["gpus"]}})
    group, pod = train()
    group["spec"]["queue"] = "research"
    nodes = [build.node(name, labels={"volcano.sh/nodegroup-name": "web"}) for name in "ab"]
    assert "2 are in node group web, which queue 'research' may not use" in why(queue, nodes, group, pod, policy=policy)


def test_how_many_pods_a_node_may_run_is_named() -> None:
    assert "1 runs as many pods as it may (1)" in why(build.pod("old", on="node-0", cpu=1), train(), nodes=1, pods=1)


# --- pods ----------------------------------------------------------------------------------------------------------------


def test_a_port_is_named_with_the_pod_that_has_it() -> None:
    ports = {"containers": [{"name": "main", "ports": [{"hostPort": 8080}], "resources": {"requests": {"cpu": 1}}}]}
    assert "1 has host port 8080 taken (by pod default/web)" in why(
        build.pod("web", on="node-0", spec=ports), train(spec=ports), nodes=1
    )


def test_the_pod_that_anti_affinity_excludes_is_named() -> None:
    web = labelled(build.pod("web", on="node-0", cpu=1), app="web")
    assert "1 is excluded by its anti-affinity to app=web per kubernetes.io/hostname (pod default/web)" in why(
        web, train(spec=affinity("podAntiAffinity", app="web")), nodes=1
    )


def test_tasks_that_exclude_each_other_are_told_so() -> None:
    found = why(train(3, spec=affinity("podAntiAffinity", app="train"), labels={"app": "train"}), nodes=2)
    assert (
        "2 are excluded by its anti-affinity to app=train per kubernetes.io/hostname (tasks of its own gang; one fits per domain)"
        in found
    )


def test_the_pods_that_affinity_wants_are_named() -> None:
    assert "1 is not near pods with app=cache per kubernetes.io/hostname, as its pod affinity wants" in why(
        train(spec=affinity("podAffinity", app="cache")), nodes=1
    )


def test_a_topology_key_that_nodes_lack_is_named() -> None:
    assert f"1 has no label {ZONE}, which its pod affinity needs" in why(
        train(spec=affinity("podAffinity", ZONE, app="cache")), nodes=1
    )


def test_the_pod_that_avoids_a_task_is_named() -> None:
    shy = build.pod("shy", on="node-0", cpu=1, spec=affinity("podAntiAffinity", app="train"))
    assert "1 is near pods whose anti-affinity excludes it (pod default/shy avoids app=train per kubernetes.io/hostname)" in why(
        shy, train(labels={"app": "train"}), nodes=1
    )


def test_a_spread_constraint_is_named_with_its_fullest_and_emptiest_domain() -> None:
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "train"}},
    }
    nodes = [build.node("a", labels={ZONE: "a"}), build.node("b", labels={ZONE: "b"}, spec={"unschedulable": True})]
    old = labelled(build.pod("old", on="a", cpu=1), app="train")
    found = why(nodes, old, train(spec={"topologySpreadConstraints": [constraint]}, labels={"app": "train"}))
    assert f"1 would break maxSkew 1 over {ZONE} (a has 1 of these pods, b has 0)" in found


# --- volumes and devices -------------------------------------------------------------------------------------------------

CLAIM_SPEC = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def bound_volume(**volume: Any) -> list[dict[str, Any]]:
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv-1", "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }  # fmt: skip
    labels = volume.pop("labels", {})
    reference = {"namespace": "default", "name": "data"}
    spec = {"capacity": {"storage": "1Gi"}, "claimRef": reference, "accessModes": ["ReadWriteOnce"], **volume}
    return [claim, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1", "labels": labels}, "spec": spec}]


def test_the_volume_that_nodes_do_not_reach_is_named_with_where_it_is() -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]
    objects = bound_volume(nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    found = why(objects, build.node("x", labels={ZONE: "b"}), train(spec=CLAIM_SPEC))
    assert f"1 cannot reach volume 'pv-1' of claim 'data' (needs {ZONE}=a)" in found


def test_the_zone_of_a_volume_is_named() -> None:
    found = why(bound_volume(labels={ZONE: "a"}), build.node("x", labels={ZONE: "b"}), train(spec=CLAIM_SPEC))
    assert "1 is in another zone than volume 'pv-1' of claim 'data' (a)" in found


def test_a_claim_without_a_volume_to_bind_is_named() -> None:
    local = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "local", "resources": {"requests": {"storage": "10Gi"}}}, "status": {"phase": "Pending"},
    }  # fmt: skip
    assert "1 has no volume for claim 'data' (10Gi of class 'local')" in why(local, claim, train(spec=CLAIM_SPEC), nodes=1)


def test_the_devices_that_a_claim_asks_for_are_named() -> None:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}]
    objects = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}, "spec": {}},
        {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "gpus", "namespace": "default"},
            "spec": {"devices": {"requests": requests}},
        },
    ]  # fmt: skip
    spec = {"resourceClaims": [{"name": "gpus", "resourceClaimName": "gpus"}]}
    assert "1 has too few devices for claim 'gpus' (2 devices of class 'gpu.example.com')" in why(
        objects, train(spec=spec), nodes=1
    )


# --- resources -----------------------------------------------------------------------------------------------------------


def test_what_is_free_but_scattered_is_told_apart_from_what_is_not_free() -> None:
    old = [build.pod(f"old{number}", on=f"node-{number}", gpus=3) for number in range(4)]
    assert "4 lack nvidia.com/gpu (4 of 16 are free, at most 1 per node)" in why(old, train(gpus=2), nodes=4, gpus=4)
    full = [build.pod(f"old{number}", on=f"node-{number}", gpus=4) for number in range(4)]
    assert "4 lack nvidia.com/gpu (0 of 16 are free, 2 needed)" in why(full, train(gpus=2), nodes=4, gpus=4)


def test_nodes_that_the_filters_leave_may_be_too_small() -> None:
    big = tainted("big", "team", gpus=8)
    found = why(big, train(gpus=8), nodes=2, gpus=4)
    assert "1 has the untolerated taint team:NoSchedule, 2 lack nvidia.com/gpu (the largest has 4))" in found


def test_a_request_that_no_empty_node_meets_as_a_whole_is_told_so() -> None:
    nodes = [build.node("gpus", gpus=8, memory="64Gi"), build.node("memory", gpus=1, memory="512Gi")]
    assert "(no node has all of that, even when empty: gpus lacks 192Gi memory)" in why(nodes, train(gpus=8, memory="256Gi"))


@pytest.mark.parametrize(
    ("asks", "code"),
    [({"gpus": 2}, "ScatteredResources"), ({"gpus": 4}, "InsufficientResources"), ({"gpus": 9}, "TooLarge")],
)
def test_lacks_have_codes_of_their_own(asks: dict[str, Any], code: str) -> None:
    old = [build.pod(f"old{number}", on=f"node-{number}", gpus=3) for number in range(3)]
    assert causes(old, train(**asks), nodes=3, gpus=4)[0].code == code


def test_the_nearest_nodes_are_named_with_what_each_lacks() -> None:
    old = [
        build.pod("a", on="node-0", gpus=4),
        build.pod("b", on="node-1", gpus=1, cpu=7),
        build.pod("c", on="node-2", gpus=4, cpu=8),
    ]
    search = last_search(old, train(gpus=4, cpu=2), nodes=3, gpus=4)
    assert [text for _, text in nearest_nodes(search)] == [
        "node-1 lacks 1 cpu and 1 nvidia.com/gpu", "node-0 lacks 4 nvidia.com/gpu", "node-2 lacks 2 cpu and 4 nvidia.com/gpu",
    ]  # fmt: skip


def test_gangs_that_wait_for_the_same_are_put_into_words_once() -> None:
    cluster = build.cluster(nodes=2, policy=POLICY, gpus=1)
    gangs = [document for number in range(5) for document in build.gang(f"w{number}", tasks=3, gpus=1)]
    decisions = cluster.submit(gangs).run_cycle().decisions
    aftermath = decisions.outcomes[0].aftermath
    assert aftermath is not None
    assert len([key for key in aftermath.memo if isinstance(key, tuple) and len(key) > 2]) == 1


def last_search(*objects: Any, **more: Any) -> Any:
    cluster = build.cluster(policy=POLICY, **more).submit(*objects)
    outcome = next(item for item in cluster.run_cycle().decisions.outcomes if item.state.key == "default/train")
    task = next(task for task in outcome.state.tasks if isinstance(task.error, FitError))
    assert isinstance(task.error, FitError)
    return search_of(outcome, task, task.error, cluster.objects.snapshot(0.0))


def causes(*objects: Any, **more: Any) -> Any:
    return node_causes(last_search(*objects, **more))


def test_another_one_of_a_numbered_row_is_not_what_was_meant() -> None:
    nodes = [build.node(f"rack-{number}", labels={"rack": f"rack-{number}"}) for number in range(3)]
    assert "did you mean" not in why(nodes, train(spec={"nodeSelector": {"rack": "rack-7"}}))
    assert "did you mean rack-1?" in why(nodes, train(spec={"nodeSelector": {"rack": "rakc-1"}}))
