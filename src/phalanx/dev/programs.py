"""The programs of a control plane, operators and rivals: which versions, from which Go module, and where their binaries are kept.

Binaries are kept by version outside of the clone, in ``$XDG_CACHE_HOME/phalanx/bin``, so that every clone and every run shares
them. The modules that pin everything each program is made of are in tests/controlplane, tests/operators and tests/rivals; a test
holds their versions against these.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from phalanx.errors import ConfigError

KUBERNETES, ETCD, KWOK, HELM = "v1.36.3", "v3.6.8", "v0.8.0", "v3.19.0"
KUBERAY, TRAINING = "v1.4.2", "v1.8.1"
JOBSET, LWS, MPI, KUEUE, TRAINER = "v0.8.1", "v0.7.0", "v0.6.0", "v0.10.1", "v2.0.0"
VOLCANO, SCHEDULER_PLUGINS = "v1.10.0", "v0.31.8"
CLUSTER_AUTOSCALER = "v0.0.0-20250613073258-1959f5f61f6c"
"""Of 1.33.0: the module of Cluster Autoscaler has no versions of its own."""
OLD_KUBERNETES = "v1.31.0"
"""The oldest release that live tests run on; `KUBERNETES` is the newest."""
KUBERNETES_RELEASES = (OLD_KUBERNETES, KUBERNETES)


@dataclass(frozen=True, slots=True)
class Program:
    """One program: its Go package, the folder of the module that pins it, and the variables its version is written to."""

    name: str
    version: str
    module: str
    package: str
    stamps: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    """Files of the package's own module that are kept beside the binary."""
    tags: tuple[str, ...] = ()
    """Build tags, for programs that would else be made of more than is needed."""


def _kubernetes(name: str, release: str = KUBERNETES) -> Program:
    major, minor, _ = release.removeprefix("v").split(".")
    values = {"gitVersion": release, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = tuple((f"k8s.io/component-base/version.{key}", value) for key, value in values.items())
    module = f"controlplane/kubernetes{'' if release == KUBERNETES else f'-{major}.{minor}'}"
    return Program(of_release(name, release), release, module, f"k8s.io/kubernetes/cmd/{name}", stamps)


def of_release(name: str, release: str) -> str:
    """Return what a part of Kubernetes is called here in some release: the newest needs no number."""
    return name if release == KUBERNETES else f"{name}-{release.removeprefix('v').rpartition('.')[0]}"


STAGES = (
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
)
_BUILT = (
    Program("etcd", ETCD, "controlplane/etcd", "go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubectl"),
    Program("kwok", KWOK, "controlplane/kwok", "sigs.k8s.io/kwok/cmd/kwok", files=STAGES),
    Program("helm", HELM, "controlplane/helm", "helm.sh/helm/v3/cmd/helm", (("helm.sh/helm/v3/internal/version.version", HELM),)),
)
_OPERATORS = (
    Program(
        "kuberay", KUBERAY, "operators/kuberay", "github.com/ray-project/kuberay/ray-operator",
        files=tuple(f"config/crd/bases/ray.io_{name}.yaml" for name in ("rayclusters", "rayjobs", "rayservices")),
    ),
    Program(
        "training-operator", TRAINING, "operators/training", "github.com/kubeflow/training-operator/cmd/training-operator.v1",
        files=("manifests/base/crds/kubeflow.org_pytorchjobs.yaml",),
    ),
)  # fmt: skip
"""Real operators whose pods tests schedule, each with its definitions."""
OPERATORS = tuple(program.name for program in _OPERATORS)
_MORE_OPERATORS = (
    Program(
        "jobset", JOBSET, "operators/jobset", "sigs.k8s.io/jobset",
        files=("config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml", "config/components/webhook/manifests.yaml"),
    ),
    Program(
        "lws", LWS, "operators/lws", "sigs.k8s.io/lws/cmd",
        files=("config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml", "config/webhook/manifests.yaml"),
    ),
    Program(
        "mpi-operator", MPI, "operators/mpi", "github.com/kubeflow/mpi-operator/cmd/mpi-operator",
        files=("manifests/base/kubeflow.org_mpijobs.yaml",),
    ),
    Program(
        "vc-controller-manager", VOLCANO, "rivals/volcano", "volcano.sh/volcano/cmd/controller-manager",
        files=(
            *(f"config/crd/volcano/bases/{name}.yaml" for name in (
                "batch.volcano.sh_jobs", "bus.volcano.sh_commands", "nodeinfo.volcano.sh_numatopologies",
                "scheduling.volcano.sh_podgroups", "scheduling.volcano.sh_queues",
            )),
            *(f"config/crd/jobflow/bases/flow.volcano.sh_{name}.yaml" for name in ("jobflows", "jobtemplates")),
        ),
    ),
    Program(
        "kueue", KUEUE, "operators/kueue", "sigs.k8s.io/kueue/cmd/kueue",
        files=(
            *(f"config/components/crd/bases/kueue.x-k8s.io_{name}.yaml" for name in (
                "admissionchecks", "clusterqueues", "cohorts", "localqueues", "multikueueclusters", "multikueueconfigs",
                "provisioningrequestconfigs", "resourceflavors", "topologies", "workloadpriorityclasses", "workloads",
            )),
            "config/components/webhook/manifests.yaml",
        ),
    ),
    Program(
        "trainer", TRAINER, "operators/trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
        files=(
            *(f"manifests/base/crds/trainer.kubeflow.org_{name}.yaml" for name in (
                "clustertrainingruntimes", "trainingruntimes", "trainjobs",
            )),
            "manifests/base/webhook/manifests.yaml",
        ),
    ),
)  # fmt: skip
"""Operators whose tests are left out where they are not built, each with its definitions and webhooks."""
MORE_OPERATORS = tuple(program.name for program in _MORE_OPERATORS)
_AUTOSCALERS = (
    Program(
        "cluster-autoscaler", CLUSTER_AUTOSCALER, "operators/autoscaler", "k8s.io/autoscaler/cluster-autoscaler", tags=("kwok",),
    ),
)  # fmt: skip
"""Autoscalers beside which tests schedule, with the cloud provider whose machines are nodes of kwok."""
AUTOSCALERS = tuple(program.name for program in _AUTOSCALERS)
_RIVALS = (
    Program(
        "vc-scheduler", VOLCANO, "rivals/volcano", "volcano.sh/volcano/cmd/scheduler",
        files=(
            "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml",
            "config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml",
            "config/crd/volcano/bases/nodeinfo.volcano.sh_numatopologies.yaml",
            "installer/helm/chart/volcano/config/volcano-scheduler.conf",
        ),
    ),
    Program(
        "coscheduling", SCHEDULER_PLUGINS, "rivals/coscheduling", "sigs.k8s.io/scheduler-plugins/cmd/scheduler",
        files=("config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",),
    ),
)  # fmt: skip
"""Schedulers of others that benchmarks run beside ours, each with its definitions; only `make race` needs them."""
RIVALS = tuple(program.name for program in _RIVALS)
_OLD = (_kubernetes("kube-apiserver", OLD_KUBERNETES), _kubernetes("kube-controller-manager", OLD_KUBERNETES))
"""What an old control plane has instead of the newest; only `make versions` needs them."""
OLD = tuple(program.name for program in _OLD)
PROGRAMS = {program.name: program for program in (*_BUILT, *_OPERATORS, *_MORE_OPERATORS, *_AUTOSCALERS, *_RIVALS, *_OLD)}
USUAL = tuple(name for name in PROGRAMS if name not in (*MORE_OPERATORS, *AUTOSCALERS, *RIVALS, *OLD))
"""What is built by default."""
ALL_OPERATORS = (*OPERATORS, *MORE_OPERATORS)
NEIGHBOURS = (*ALL_OPERATORS, *AUTOSCALERS)
"""What `make operators` runs Phalanx beside."""


def folder() -> Path:
    """Return where binaries are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "phalanx" / "bin"


def path_of(name: str) -> Path:
    """Return where the binary of a program is, or will be."""
    return folder() / f"{name}-{PROGRAMS[name].version}"


def files_of(name: str) -> Path:
    """Return the folder of the files that are kept beside a binary."""
    return folder() / f"{name}-{PROGRAMS[name].version}.files"


def is_built(name: str) -> bool:
    """Tell whether a binary is there, and what belongs to it."""
    return path_of(name).exists() and all((files_of(name) / Path(file).name).exists() for file in PROGRAMS[name].files)


def require(*names: str) -> None:
    """Refuse to go on without the binaries of some programs."""
    missing = [name for name in names if not is_built(name)]
    if missing:
        raise ConfigError(f"{folder()}: no {', '.join(missing)} yet; run 'make controlplane' in a clone of Phalanx, once")
