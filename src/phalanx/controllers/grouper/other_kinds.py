"""Rules for owners whose pods start independently of each other, and for some that say how many pods they have."""

from msgspec import field

from phalanx.controllers.grouper.grouping import Count, Grouping, group_name, one_group, pod_group
from phalanx.controllers.grouper.owners import OwnerChain, read
from phalanx.controllers.objects import labels_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read
from phalanx.errors import SnapshotError

SPARK_APP, SPARK_SELECTOR = "spark-app-name", "spark-app-selector"


class AmlEnvs(Read):
    """Environment variables of a job of Azure Machine Learning."""

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


def one(chain: OwnerChain) -> Grouping:
    """Group all pods of an owner; each may start alone."""
    return one_group(chain)


def each(chain: OwnerChain) -> Grouping:
    """Let each pod of an owner be for itself."""
    return pod_group(chain)


def bare(chain: OwnerChain) -> Grouping:
    """Group a pod without owners by itself; pods of one Spark application share a group that is called like it."""
    labels = labels_of(chain.pod)
    whole = one_group(chain)
    if SPARK_APP in labels and SPARK_SELECTOR in labels:
        return Grouping(labels[SPARK_SELECTOR], whole.owner, constraint=whole.constraint)
    return whole


def spawned(chain: OwnerChain) -> Grouping:
    """Group the pods of each Job that a CronJob has made."""
    jobs = chain.owners[:-1]
    return one_group(chain, owner=jobs[-1] if jobs else chain.head)


def stem(chain: OwnerChain) -> Grouping:
    """Group pods whose names are equal up to the last dash."""
    name = str(meta_of(chain.pod)["name"])
    named = {**chain.head, "metadata": {**meta_of(chain.head), "name": name.rpartition("-")[0] or name}}
    whole = one_group(chain)
    return Grouping(group_name(chain, named), whole.owner, constraint=whole.constraint)


def aml(chain: OwnerChain) -> Grouping:
    """Group a job of Azure Machine Learning with as many pods as it has nodes."""
    count = read(chain.head, AmlJob).spec.job.options.envs.node_count
    if not count:
        where = "spec.job.options.envs.AZUREML_NODE_COUNT"
        raise SnapshotError(f"{describe(chain.head)}: {where}: missing or 0; write the number of nodes")
    return one_group(chain, minimum=count)
