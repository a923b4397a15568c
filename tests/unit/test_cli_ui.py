"""`phalanx ui` before it serves anything: options that do not go together, and places that are not there."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from phalanx import cli
from phalanx.live.page_names import names_in

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "deadlock")


def run(*arguments: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli.main, ["ui", *arguments], prog_name="phalanx", env=environment)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--at", "03:12", "-f", EXAMPLE), "--at: says a moment of a recording; name the recording with --log DIR"),
        (("--log", "x", "-f", EXAMPLE), "-f and --log: both say which cluster is shown; leave out one of them"),
        (("-f", EXAMPLE, "--context", "there"), "-f: the page shows files or a live cluster; leave out --server and --context"),
        (("--tls-cert-file", "x"), "a certificate and its key go together; name both"),
        (("--host", "0.0.0.0"), "tokens would be sent in the clear; add --tls-cert-file and --tls-private-key-file"),
        (
            ("--host", "0.0.0.0", "--tls-cert-file", "x", "--tls-private-key-file", "y", "-f", EXAMPLE),
            "nobody can be asked who may see files and recordings; leave it out, or show a live cluster",
        ),
        (("--host", "", "-f", EXAMPLE), "--host"),
        (("--host", "::"), "--host ::: tokens would be sent in the clear"),
        (("--config", "a", "--profile", "kai"), "--profile"),
        (("--port", "70000"), "--port"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], text: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert text in result.stderr


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def failed(*arguments: str, environment: dict[str, str] | None = None) -> str:
    result = run(*arguments, environment=environment)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: "), result.stderr
    return result.stderr


def test_a_port_that_is_taken_says_what_to_do(taken: int) -> None:
    assert f"{taken}" in failed("-f", EXAMPLE, "--port", str(taken))


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "nothing") in failed("--log", str(tmp_path / "nothing"))


def test_a_folder_of_results_that_is_not_there_says_what_makes_it(tmp_path: Path) -> None:
    assert f"'phalanx simulate --results {tmp_path}/nothing' makes it" in failed("--results", str(tmp_path / "nothing"))


def test_files_that_are_not_there_are_named() -> None:
    assert "nothing.yaml" in failed("-f", "nothing.yaml")


def test_a_context_that_is_not_there_says_which_are(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, contexts: [{name: staging, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}"
    )
    text = failed("--context", "prodution", environment={"KUBECONFIG": str(kubeconfig)})
    assert "prodution" in text
    assert "staging" in text
    assert "127.0.0.1:1" in failed("--context", "staging", environment={"KUBECONFIG": str(kubeconfig)})


@pytest.mark.parametrize("text", [b"", b"no certificate"])
def test_a_certificate_that_is_none_is_said(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "crt").write_bytes(text)
    (tmp_path / "key").write_bytes(text)
    arguments = ("--tls-cert-file", str(tmp_path / "crt"), "--tls-private-key-file", str(tmp_path / "key"))
    assert str(tmp_path / "crt") in failed("-f", EXAMPLE, *arguments)


def certificate(*names: str) -> bytes:
    """Return a certificate for these names, in PEM."""
    key, who = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    if names:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_a_server_is_called_what_its_certificate_says(tmp_path: Path) -> None:
    file = tmp_path / "crt"
    file.write_bytes(certificate("Ui.Example", "*.example"))
    assert names_in(file) == ("ui.example",)
    file.write_bytes(certificate())
    assert names_in(file) == ()
