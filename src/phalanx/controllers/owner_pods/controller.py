"""Stands in for the controllers of other projects: makes of each owner what they would make of it now."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from phalanx.controllers.controller import NOTHING, Create, Key, Result, View, Write
from phalanx.controllers.grouper.owners import kind_pair
from phalanx.controllers.objects import controller_of, inside, is_leaving, key_of, labels_of, meta_of
from phalanx.controllers.owner_pods import apps, batch, job_set, leader_worker_set, ray, spark, training, volcano
from phalanx.controllers.owner_pods.children import Children, note
from phalanx.controllers.pod_makers import MADE_ELSEWHERE, wants_pods
from phalanx.controllers.unmade_pods import OwnerKey
from phalanx.dialects import kueue
from phalanx.dialects.cluster import describe
from phalanx.errors import SnapshotError
from phalanx.model.kinds import JOB_FLOW, POD, VOLCANO_CRON_JOB, VOLCANO_JOB, Document, Kind, kind_of
from phalanx.model.task_status import ENDED

Pair = tuple[str, str]


def _trained(*names: str) -> dict[Pair, Callable[[Document], Children]]:
    return {("kubeflow.org", name): training.training_job for name in names}


STAND_INS: Mapping[Pair, Callable[[Document], Children]] = {
    ("batch", "Job"): batch.job, ("batch", "CronJob"): batch.cron_job, ("batch.volcano.sh", "CronJob"): batch.cron_job,
    ("apps", "Deployment"): apps.deployment, ("apps", "ReplicaSet"): apps.replica_set,
    ("apps", "StatefulSet"): apps.stateful_set, ("apps", "DaemonSet"): apps.daemon_set,
    **_trained("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"),
    ("kubeflow.org", "MPIJob"): training.mpi_job, ("kubeflow.org", "Notebook"): apps.notebook,
    ("ray.io", "RayCluster"): ray.ray_cluster, ("ray.io", "RayJob"): ray.ray_job, ("ray.io", "RayService"): ray.ray_service,
    ("jobset.x-k8s.io", "JobSet"): job_set.job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leader_worker_set.leader_worker_set,
    ("sparkoperator.k8s.io", "SparkApplication"): spark.spark_application,
}  # fmt: skip
MADE_HERE_TOO: Mapping[Pair, Callable[[Document], Children]] = {
    ("batch.volcano.sh", "Job"): volcano.job, ("flow.volcano.sh", "JobFlow"): volcano.job_flow,
}  # fmt: skip
"""Kinds whose pods controllers of ours make; here is said what they make later."""
DEFAULTS: Mapping[Pair, Callable[[Document], Document]] = {
    ("jobset.x-k8s.io", "JobSet"): job_set.defaulted,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leader_worker_set.defaulted,
}


def knows_pods_of(kind: Kind) -> bool:
    """Tell whether pods are made of a kind here when it is submitted."""
    return STAND_INS.get((kind.group, kind.kind)) not in (None, batch.cron_job, apps.daemon_set)


def with_defaults(document: Document) -> Document:
    """Return an object of another project with the defaults of its definition or webhook, as far as they matter."""
    found = DEFAULTS.get(kind_pair(document))
    return document if found is None else found(document)


def children_of(view: View, owner: Document) -> Children:
    """Return what the controller of an owner makes of it now; for a kind that is not known a sentence that says so."""
    if kind_pair(owner) == ("", "Pod"):
        return leader_worker_set.workers_of(view, owner)
    if not wants_pods(owner):
        return Children(notes=["is suspended, scaled to none or at its end, so that no pods are made"])
    if (own := MADE_HERE_TOO.get(kind_pair(owner))) is not None:
        return own(owner)
    stand_in = STAND_INS.get(kind_pair(owner))
    if stand_in is None:
        return Children(notes=["which pods are made of it is not known here; try with pods like its own"])
    found = stand_in(owner)
    return found if found.documents or found.notes else Children(notes=["asks for no pods"])


class OwnerPods:
    """Creates what is missing below an owner."""

    name = "owner-pods"
    watches: Sequence[Kind] = (POD, VOLCANO_JOB, VOLCANO_CRON_JOB, JOB_FLOW, *MADE_ELSEWHERE)
    brings_back: Sequence[Kind] = ()

    def __init__(self, given: Container[str] = ()) -> None:
        """Make nothing of owners with these uids: what is below them is there, whatever they say."""
        self._given = given

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the owner."""
        return [OwnerKey(key_of(document).namespace, key_of(document).name, kind)]

    def reconcile(self, view: View, key: Key) -> Result:
        """Create the children that are not there; say what else there will be."""
        assert isinstance(key, OwnerKey), "only keys of our own come back"
        owner = view.find(key.kind, key.namespace, key.name)
        if owner is None or is_leaving(owner) or str(meta_of(owner).get("uid", "")) in self._given:
            return NOTHING
        try:
            found = children_of(view, owner)
        except SnapshotError as problem:
            return Result([note(owner, str(problem).removeprefix(f"{describe(owner)}: "))])
        return Result([*_missing(view, owner, found.documents), *_events(owner, (*found.notes, *_held_back(owner)))])


def _events(owner: Document, notes: Iterable[str]) -> Iterator[Write]:
    for text in notes:
        yield note(owner, text)


def _held_back(owner: Document) -> Iterator[str]:
    """Say that Kueue, where it runs, suspends what names one of its queues until there is quota."""
    if kueue.QUEUE in labels_of(owner) and controller_of(owner) is None:
        yield f"label {kueue.QUEUE}: if Kueue runs, it keeps this suspended until the queue has room; taken as admitted here"


def _missing(view: View, owner: Document, wanted: Iterable[Document]) -> Iterator[Write]:
    """Yield the children that are not there yet; of those whose names the API server completes, so many fewer."""
    uid, spare = str(meta_of(owner)["uid"]), Counter[str]()
    used: Counter[str] = Counter()
    for kind in {kind_of(child) for child in wanted}:
        spare.update(_stem(child) for child in view.owned(uid, kind) if inside(child, "status", "phase") not in ENDED)
    for child in wanted:
        stem, kind = meta_of(child).get("generateName"), kind_of(child)
        if stem is None:
            there = view.find(kind, key_of(child).namespace, key_of(child).name)
            yield from _created(view, child) if there is None else _not_its_own(owner, child, there)
        elif spare[stem]:
            spare[stem] -= 1
        else:
            yield from _created(view, _named(view, child, stem, used))


def _created(view: View, child: Document) -> Iterator[Write]:
    """Yield the creation of a child, as the webhooks of its operator let it through."""
    found = job_set.admitted(view, leader_worker_set.admitted(child)) if kind_of(child) is POD else child
    yield from [] if found is None else [Create(found)]


def _not_its_own(owner: Document, child: Document, there: Document) -> Iterator[Write]:
    """Yield an event if an object of the name of a child belongs to somebody else."""
    wanted, found = controller_of(child), controller_of(there)
    if wanted is not None and (found is None or found.get("uid") != wanted["uid"]):
        text = f"{describe(there)} is there already, and belongs to somebody else; delete it, or choose another name"
        yield note(owner, text)


def _stem(child: Document) -> str:
    """Return the name of a child without the five characters of the API server; some operators write the whole name at once."""
    meta = meta_of(child)
    return str(meta.get("generateName") or f"{str(meta['name']).rpartition('-')[0]}-")


def _named(view: View, child: Document, stem: str, used: Counter[str]) -> Document:
    """Return a child with a name: a number in place of the five characters that only the API server knows."""
    meta, kind = meta_of(child), kind_of(child)
    while view.find(kind, str(meta["namespace"]), name := f"{stem}{used[stem]:05d}") is not None:
        used[stem] += 1
    used[stem] += 1
    return {**child, "metadata": {**meta, "name": name}}
