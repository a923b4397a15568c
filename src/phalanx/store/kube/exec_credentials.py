"""Credentials that a command prints: how clouds and identity providers log people in (client.authentication.k8s.io).

The command runs for the first request, shortly before the printed credential expires, and when the server refuses it.
"""

import asyncio
import base64
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from phalanx.dialects.wrong_field import readable
from phalanx.errors import ConfigError
from phalanx.store.kube.credentials import Clock, Credential, bearer
from phalanx.store.kube.kubeconfig import ExecConfig, KubeconfigCluster
from phalanx.store.kube.tls import Trust

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
MODES = ("Never", "IfAvailable", "Always")
PATIENCE_SECONDS = 60.0
"""How long a command may take that is not interactive."""
BEFORE_END_SECONDS = 30.0
"""So long before its end a credential is renewed; one that holds for less than a minute, at half its time."""


class ExecCredentialStatus(msgspec.Struct, rename="camel"):
    """The status of what a command prints."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class ExecCredential(msgspec.Struct, rename="camel"):
    """What a command prints."""

    kind: str
    api_version: str
    status: ExecCredentialStatus


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints credentials, the cluster that they are for, and where it was configured."""

    spec: ExecConfig
    cluster: KubeconfigCluster
    trust: Trust
    place: str


class ExecCredentials:
    """Runs a command and remembers what it printed for as long as that holds."""

    def __init__(self, plugin: ExecPlugin, *, clock: Clock = time.time, is_terminal: bool | None = None) -> None:
        """Check the command; it does not run yet. On a terminal it may ask questions, unless its configuration forbids it."""
        self._plugin, self._clock = plugin, clock
        terminal = sys.stdin is not None and sys.stdin.isatty() if is_terminal is None else is_terminal
        self._may_ask = terminal and plugin.spec.interactive_mode != "Never"
        self._credential: Credential | None = None
        self._due = float("inf")
        self._running = asyncio.Lock()
        _check(plugin)

    async def current(self) -> Credential:
        """Return what the command printed, run anew when it ends soon."""
        if self._credential is None or self._clock() >= self._due:
            async with self._running:
                if self._credential is None or self._clock() >= self._due:
                    self._credential = await self._made()
        return self._credential

    async def renew(self, refused: Credential) -> bool:
        """Let the command run again, once for all requests that were refused with the same credential."""
        if self._credential is refused:
            self._credential = None
        return True

    async def _made(self) -> Credential:
        printed, plugin = self._understood(await self._output()), self._plugin
        now, end = self._clock(), self._end(printed.expiration_timestamp)
        self._due = end - min(BEFORE_END_SECONDS, max(end - now, 0.0) / 2)
        is_safe = plugin.cluster.server.startswith("https://")
        tls = plugin.trust.context(printed.client_certificate_data, printed.client_key_data) if is_safe else None
        return Credential(bearer(printed.token) if printed.token else {}, tls)

    async def _output(self) -> bytes:
        spec = self._plugin.spec
        if spec.interactive_mode == "Always" and not self._may_ask:
            raise self._problem("asks questions (interactiveMode: Always) and there is no terminal; log in another way here")
        variables = {item.name: item.value for item in spec.env or ()}
        environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": msgspec.json.encode(self._question()).decode()}
        stdin = None if self._may_ask else asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                spec.command, *(spec.args or ()), env=environment, stdin=stdin, stdout=asyncio.subprocess.PIPE
            )
        except OSError as problem:
            hint = spec.install_hint.strip() or "install it, or name it with its path"
            raise self._problem(f"cannot be run: {problem.strerror}; {hint}") from problem
        output = await self._finished(process)
        if process.returncode != 0:
            raise self._problem(f"ended with {process.returncode}; run it by hand to see what it needs, perhaps a new login")
        return output

    async def _finished(self, process: asyncio.subprocess.Process) -> bytes:
        try:
            async with asyncio.timeout(None if self._may_ask else PATIENCE_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError as problem:
            raise self._problem(
                f"did not end within {PATIENCE_SECONDS:.0f} seconds; it must not wait for answers here"
            ) from problem
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        return output

    def _question(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": self._may_ask}
        if self._plugin.spec.provide_cluster_info:
            spec["cluster"] = _cluster_info(self._plugin)
        return {"apiVersion": self._plugin.spec.api_version, "kind": "ExecCredential", "spec": spec}

    def _understood(self, output: bytes) -> ExecCredentialStatus:
        try:
            read = msgspec.json.decode(output, type=ExecCredential)
        except msgspec.ValidationError as problem:
            raise self._problem(f"printed an ExecCredential of another shape: {readable(problem)}") from problem
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise self._problem("printed no JSON; it has to print an ExecCredential") from problem
        asked, printed = self._plugin.spec.api_version, read.status
        if (read.kind, read.api_version) != ("ExecCredential", asked):
            raise self._problem(f"printed {read.kind} of {read.api_version}; it was asked for ExecCredential of {asked}")
        if not printed.token and not (printed.client_certificate_data and printed.client_key_data):
            raise self._problem("printed neither status.token nor status.clientCertificateData with status.clientKeyData")
        return printed

    def _end(self, stamp: str) -> float:
        try:
            return datetime.fromisoformat(stamp).timestamp() if stamp else float("inf")
        except ValueError as problem:
            raise self._problem(
                f"printed status.expirationTimestamp {stamp!r}, which is no time such as 2026-01-01T12:00:00Z"
            ) from problem

    def _problem(self, what: str) -> ConfigError:
        return ConfigError(f"{self._plugin.place}: exec command {self._plugin.spec.command!r} {what}")


def _check(plugin: ExecPlugin) -> None:
    spec = plugin.spec
    if spec.api_version not in VERSIONS:
        raise ConfigError(f"{plugin.place}: exec.apiVersion: {spec.api_version!r} is not known; write {' or '.join(VERSIONS)}")
    if spec.interactive_mode not in MODES:
        raise ConfigError(f"{plugin.place}: exec.interactiveMode: {spec.interactive_mode!r} is not one of {', '.join(MODES)}")


def _cluster_info(plugin: ExecPlugin) -> dict[str, Any]:
    """Return the description of the cluster that a plugin gets."""
    cluster = plugin.cluster
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(plugin.trust.authority.encode()).decode(),
        "config": next((item.extension for item in cluster.extensions or () if item.name == f"{GROUP}/exec"), None),
    }
    return {key: value for key, value in info.items() if value}
