"""`phalanx run`: the scheduler and its controllers on a real cluster."""

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phalanx.cli import policy_options
from phalanx.cli.record_options import RecordOptions, Subject, config_typed, record_options, recorded
from phalanx.cli.shadow import recorded_profile
from phalanx.cli.trace_options import GANG_HELP, LEVELS, refuse_gangs_without_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from phalanx.controllers.controller import Controller
    from phalanx.controllers.grouper.settings import DialectName, GrouperSettings
    from phalanx.live.access_review import Reviewer
    from phalanx.live.app import Live, Setup
    from phalanx.live.logs import Form
    from phalanx.live.reload import ConfigSource
    from phalanx.live.serving import Address
    from phalanx.recording.recorder import Recorder
    from phalanx.store.kube.client import Client

CONTROLLER_SETS = {
    "volcano": ("volcano-job", "cronjob", "jobflow", "jobtemplate", "podgroup", "owned-podgroup", "queue"),
}  # fmt: skip
"""What one name in --controllers stands for: `volcano` for those that Volcano's own controllers do the work of."""
EXAMPLES = """\b
Examples:
  phalanx run --kubeconfig ~/.kube/config --scheduler-name volcano
  phalanx run --config /etc/phalanx/config.yaml --log-format json -v 2
  phalanx run --shadow --context my-cluster
"""
NAME, NAMESPACE = "phalanx", "phalanx-system"
SHORTEST_LEASE = 3.0
OWNER_PATIENCE_SECONDS = 5.0
"""Watches may show a pod before its owner, and an owner only when its kind has been discovered."""
LAST_PORT = 65535
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PLACE = re.compile(r"[^/]+/[^/]+")
IMPORTED_IN_TURN = tuple(
    f"phalanx.{name}"
    for name in (
        "model.shape", "model.gang", "model.storage", "placement.ledger", "state.snapshot", "state.cluster", "session.decision",
        "session.session", "kubernetes.volumes", "kubernetes.claims", "kubernetes.podaffinity", "kubernetes.shared_gpus",
        "actions.allocate", "actions.victim_survey", "plugins.nodeorder", "plugins.predicates", "config.builtin",
        "dialects.kinds.kai", "dialects.kinds.volcano", "dialects.cluster", "explain.answer", "config.reference",
        "controllers.controller", "controllers.volcano_job.controller", "controllers.grouper.controller", "controllers.builtin",
        "scheduling.loop", "live.app", "live.operations",
    )
)  # fmt: skip
"""What a scheduler is made of, in parts that take some ten milliseconds each to import; whatever they need comes with them."""
OF_SHADOWS = ("shadow_every", "recorded_profile")
OPTION_BY_NAME = {
    "leader_elect": "--leader-elect", "lease_name": "--lease-name", "lease_namespace": "--lease-namespace",
    "lease_duration": "--lease-duration", "authentication": "--authentication", "controllers": "--controllers",
    "group_as": "--group-as", "group_defaults": "--group-defaults", "levels": "--hypernode-level",
    "reservation_image": "--reservation-image", "placeholder_image": "--placeholder-image", "pod_events": "--pod-events",
    "keeps_nodes": "--keep-nominated-nodes", "gangs": "--gang", "shadow_every": "--shadow-every",
    "recorded_profile": "--recorded-profile",
}  # fmt: skip
"""Options that only a shadow has, or only a scheduler that writes, by the names of their parameters."""
SHADOW_HELP = "Write nothing: watch what other schedulers do, and compare it with what we would have done."
DIALECTS = ("kai", "volcano", "coscheduling", "koordinator", "native")


@click.command(epilog=EXAMPLES)
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig; by default $KUBECONFIG, ~/.kube/config or the service account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; the current one by default.")
@policy_options.config
@policy_options.profile
@policy_options.gates
@click.option(
    "--scheduler-name", "names", multiple=True, default=(NAME,), show_default=True, metavar="NAME",
    help="Schedule pods with this schedulerName; may be repeated.",
)  # fmt: skip
@click.option(
    "--leader-elect/--no-leader-elect", default=True, show_default=True, help="Elect one of several replicas as the leader."
)
@click.option("--lease-name", default=NAME, show_default=True, metavar="NAME", help="Name of the Lease for leader election.")
@click.option("--lease-namespace", default=NAMESPACE, show_default=True, metavar="NAME", help="Namespace of the Lease.")
@click.option(
    "--lease-duration", default=15.0, show_default=True, metavar="SECONDS", help="Silence after which another replica takes over."
)
@click.option(
    "--http", metavar="HOST:PORT", help="Address for /livez, /readyz, /metrics, /configz and the page at /ui/; off by default."
)
@click.option(
    "--tls-cert-file", metavar="FILE", help="Certificate for --http in PEM, read again when it changes; no TLS by default."
)
@click.option("--tls-private-key-file", metavar="FILE", help="Private key of --tls-cert-file in PEM.")
@click.option(
    "--authentication", type=click.Choice(["none", "token"]), default="none", show_default=True,
    help="Who may read /metrics, /configz and the page: everybody, or whoever the API server allows by a token. Probes are always "
    "open. Without tokens the page is served to this machine alone.",
)  # fmt: skip
@click.option("-v", "--verbosity", type=click.IntRange(0, 9), default=1, show_default=True, metavar="N", help="Log verbosity.")
@click.option("--gang", "gangs", multiple=True, metavar="NAMESPACE/NAME", help=GANG_HELP)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Log format.")
@click.option(
    "--controllers", default="*", show_default=True, metavar="NAMES",
    help="Comma-separated controllers to run: '*' for all, NAME for one, -NAME for all but one; empty for none. "
    "'volcano' stands for all that Volcano's own controllers replace.",
)  # fmt: skip
@click.option(
    "--group-as", type=click.Choice(DIALECTS), default=DIALECTS[0], show_default=True,
    help="Dialect of the PodGroups created for pods that are grouped by their owners, such as PyTorchJobs.",
)  # fmt: skip
@click.option(
    "--group-defaults", metavar="NAMESPACE/NAME", default="",
    help="ConfigMap with the default priority class and preemptibility per kind of owner; none by default.",
)  # fmt: skip
@click.option(
    "--hypernode-level", "levels", multiple=True, metavar="LABEL",
    help="Create HyperNodes from this node label; may be repeated, from the narrowest level to the widest. None by default.",
)  # fmt: skip
@click.option(
    "--reservation-image", metavar="IMAGE",
    help="Image of the pods that reserve shared GPUs; phalanx:VERSION by default.",
)  # fmt: skip
@click.option(
    "--placeholder-image", metavar="IMAGE",
    help="Image of the placeholder pods of YuniKorn applications; a pause image by default.",
)  # fmt: skip
@click.option(
    "--keep-nominated-nodes", "keeps_nodes", is_flag=True,
    help="Keep Cluster Autoscaler and Karpenter from removing nodes that gangs are nominated to; needs permission to patch nodes.",
)  # fmt: skip
@record_options
@click.option("--shadow", is_flag=True, help=SHADOW_HELP)
@click.option(
    "--shadow-every", type=policy_options.Duration(), default="5m", show_default=True, metavar="DURATION",
    help="With --shadow, how often both worlds are computed.",
)  # fmt: skip
@recorded_profile
@click.option("--pod-events/--no-pod-events", default=True, show_default=True, help="Record an event for every pod that is bound.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Schedule the gangs of a Kubernetes cluster until SIGTERM or Ctrl-C.

    Watches the cluster, runs a scheduling session after every relevant change, and carries out its decisions: binds, evictions,
    status updates and events. It reads every kind of group that the API server serves. Of several replicas one is the leader;
    the others take over when it fails.

    With --shadow, other schedulers schedule and nothing is written: what they do is watched and recorded, and compared with what
    we would have done. 'phalanx shadow report' shows it.
    """
    import asyncio

    from phalanx.live.garbage import look_seldom_at_start

    asked = RunOptions(**options)
    typed = {name for name in options if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT}
    asked.refuse_clashes()
    asked.refuse_clashes_with_shadow(typed)
    look_seldom_at_start()
    if asked.shadow:
        from phalanx.cli.run_shadow import run_shadow

        asyncio.run(run_shadow(asked, asked.names if "names" in typed else ()))
    else:
        asyncio.run(_run(asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(RecordOptions):
    """What was typed."""

    kubeconfig: str | None
    context: str | None
    config: str | None
    profile: str | None
    gates: tuple[str, ...]
    names: tuple[str, ...]
    leader_elect: bool
    lease_name: str
    lease_namespace: str
    lease_duration: float
    http: str | None
    tls_cert_file: str | None
    tls_private_key_file: str | None
    authentication: str
    verbosity: int
    gangs: tuple[str, ...]
    log_format: "Form"
    controllers: str
    group_as: "DialectName"
    group_defaults: str
    levels: tuple[str, ...]
    reservation_image: str | None
    placeholder_image: str | None
    pod_events: bool
    keeps_nodes: bool = False
    shadow: bool = False
    shadow_every: float = 300.0
    recorded_profile: str | None = None

    def refuse_clashes_with_shadow(self, typed: "Collection[str]") -> None:
        """Refuse what only a scheduler that writes can do, and what only a shadow can."""
        if not self.shadow and (wrong := [OPTION_BY_NAME[name] for name in OF_SHADOWS if name in typed]):
            raise click.UsageError(f"{wrong[0]}: is for a shadow; add --shadow")
        if self.shadow and (wrong := [OPTION_BY_NAME[name] for name in OPTION_BY_NAME if name in typed and name not in OF_SHADOWS]):
            raise click.UsageError(f"{wrong[0]}: a shadow writes nothing to the cluster; leave it out")

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        policy_options.refuse_two_policies(self.config, self.profile)
        if self.lease_duration < SHORTEST_LEASE:
            raise click.UsageError(f"--lease-duration: leases are renewed every few seconds; write {SHORTEST_LEASE:g} or more")
        if self.config == "-":
            raise click.UsageError("--config: the configuration is read again when it changes; name a file instead of '-'")
        if self.group_defaults and not PLACE.fullmatch(self.group_defaults):
            raise click.UsageError(f"--group-defaults: {self.group_defaults!r} is no place; write for example {NAMESPACE}/groups")
        refuse_gangs_without_trace(self.gangs, is_traced=self.verbosity >= int(LEVELS[0]))
        self._refuse_unsafe_port()
        if not all(self.names):
            raise click.UsageError("--scheduler-name: empty; write what pods have as spec.schedulerName, for example volcano")

    def _refuse_unsafe_port(self) -> None:
        """Refuse half of a certificate, options without a port, and tokens that everybody could read on their way."""
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            raise click.UsageError("--tls-cert-file and --tls-private-key-file: a certificate and its key go together; name both")
        has_tls, has_tokens = bool(self.tls_cert_file), self.authentication != "none"
        if (has_tls or has_tokens) and not self.http:
            raise click.UsageError("--tls-cert-file and --authentication: nothing is served; add --http HOST:PORT")
        if has_tokens and not has_tls and self._host() not in LOOPBACK:
            raise click.UsageError(
                "--authentication token: tokens would be sent in the clear; add --tls-cert-file and --tls-private-key-file, "
                "or serve on 127.0.0.1"
            )

    def _host(self) -> str:
        return (self.http or "").rpartition(":")[0].strip("[]") or "0.0.0.0"

    def address(self, reviewer: "Reviewer") -> "Address | None":
        """Return where to serve, and how; `reviewer` is asked about tokens."""
        if not self.http:
            return None
        import time
        from pathlib import Path

        from phalanx.live.access_review import AccessReview
        from phalanx.live.serving import Address
        from phalanx.live.serving_certificate import ServingCertificate

        port, cert, key = self.http.rpartition(":")[2], self.tls_cert_file, self.tls_private_key_file
        if not port.isdigit() or int(port) > LAST_PORT:
            raise click.UsageError(f"--http: {self.http!r} is no address; write for example 0.0.0.0:8080")
        certificate = ServingCertificate(Path(cert), Path(key)) if cert and key else None
        review = None if self.authentication == "none" else AccessReview(reviewer, time.monotonic)
        return Address(self._host(), int(port), certificate, review)


async def _run(asked: RunOptions) -> None:
    from phalanx.model.kinds import NODE, POD
    from phalanx.store.kube.connect import access

    async with access(asked.kubeconfig or "", asked.context or "").client(is_frugal=True) as client:
        client.read_ahead(POD, NODE)  # by far the longest lists; the server makes them while we import
        await _import_in_steps()
        await _schedule(asked, client)


async def _import_in_steps() -> None:
    """Import what a scheduler is made of; between two steps, answers that have come are taken in."""
    import asyncio
    from importlib import import_module

    for name in IMPORTED_IN_TURN:
        import_module(name)
        await asyncio.sleep(0)


async def _schedule(asked: RunOptions, client: "Client") -> None:
    import asyncio
    import logging
    import signal

    from phalanx.cli.run_page import with_page
    from phalanx.config.reference import in_full
    from phalanx.live.app import Live
    from phalanx.live.logs import logger_of, logging_started
    from phalanx.live.operations import Operations

    source, address = _config_source(asked), asked.address(client)
    is_over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, is_over.set)
    logger = logger_of("run")

    def report(text: str) -> None:
        logger.log(logging.WARNING, "%s", text)

    with logging_started(asked.verbosity, asked.log_format):
        live = Live(client, _setup(asked, source), report=report)
        address = with_page(address, asked, live, client)
        operations = Operations(
            live, config=source, describe=in_full, traced_gangs=asked.gangs, is_served=address is not None
        )  # fmt: skip
        with _recorded(asked, live, source, report) as recorder:
            if recorder is not None and address is not None:
                operations.measuring.metrics.recorded_by(recorder.writer)
            await operations.run(address, is_over)
        if recorder is not None:
            written, seconds = recorder.writer.written_bytes / 1024, recorder.writer.cpu_seconds
            logger.log(logging.INFO, "recorded %.0f KiB in %s with %.3f s of processor time", written, asked.record, seconds)


@contextmanager
def _recorded(
    asked: RunOptions, live: "Live", source: "ConfigSource | None", report: "Callable[[str], None]"
) -> "Iterator[Recorder | None]":
    """Record inside the block, if that was asked for, also when the configuration changes."""
    subject = Subject(
        "run", live.cache, live.mirror.everything, lambda: live.clock.now, live.loop, live.gates.planner,
        live.watching.has_synced.is_set,
    )  # fmt: skip
    with recorded(asked, subject, config_typed(asked.config, asked.profile, asked.gates), report=report) as recorder:
        if recorder is not None:
            live.turned.append(recorder.turn)
            _begin_when_synced(live, recorder)
        if recorder is not None and source is not None:
            follow = recorder.configure
            source.on_reload.append(
                lambda outcome: follow(config_typed(asked.config, None, asked.gates)) if outcome.is_applied else None
            )
        yield recorder


def _begin_when_synced(live: "Live", recorder: "Recorder") -> None:
    """Begin the recording as soon as everything is listed, before the first session."""
    import asyncio

    on_synced = live.watching.on_synced

    def begin() -> None:
        on_synced()
        asyncio.get_running_loop().call_soon(recorder.turn)  # by then it counts as synced, and nobody has acted on that yet

    live.watching.on_synced = begin


def _config_source(asked: RunOptions) -> "ConfigSource | None":
    """Return the file of the configuration, which is read again when it changes; None where a profile decides."""
    from pathlib import Path

    from phalanx.config.policies import policy_of_text, with_gates
    from phalanx.live.reload import ConfigSource

    path = asked.config
    return None if path is None else ConfigSource(Path(path), lambda text: with_gates(policy_of_text(text, path), asked.gates))


def _setup(asked: RunOptions, source: "ConfigSource | None") -> "Setup":
    from phalanx.config.policies import DEFAULT_PROFILE, policy_of_gates, policy_of_profile, with_gates
    from phalanx.controllers.binder.reservation_pod import IMAGE
    from phalanx.controllers.builtin import ControllerSettings, standard_controllers
    from phalanx.controllers.grouper.group_spec import CONFIG_MAP
    from phalanx.controllers.placeholders import IMAGE as PAUSE_IMAGE
    from phalanx.live.app import Setup
    from phalanx.live.catalogue import connected
    from phalanx.live.election import Terms
    from phalanx.live.garbage import look_seldom
    from phalanx.live.sshkeys import new_pair
    from phalanx.model.kinds import split_key

    policy = source.policy if source is not None else policy_of_profile(asked.profile or DEFAULT_PROFILE)
    policy = with_gates(policy, asked.gates)
    profile = connected(policy)
    chosen = ControllerSettings(
        schedulers=frozenset(asked.names), scheduler=(policy, profile.catalogue), hypernode_levels=asked.levels,
        grouper=_grouper(asked), reservation_image=asked.reservation_image or IMAGE,
        placeholder_image=asked.placeholder_image or PAUSE_IMAGE, own_schedulers=frozenset(asked.names),
    )  # fmt: skip
    identity = _identity()
    third = asked.lease_duration / 15.0
    return Setup(
        profile=profile, gates=connected(policy_of_gates(policy)),
        controllers=_chosen(asked.controllers, standard_controllers(new_pair, chosen, has_admission=policy.has_admission)),
        single={CONFIG_MAP: split_key(asked.group_defaults)} if asked.group_defaults else {},
        schedulers=frozenset(asked.names), identity=identity, has_pod_events=asked.pod_events,
        keeps_nodes=asked.keeps_nodes,
        terms=Terms(asked.lease_name, asked.lease_namespace, identity, asked.lease_duration, 10 * third, 2 * third)
        if asked.leader_elect else None,
        on_synced=look_seldom,
    )  # fmt: skip


def _grouper(asked: RunOptions) -> "GrouperSettings":
    """Return whose pods are grouped by their owners: ours, but Volcano's as Volcano does it."""
    from phalanx.controllers.grouper.settings import KAI, OWN, VOLCANO, GrouperSettings

    ours = tuple(dict.fromkeys((OWN, *(name for name in asked.names if name not in (KAI, VOLCANO)))))
    return GrouperSettings(
        dialect=asked.group_as, scheduler_names=(KAI, *ours), workload_scheduler_names=ours,
        owner_patience_seconds=OWNER_PATIENCE_SECONDS, defaults_config_map=asked.group_defaults,
    )  # fmt: skip


def _chosen(names: str, controllers: "Sequence[Controller]") -> "Sequence[Controller]":
    """Return the controllers that the option --controllers names."""
    from phalanx.errors import ConfigError

    asked = [part for name in names.split(",") if name.strip() for part in _expanded(name.strip())]
    known = {controller.name for controller in controllers}
    for name in asked:
        if name != "*" and name.removeprefix("-") not in known:
            names_known = ", ".join(sorted({*known, *CONTROLLER_SETS}))
            raise ConfigError(f"--controllers: no controller is called {name!r}; write some of {names_known}, or *")
    has_all = "*" in asked or (bool(asked) and all(name.startswith("-") for name in asked))
    return [item for item in controllers if f"-{item.name}" not in asked and (has_all or item.name in asked)]


def _expanded(name: str) -> list[str]:
    """Return the controllers that one name stands for, each with its sign."""
    sign, bare = ("-", name[1:]) if name.startswith("-") else ("", name)
    return [f"{sign}{each}" for each in CONTROLLER_SETS.get(bare, (bare,))]


def _identity() -> str:
    import os
    import socket
    from uuid import uuid4

    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid4()}"
