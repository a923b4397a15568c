"""From a kubeconfig or a service account to an answer of the server, over real connections."""

import asyncio
import base64
import json
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
import yaml

from phalanx.errors import ConfigError, Unauthorized, Unreachable
from phalanx.store.kube.connect import ClusterAccess, access, by_kubeconfig, in_cluster, kubeconfig_paths
from phalanx.store.kube.credentials import TOKEN_SECONDS, TokenFileCredentials
from phalanx.store.kube.exec_credentials import ExecCredentials, ExecPlugin
from phalanx.store.kube.kubeconfig import ExecConfig, KubeconfigCluster, choose
from phalanx.store.kube.tls import Trust
from tests.support.tiny_servers import Door, opened

AUTHORITY = trustme.CA()
V1 = "client.authentication.k8s.io/v1"


def kubeconfig(path: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None, **context: str) -> Path:
    """Write a kubeconfig with one context."""
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **context}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def encoded(blob: trustme.Blob) -> str:
    return base64.b64encode(blob.bytes()).decode()


def certificate(name: str) -> trustme.LeafCert:
    return AUTHORITY.issue_cert(f"{name}@example.org", common_name=name)


def guarded(host: str = "127.0.0.1") -> ssl.SSLContext:
    """Return the side of a server that shows a certificate and looks at those of others."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert(host).configure_cert(tls)
    AUTHORITY.configure_trust(tls)
    tls.verify_mode = ssl.CERT_OPTIONAL
    return tls


def who(door: Door, reach: Callable[[int], ClusterAccess], tls: ssl.SSLContext | None = None) -> str:
    """Ask a door who we are."""

    async def asked() -> str:
        async with opened(door, tls) as port, reach(port).client() as client:
            return str((await client.version())["who"])

    return asyncio.run(asked())


# --- certificates --------------------------------------------------------------------------------------------------------


def safe(tmp_path: Path, user: dict[str, Any] | None = None, **cluster: Any) -> Callable[[int], ClusterAccess]:
    trusted = {"certificate-authority-data": encoded(AUTHORITY.cert_pem), **cluster}

    def reach(port: int) -> ClusterAccess:
        return by_kubeconfig([kubeconfig(tmp_path / "config", {"server": f"https://127.0.0.1:{port}", **trusted}, user)])

    return reach


def test_an_authority_and_a_certificate_in_the_file(tmp_path: Path) -> None:
    ann = certificate("ann")
    user = {
        "client-certificate-data": encoded(ann.cert_chain_pems[0]),
        "client-key-data": encoded(ann.private_key_pem),
    }
    assert who(Door(), safe(tmp_path, user), guarded()) == "certificate of ann"


def test_an_authority_and_a_certificate_in_files_beside_it(tmp_path: Path) -> None:
    ann = certificate("ann")
    AUTHORITY.cert_pem.write_to_path(tmp_path / "ca.pem")
    ann.cert_chain_pems[0].write_to_path(tmp_path / "ann.pem")
    ann.private_key_pem.write_to_path(tmp_path / "ann.key")
    user = {"client-certificate": "ann.pem", "client-key": "ann.key"}
    reach = safe(tmp_path, user, **{"certificate-authority-data": "", "certificate-authority": "ca.pem"})
    assert who(Door(), reach, guarded()) == "certificate of ann"


def test_a_server_of_another_authority_is_not_asked(tmp_path: Path) -> None:
    reach = safe(tmp_path, {"token": "secret"}, **{"certificate-authority-data": encoded(trustme.CA().cert_pem)})
    door = Door()
    with pytest.raises(Unreachable, match="certificate verify failed"):
        who(door, reach, guarded())
    assert door.seen == []


def test_a_server_of_another_name_is_asked_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="certificate verify failed"):
        who(Door(), safe(tmp_path), guarded("api.example.org"))
    assert who(Door(), safe(tmp_path, None, **{"tls-server-name": "api.example.org"}), guarded("api.example.org")) == ""


def test_a_cluster_whose_certificate_is_not_checked_is_trusted(tmp_path: Path) -> None:
    blind = {"certificate-authority-data": "", "insecure-skip-tls-verify": True}
    assert who(Door(), safe(tmp_path, {"token": "t"}, **blind), guarded("api.example.org")) == "Bearer t"


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        ({"client-certificate-data": "QQ=="}, "context 'here': client-key: missing; a certificate and its key go together"),
        ({"client-certificate-data": "QQ==", "client-key-data": "QQ=="}, "not a certificate with its key in PEM"),
        ({"client-certificate-data": "%"}, "context 'here': client-certificate-data: not base64"),
        ({"client-certificate": "none.pem"}, "none.pem: No such file or directory; name a file in PEM"),
    ],
)
def test_certificates_that_cannot_be_used_are_named(tmp_path: Path, user: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        safe(tmp_path, user)(1)
    assert str(refused.value).startswith(f"{tmp_path / 'config'}: context 'here': ")
    assert sentence in str(refused.value)


def test_a_key_with_a_password_does_not_ask_for_it(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    ann = certificate("ann")
    key = serialization.load_pem_private_key(ann.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    )
    user = {
        "client-certificate-data": encoded(ann.cert_chain_pems[0]),
        "client-key-data": base64.b64encode(locked).decode(),
    }
    with pytest.raises(ConfigError, match="client-key: has a password; write the key without one"):
        safe(tmp_path, user)(1)


# --- tokens --------------------------------------------------------------------------------------------------------------


def plain(tmp_path: Path, user: dict[str, Any]) -> Callable[[int], ClusterAccess]:
    return lambda port: by_kubeconfig([kubeconfig(tmp_path / "config", {"server": f"http://127.0.0.1:{port}"}, user)])


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, ""),
        ({"token": "t"}, "Bearer t"),
        ({"username": "ann", "password": "p"}, "Basic YW5uOnA="),
        ({"token": "t", "tokenFile": "token"}, "Bearer from a file"),
    ],
)
def test_a_user_shows_what_the_file_says(tmp_path: Path, user: dict[str, Any], header: str) -> None:
    (tmp_path / "token").write_text("from a file\n")
    assert who(Door(), plain(tmp_path, user)) == header


def test_a_token_that_is_not_believed_is_an_error_after_one_request(tmp_path: Path) -> None:
    door = Door(lambda header: False)
    with pytest.raises(Unauthorized):
        who(door, plain(tmp_path, {"token": "t"}))
    assert door.seen == ["Bearer t"]


def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    now, file = [100.0], tmp_path / "token"
    tokens = TokenFileCredentials(file, clock=lambda: now[0])
    with pytest.raises(ConfigError, match="token: No such file or directory; a file with a token is needed"):
        asyncio.run(tokens.current())

    def shown() -> str:
        return asyncio.run(tokens.current()).headers["Authorization"]

    file.write_text("one")
    assert shown() == "Bearer one"
    file.write_text("two")
    now[0] += TOKEN_SECONDS - 1
    assert shown() == "Bearer one"
    now[0] += 1
    assert shown() == "Bearer two"
    file.unlink()
    now[0] += TOKEN_SECONDS
    assert shown() == "Bearer two"


def test_a_token_file_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    file, door = tmp_path / "token", Door(lambda header: header == "Bearer new")
    file.write_text("old")

    async def asked() -> None:
        async with opened(door) as port, plain(tmp_path, {"tokenFile": "token"})(port).client() as client:
            with pytest.raises(Unauthorized):
                await client.version()
            assert door.seen == ["Bearer old"]
            file.write_text("new")
            await client.version()
            assert door.seen == ["Bearer old", "Bearer old", "Bearer new"]

    asyncio.run(asked())


# --- commands ------------------------------------------------------------------------------------------------------------

PROGRAM = """
import json, os, pathlib, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
log = pathlib.Path(sys.argv[1])
log.write_text((log.read_text() if log.exists() else "") + json.dumps(asked) + chr(10))
status = json.loads(os.environ["STATUS"])
if "token" in status:
    status["token"] += str(len(log.read_text().splitlines()))
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def command(tmp_path: Path, status: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the user of a command that prints a status; its token counts how often it ran."""
    (tmp_path / "login.py").write_text(PROGRAM)
    found = {
        "apiVersion": V1,
        "command": sys.executable,
        "args": [str(tmp_path / "login.py"), str(tmp_path / "log")],
        "env": [{"name": "STATUS", "value": json.dumps(status)}],
        "interactiveMode": "Never",
        **more,
    }
    return {"exec": found}


def runs(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
def test_a_command_prints_the_token_once_for_many_requests(tmp_path: Path, version: str) -> None:
    door = Door()

    async def asked() -> None:
        user = command(tmp_path, {"token": "t"}, apiVersion=version)
        async with opened(door) as port, plain(tmp_path, user)(port).client() as client:
            await asyncio.gather(*(client.version() for _ in range(5)))

    asyncio.run(asked())
    assert door.seen == ["Bearer t1"] * 5
    assert runs(tmp_path) == [{"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}]


def test_a_command_runs_again_when_its_token_is_refused(tmp_path: Path) -> None:
    door = Door(lambda header: header == "Bearer t2")
    assert who(door, plain(tmp_path, command(tmp_path, {"token": "t"}))) == "Bearer t2"
    assert door.seen == ["Bearer t1", "Bearer t2"]


def test_many_refusals_of_one_token_run_the_command_once(tmp_path: Path) -> None:
    door = Door(lambda header: header == "Bearer t2")

    async def asked() -> None:
        async with opened(door) as port, plain(tmp_path, command(tmp_path, {"token": "t"}))(port).client() as client:
            await asyncio.gather(*(client.version() for _ in range(5)))

    asyncio.run(asked())
    assert len(runs(tmp_path)) == 2


def test_a_command_runs_again_before_its_token_ends(tmp_path: Path) -> None:
    now, end = [0.0], "1970-01-01T01:00:00Z"
    spec = command(tmp_path, {"token": "t", "expirationTimestamp": end})["exec"]
    order = ExecPlugin(read_exec(spec), KubeconfigCluster(server="http://127.0.0.1:1"), Trust(), "here")
    credentials = ExecCredentials(order, clock=lambda: now[0])

    def shown(moment: float) -> str:
        now[0] = moment
        return asyncio.run(credentials.current()).headers["Authorization"]

    assert [shown(moment) for moment in (0, 3569, 3570)] == ["Bearer t1", "Bearer t1", "Bearer t2"]


def read_exec(spec: dict[str, Any]) -> ExecConfig:
    return msgspec.convert(spec, ExecConfig)


def test_a_command_prints_a_certificate(tmp_path: Path) -> None:
    bob = certificate("bob")
    status = {
        "clientCertificateData": bob.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": bob.private_key_pem.bytes().decode(),
    }
    assert who(Door(), safe(tmp_path, command(tmp_path, status)), guarded()) == "certificate of bob"


def test_a_command_is_told_about_its_cluster_if_it_wants_to_know(tmp_path: Path) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
    reach = safe(tmp_path, command(tmp_path, {"token": "t"}, provideClusterInfo=True), extensions=[extension])
    who(Door(), reach, guarded())
    (asked,) = runs(tmp_path)
    told = asked["spec"]["cluster"]
    assert told.pop("server").startswith("https://127.0.0.1:")
    assert told == {"certificate-authority-data": encoded(AUTHORITY.cert_pem), "config": {"audience": "us"}}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"command": "no-such-login"}, "exec command 'no-such-login' cannot be run: No such file or directory; install it"),
        (
            {"command": "no-such-login", "installHint": "Get it at example.org"},
            "cannot be run: No such file or directory; Get it at example.org",
        ),
        ({"command": "false", "args": []}, "exec command 'false' ended with 1; run it by hand"),
        ({"command": "true", "args": []}, "exec command 'true' printed no JSON; it has to print an ExecCredential"),
        (
            {"command": "echo", "args": ['{"kind": "ExecCredential"}']},
            "printed an ExecCredential of another shape: apiVersion: missing",
        ),
        (
            {"command": "echo", "args": [json.dumps({"kind": "Pod", "apiVersion": "v1", "status": {}})]},
            f"printed Pod of v1; it was asked for ExecCredential of {V1}",
        ),
        ({"env": [{"name": "STATUS", "value": "{}"}]}, "printed neither status.token nor status.clientCertificateData"),
        (
            {"env": [{"name": "STATUS", "value": '{"token": "t", "expirationTimestamp": "soon"}'}]},
            "printed status.expirationTimestamp 'soon', which is no time such as",
        ),
        ({"interactiveMode": "Always"}, "asks questions (interactiveMode: Always) and there is no terminal"),
        ({"interactiveMode": "Perhaps"}, "exec.interactiveMode: 'Perhaps' is not one of Never, IfAvailable, Always"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, f"v1alpha1' is not known; write {V1} or {V1}beta1"),
        ({"args": None, "command": None}, "user 'u': exec.command: missing"),
    ],
)
def test_a_command_that_does_not_do_it_is_named(tmp_path: Path, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        who(Door(), plain(tmp_path, command(tmp_path, {"token": "t"}, **more)))
    assert str(tmp_path / "config") in str(refused.value)
    assert sentence in str(refused.value)


# --- files and contexts --------------------------------------------------------------------------------------------------


def test_of_several_files_the_first_that_says_something_is_taken(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "config", tmp_path / "b" / "config"
    for path in (first, second):
        path.parent.mkdir()
    first.write_text(
        yaml.safe_dump({"contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}]})
    )
    kubeconfig(second, {"server": "https://127.0.0.1:6443"}, {"tokenFile": "token"}, namespace="theirs")
    choice = choose([tmp_path / "missing", first, second], may_miss=True)
    assert (choice.namespace, choice.cluster.server) == ("mine", "https://127.0.0.1:6443")
    assert choice.user.token_file == str(tmp_path / "b" / "token")


def test_a_context_that_is_named_comes_before_the_current_one(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", {"server": "http://127.0.0.1:1"})
    document = yaml.safe_load(path.read_text())
    document["clusters"].append({"name": "d", "cluster": {"server": "http://127.0.0.1:2"}})
    document["contexts"].append({"name": "there", "context": {"cluster": "d"}})
    path.write_text(yaml.safe_dump(document))
    assert by_kubeconfig([path]).server == "http://127.0.0.1:1"
    assert by_kubeconfig([path], "there").server == "http://127.0.0.1:2"


def test_a_broken_entry_disturbs_only_those_who_use_it(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", {"server": "http://127.0.0.1:1"})
    document = yaml.safe_load(path.read_text())
    document["users"] += ["nobody", {"name": "v", "user": {"token": 7}}]
    document["contexts"].append({"name": "there", "context": {"cluster": "c", "user": "v"}})
    path.write_text(yaml.safe_dump(document))
    assert by_kubeconfig([path]).server == "http://127.0.0.1:1"
    with pytest.raises(ConfigError, match="config: user 'v': token: expected `str`, got `int`"):
        by_kubeconfig([path], "there")


def test_a_context_without_any_kubeconfig_says_that_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"/config: no such file; name a kubeconfig with --kubeconfig or \$KUBECONFIG$"):
        access(context="prod", environment={"KUBECONFIG": str(tmp_path / "config")})


@pytest.mark.parametrize(
    ("text", "context", "sentence"),
    [
        ("{", "", "config: no YAML, line "),
        ("[]", "", "config: not a kubeconfig; it has to say clusters, users and contexts"),
        ("", "", "config: no current-context; name a context with --context (known: none)"),
        ("contexts: [{name: prod}, {name: test}]", "", "name a context with --context (known: prod, test)"),
        ("contexts: [{name: prod}]", "prodd", "config: no context 'prodd'; did you mean 'prod'?"),
        ("contexts: [{name: prod}]", "xyz", "config: no context 'xyz'; known: prod"),
        ("contexts: [{name: prod}]", "prod", "config: context 'prod': cluster: missing; name one of the clusters"),
        ("contexts: [{name: prod, context: {cluster: c}}]", "prod", "config: context 'prod': no cluster 'c'; known: none"),
        (
            "{contexts: [{name: p, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: 'http://x'}}]}",
            "p",
            "config: context 'p': no user 'u'; known: none",
        ),
        (
            "{contexts: [{name: p, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'http://x', proxy-url: y}}]}",
            "p",
            "config: context 'p': proxy-url: proxies are not supported; remove it",
        ),
        (
            "{contexts: [{name: p, context: {cluster: c}}], clusters: [{name: c, cluster: {server: x}}]}",
            "p",
            "config: context 'p': server: 'x' is no URL; write one such as https://127.0.0.1:6443",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_in_a_sentence(tmp_path: Path, text: str, context: str, sentence: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        by_kubeconfig([path], context)
    assert str(refused.value).startswith(str(path))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("user", "word"), [({"as": "ann"}, "acting as somebody else"), ({"auth-provider": {}}, "write exec instead")]
)
def test_a_user_that_would_be_somebody_else_is_refused(tmp_path: Path, user: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        plain(tmp_path, user)(1)


def test_a_file_that_was_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none: No such file or directory; name another file with --kubeconfig"):
        access(str(tmp_path / "none"), environment={})


def test_the_environment_names_several_files_and_the_home_one() -> None:
    assert kubeconfig_paths("x", {"KUBECONFIG": "a:b"}) == [Path("x")]
    assert kubeconfig_paths("", {"KUBECONFIG": "a::b"}) == [Path("a"), Path("b")]
    assert kubeconfig_paths("", {"HOME": "/home/ann"}) == [Path("/home/ann/.kube/config")]


# --- inside a cluster ----------------------------------------------------------------------------------------------------


def account(folder: Path) -> Path:
    AUTHORITY.cert_pem.write_to_path(folder / "ca.crt")
    (folder / "token").write_text("pod")
    (folder / "namespace").write_text("phalanx-system")
    return folder


def test_a_pod_reaches_its_cluster_as_its_service_account(tmp_path: Path) -> None:
    folder = account(tmp_path)

    def reach(port: int) -> ClusterAccess:
        return in_cluster({"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}, folder)

    assert who(Door(), reach, guarded()) == "Bearer pod"
    assert reach(1).namespace == "phalanx-system"


def test_an_address_of_the_sixth_version_stands_in_brackets(tmp_path: Path) -> None:
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, account(tmp_path)).server == "https://[fd00::1]:443"


def test_outside_of_a_cluster_there_is_no_service_account(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is not set; this works inside a pod only"):
        in_cluster({}, tmp_path)
    with pytest.raises(ConfigError, match=r"no cluster: .*config is not there, and this is no pod of a cluster"):
        access(environment={"HOME": str(tmp_path)})


def test_a_file_comes_before_the_cluster_around_us(tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(tmp_path / "config"), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    kubeconfig(tmp_path / "config", {"server": "http://127.0.0.1:1"})
    assert access(environment=environment).server == "http://127.0.0.1:1"


# --- a server that moved -------------------------------------------------------------------------------------------------


def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[int], object]) -> str:
    """Ask a server that is gone, let something be written that names another one's port, and ask until that answers."""
    monkeypatch.setattr("phalanx.store.kube.client.LOST_SECONDS", 0.01)

    async def asked() -> str:
        async with opened(Door(), guarded()) as port:
            found = safe(tmp_path, {"token": "first"})(port)
        async with found.client() as client, opened(Door(), guarded()) as port:
            write(port)
            for _ in range(20):
                with suppress(Unreachable):
                    return str((await client.version())["who"])
                await asyncio.sleep(0.005)
            return "nobody"

    return asyncio.run(asked())


def test_an_address_that_was_changed_in_the_kubeconfig_is_used_once_the_server_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert moved(tmp_path, monkeypatch, lambda port: safe(tmp_path, {"token": "second"})(port)) == "Bearer second"


def test_a_kubeconfig_that_cannot_be_read_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert moved(tmp_path, monkeypatch, lambda port: (tmp_path / "config").write_text("{")) == "nobody"


def test_another_current_context_does_not_take_us_to_another_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def switch(port: int) -> None:
        document = yaml.safe_load((tmp_path / "config").read_text())
        document["current-context"] = "there"
        document["contexts"].append({"name": "there", "context": {"cluster": "d", "user": "u"}})
        other = {"certificate-authority-data": encoded(AUTHORITY.cert_pem), "server": f"https://127.0.0.1:{port}"}
        document["clusters"].append({"name": "d", "cluster": other})
        (tmp_path / "config").write_text(yaml.safe_dump(document))

    assert moved(tmp_path, monkeypatch, switch) == "nobody"


def test_another_authority_is_trusted_once_the_server_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.store.kube.client.LOST_SECONDS", 0.0)

    async def asked() -> str:
        async with opened(Door(), guarded()) as port:
            former = {"certificate-authority-data": encoded(trustme.CA().cert_pem)}
            async with safe(tmp_path, {"token": "x"}, **former)(port).client() as client:
                safe(tmp_path, {"token": "x"})(port)
                with pytest.raises(Unreachable, match="certificate verify failed"):
                    await client.version()
                return str((await client.version())["who"])

    assert asyncio.run(asked()) == "Bearer x"


def test_a_server_that_answers_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.store.kube.client.LOST_SECONDS", 0.0)

    async def asked() -> str:
        async with opened(Door(), guarded()) as port, safe(tmp_path, {"token": "first"})(port).client() as client:
            safe(tmp_path, {"token": "second"})(port)
            return "".join([str((await client.version())["who"]) for _ in range(2)])

    assert asyncio.run(asked()) == "Bearer first" * 2
