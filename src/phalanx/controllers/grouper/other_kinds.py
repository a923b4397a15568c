"""Kinds of owners whose pods need no others to start, and some that say how many they are."""

from msgspec import field

from phalanx.controllers.grouper.grouping import Count, Grouping, group_name, one_group, pod_group
from phalanx.controllers.grouper.owners import OwnerChain, read
from phalanx.controllers.objects import labels_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read
from phalanx.errors import SnapshotError

SPARK_APP, SPARK_SELECTOR = "spark-app-name", "spark-app-selector"


class AmlEnvs(Read):
    """What a job of Azure Machine Learning is told."""

    node_count: Count | None = field(default=None, name="AZUREML_NODE_COUNT")


class AmlOptions(Read):
    """How it is run."""

    envs: AmlEnvs = field(default_factory=AmlEnvs)


class AmlInner(Read):
    """The job inside."""

    options: AmlOptions = field(default_factory=AmlOptions)


class AmlSpec(Read):
    """What it asks for."""

    job: AmlInner = field(default_factory=AmlInner)


class AmlJob(Read):
    """A job of Azure Machine Learning."""

    spec: AmlSpec = field(default_factory=AmlSpec)


def one(family: OwnerChain) -> Grouping:
    """Group all pods of an owner; each may start alone."""
    return one_group(family)


def each(family: OwnerChain) -> Grouping:
    """Let each pod of an owner be for itself."""
    return pod_group(family)


def bare(family: OwnerChain) -> Grouping:
    """Group a pod without owners by itself; pods of one Spark application share a group that is called like it."""
    labels = labels_of(family.pod)
    whole = one_group(family)
    if SPARK_APP in labels and SPARK_SELECTOR in labels:
        return Grouping(labels[SPARK_SELECTOR], whole.owner, constraint=whole.constraint)
    return whole


def spawned(family: OwnerChain) -> Grouping:
    """Group the pods of each Job that a CronJob has made."""
    jobs = family.owners[:-1]
    return one_group(family, owner=jobs[-1] if jobs else family.head)


def stem(family: OwnerChain) -> Grouping:
    """Group pods whose names are equal up to the last dash."""
    name = str(meta_of(family.pod)["name"])
    named = {**family.head, "metadata": {**meta_of(family.head), "name": name.rpartition("-")[0] or name}}
    whole = one_group(family)
    return Grouping(group_name(family, named), whole.owner, constraint=whole.constraint)


def aml(family: OwnerChain) -> Grouping:
    """Group a job of Azure Machine Learning with as many pods as it has nodes."""
    count = read(family.head, AmlJob).spec.job.options.envs.node_count
    if not count:
        where = "spec.job.options.envs.AZUREML_NODE_COUNT"
        raise SnapshotError(f"{describe(family.head)}: {where}: missing or 0; write the number of nodes")
    return one_group(family, minimum=count)
