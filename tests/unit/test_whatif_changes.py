"""The language of changes: every kind of object and every dialect, and what errors say."""

from typing import Any

import pytest

from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.kinds import NODE, POD
from phalanx.testing import build
from phalanx.testing.build import Document
from phalanx.whatif.changes import parse, parse_all
from phalanx.whatif.trial_cluster import TrialCluster
from tests.support import coscheduling_gangs as sigs
from tests.support import gated_gangs as gated
from tests.support import kai_objects as kai
from tests.support import native_groups as native
from tests.support import pod_made_gangs as made
from tests.support.trial_clusters import running_gang, trial_cluster


def starts_with(cluster: TrialCluster, *texts: str, gang: str = "default/train") -> bool:
    with cluster.with_changes(parse_all(texts)):
        return cluster.decide().starts(gang)


def nodes(number: int = 1, **offers: Any) -> list[Document]:
    return [build.node(f"n{index}", **{"gpus": 4, **offers}) for index in range(number)]


def koordinator_pods(tasks: int) -> list[Document]:
    pods = [build.pod(f"train-{number}", gpus=2) for number in range(tasks)]
    for pod in pods:
        notes = {"gang.scheduling.koordinator.sh/name": "train", "gang.scheduling.koordinator.sh/min-available": str(tasks)}
        pod["metadata"]["annotations"] = notes
    return pods


@pytest.mark.parametrize("text", [
    "node/n1=drained", "node/+2=n1", "node/ip-10-0-0-1.ec2.internal.labels.topology.kubernetes.io/zone=east",
    "queue/research.capability.nvidia.com/gpu=+4", "gang/ml/bert=gone", "gang/ml/bert.minMember=3",
    "gang/ml/bert.tolerations=dedicated=research:NoSchedule", "gang/ml/v1.2.requests.nvidia.com/gpu=2",
    "pdb/ml/keep.disruptionsAllowed=2", "pvc/ml/data=bound", "quota/ml/most.hard.requests.nvidia.com/gpu=+2",
])  # fmt: skip
def test_a_change_is_written_as_it_was_read(text: str) -> None:
    assert parse(text).text == text


@pytest.mark.parametrize(("text", "problem"), [
    ("nod/n0=gone", "no kind of object 'nod' can be changed; did you mean 'node'?"),
    ("node/n0", "expected KIND/NAME=STATE or KIND/NAME.FIELD=VALUE, such as 'node/NAME=drained'"),
    ("node/n9=gone", "there is no node 'n9'; there are: n0"),
    ("node/n0=open", "'open' is no state of a node; write one of: drained, cordoned, uncordoned, gone, ready, notready"),
    ("node/n0.labelz.zone=east", "node 'n0' has no field 'labelz' to change; did you mean 'labels'?"),
    ("node/+x=n0", "how many more nodes, 10000 at most? write for example 'node/+2=n0'"),
    ("queue/researchh.weight=2", "there is no queue 'researchh'; did you mean 'research'?"),
    ("queue/research.limit.gpu=2", "only queues of KAI have a limit, and 'research' is one of Volcano"),
    ("queue/research.capability=2", "which resource? write for example queue/research.capability.cpu=2"),
    ("queue/research.capability.cpu=lots", "quantity 'lots': not a number with a suffix"),
    ("gang/default/trainn=gone", "there is no gang 'default/trainn'; did you mean 'default/train'?"),
    ("gang/default/train.minMember=two", "'two' is not a whole number; write for example 'gang/default/train.minMember=3'"),
    ("gang/default/train.priority=hihg", "PriorityClass 'hihg'; write a number up to 1000000000, or a class; did you mean 'high'?"),
    ("gang/default/train.pods=2", "how many more pods, 10000 at most? write for example '+2'"),
    ("gang/default/train.preemptable=yes", "'yes' is neither 'true' nor 'false'"),
    ("gang/default/train.requiredTopologyLevel=zone", "gangs of the dialect volcano have no levels of node labels"),
    ("node/+2=n9", "change 'node/+2=n9': there is no node 'n9'; there are: n0"),
    ("node/+100000=n0", "how many more nodes, 10000 at most?"),
    ("node/n0.taints.team=nlp", "expected VALUE:EFFECT or 'none'; effects: NoSchedule, PreferNoSchedule, NoExecute"),
    ("gang/default/train.tolerations=team=nlp:NoShedule", "effects: NoSchedule, PreferNoSchedule, NoExecute"),
    ("queue/research.state=Opened", "'Opened' is no state of a queue; write one of: Open, Closed, Closing"),
    ("queue/research.weight=0", "0 is too small; the least is 1"),
    ("queue/research.capability.cpu=+4", "queue 'research' has no capability of cpu that could grow; write the whole amount"),
    ("queue/research.capability.nvidia.com/gpux=4", "has the resource 'nvidia.com/gpux'; did you mean 'nvidia.com/gpu'?"),
    ("gang/default/train.requests.nvidia.com/gpuu=4", "nothing here has the resource 'nvidia.com/gpuu'; did you mean"),
    ("gang/default/train.minMember=-2", "-2 is too small; the least is 0"),
    ("gang/default/train.priority=99999999999", "write a number up to 1000000000, or a class"),
    ("gang/default/train.priority=+5", "there is no PriorityClass '+5'; write a number"),
    ("gang/default/train.pods.sp=+1", "it has no role 'sp'; roles: none"),
    ("gang/default/runs.gates=none", "no pod of it waits, and only a pod that waits can ask for something else"),
])  # fmt: skip
def test_an_error_says_what_to_write_instead(text: str, problem: str) -> None:
    cluster = trial_cluster(
        nodes(), build.queue("research"), native.priority_class("high", 100), build.gang("train", tasks=2, gpus=1),
        running_gang("runs", "n0", gpus=1),
    )  # fmt: skip
    with pytest.raises(ConfigError) as refusal:
        starts_with(cluster, text)
    assert problem in str(refusal.value)
    assert str(refusal.value).startswith("change ")


# --- gangs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gang", [
    build.gang("train", tasks=3, gpus=2), sigs.gang("train", tasks=3, gpus=2), native.gang("train", tasks=3, gpus=2),
    sigs.gang("train", tasks=3, api=sigs.KOORDINATOR, gpus=2), koordinator_pods(3), made.pod_group("train", tasks=3, gpus=2),
    made.application("train", {"worker": 3}, gpus=2), gated.gang("train", 3, gpus=2),
], ids=["volcano", "coscheduling", "native", "koordinator", "koordinator-pods", "kueue", "yunikorn", "gates"])  # fmt: skip
def test_every_dialect_says_how_many_members_start_together(gang: list[Document]) -> None:
    cluster = trial_cluster(nodes(), gang)
    (key,) = cluster.gangs
    assert not cluster.decide().starts(key)
    assert starts_with(cluster, f"gang/{key}.minMember=2", gang=key)
    assert starts_with(cluster, f"gang/{key}.requests.nvidia.com/gpu=1", gang=key)
    assert starts_with(cluster, "node/+1=n0", gang=key)
    assert not cluster.decide().starts(key)


def test_gangs_of_kai_are_changed_in_their_own_words() -> None:
    documents: list[Any] = [
        build.node("n0", gpus=4, cpu=64), kai.queue("default", parent="", quota=-1), kai.queue("a", quota=0, limit=1),
        kai.queue("b", quota=4), *map(kai.priority_class, kai.CLASSES), *kai.gang("train", tasks=2, gpus=1, queue="a"),
    ]  # fmt: skip
    cluster = trial_cluster(documents, policy=kai.policy())
    assert not cluster.decide().starts("default/train")
    assert starts_with(cluster, "queue/a.limit.nvidia.com/gpu=+1")
    assert not starts_with(cluster, "queue/a.limit.gpu=+0")
    assert starts_with(cluster, "gang/default/train.queue=b")
    assert starts_with(cluster, "gang/default/train.minMember=1")
    assert starts_with(cluster, "queue/a=gone", "queue/a=new")
    with pytest.raises(ConfigError, match="only queues of Volcano have a capability"):
        starts_with(cluster, "queue/a.capability.cpu=1")


def test_minimal_resources_follow_only_where_a_controller_wrote_them() -> None:
    group, *pods = build.gang("train", tasks=3, gpus=2)
    group["spec"]["minResources"] = {"nvidia.com/gpu": "6"}
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "1", "controller": True}
    owned = {**group, "metadata": {**group["metadata"], "ownerReferences": [owner]}}
    written, made = (trial_cluster(nodes(), one, pods, profile="volcano") for one in (group, owned))
    assert not starts_with(written, "gang/default/train.minMember=2")
    assert starts_with(made, "gang/default/train.minMember=2")
    assert starts_with(written, "gang/default/train.minMember=2", "gang/default/train.minResources=none")


def test_a_change_that_no_object_can_have_is_refused() -> None:
    cluster = trial_cluster(nodes(), native.gang("train", tasks=3, gpus=2))
    with pytest.raises(SnapshotError, match="minCount: 0 is too small"):
        starts_with(cluster, "gang/default/train.minMember=0")
    assert starts_with(cluster, "gang/default/train.minMember=2")


def test_changes_are_made_one_after_the_other() -> None:
    cluster = trial_cluster(nodes(), build.gang("train", tasks=3, gpus=2))
    assert starts_with(cluster, "node/n0.allocatable.nvidia.com/gpu=+1", "node/n0.allocatable.nvidia.com/gpu=+1")
    assert not starts_with(cluster, "node/n0.allocatable.nvidia.com/gpu=+1")


# --- nodes, budgets, volumes ---------------------------------------------------------------------------------------------


def test_a_drained_node_lets_the_pods_of_gangs_wait_again() -> None:
    daemon = build.pod("daemon", on="n0")
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]
    cluster = trial_cluster(nodes(2), running_gang("runs", "n0", "n1", gpus=2), daemon, build.pod("alone", on="n0"))
    with cluster.with_changes([parse("node/n0=drained")]):
        pod, node = cluster.find(POD, "default/runs-0"), cluster.find(NODE, "n0")
        assert pod is not None
        assert "nodeName" not in pod["spec"]
        assert pod["status"] == {"phase": "Pending"}
        assert node is not None
        assert node["spec"]["unschedulable"]
        assert cluster.find(POD, "default/alone") is None
        assert cluster.find(POD, "default/daemon") is not None
    assert cluster.find(POD, "default/alone") is not None
    with cluster.with_changes([parse("node/n0=gone")]):
        assert cluster.find(POD, "default/daemon") is None
        assert cluster.find(NODE, "n0") is None


@pytest.mark.parametrize(("spec", "conditions", "change"), [
    ({"unschedulable": True, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}, [], "uncordoned"),
    ({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}, [{"type": "Ready", "status": "False"}], "ready"),
])  # fmt: skip
def test_a_node_is_opened_again(spec: Document, conditions: list[Document], change: str) -> None:
    node = build.node("n0", gpus=4, spec=dict(spec))
    node["status"]["conditions"] = conditions
    cluster = trial_cluster(node, build.gang("train", tasks=1, gpus=1))
    assert not cluster.decide().starts("default/train")
    assert starts_with(cluster, f"node/n0={change}")


def test_more_nodes_are_in_the_same_network_domain() -> None:
    group, *pods = build.gang("train", tasks=2, gpus=4)
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    domains = [build.hypernode("s0", tier=1, members=["n0"]), build.hypernode("s1", tier=1, members=["n1"])]
    cluster = trial_cluster(nodes(2), domains, group, pods)
    assert not cluster.decide().starts("default/train")
    assert starts_with(cluster, "node/+1=n0")
    assert starts_with(cluster, "gang/default/train.topology=none")


def test_a_volume_claim_is_bound() -> None:
    pod = build.pod("train-0", group="train", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})
    cluster = trial_cluster(nodes(), build.pod_group("train"), pod)
    assert not cluster.decide().starts("default/train")
    assert starts_with(cluster, "pvc/data=bound")


def test_a_quota_grows() -> None:
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": "default", "name": "most"},
        "spec": {"hard": {"pods": "1"}}, "status": {"hard": {"pods": "1"}, "used": {"pods": "0"}},
    }  # fmt: skip
    cluster = trial_cluster(quota)
    (edit,) = parse("quota/default/most.hard.pods=+3").edits(cluster)
    assert edit.after is not None
    assert edit.after["status"]["hard"] == {"pods": "4"}


def test_a_step_is_added_to_a_whole_number_too() -> None:
    cluster = trial_cluster(nodes(), build.gang("train", tasks=3, min_member=1, gpus=2))
    assert starts_with(cluster, "gang/default/train.minMember=+1")
    assert not starts_with(cluster, "gang/default/train.minMember=+2")


def test_tolerations_are_dropped() -> None:
    pod = build.pod("train-0", group="train", gpus=1, spec={"tolerations": [{"key": "team", "operator": "Exists"}]})
    node = build.node("n0", gpus=4, spec={"taints": [{"key": "team", "effect": "NoSchedule"}]})
    cluster = trial_cluster(node, build.pod_group("train"), pod)
    assert starts_with(cluster)
    assert not starts_with(cluster, "gang/default/train.tolerations=none")
