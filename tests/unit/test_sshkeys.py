"""Key pairs for ssh: where they come from, and that OpenSSH reads them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

from phalanx.controllers.volcano_job.plugins.plugin import MakePair
from phalanx.live.sshkeys import new_pair
from phalanx.sim.sshkeys import pair_for

MAKERS = pytest.mark.parametrize("make_pair", [new_pair, pair_for])


def test_on_a_cluster_every_pair_is_new_even_for_the_same_job() -> None:
    one, other = new_pair("a"), new_pair("a")
    assert one.private != other.private
    assert one.public != other.public


def test_in_a_simulation_every_job_has_a_pair_of_its_own_and_keeps_it() -> None:
    assert pair_for("a") == pair_for("a")
    assert pair_for("a").public != pair_for("b").public
    assert pair_for("a").public == "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOrhyHk7VZfEs/SQ52rDEXLEOWkPjuFBQruFGmH5pJ8O a\n"


@MAKERS
def test_the_public_key_is_the_one_of_the_private_key_and_says_whose_it_is(make_pair: MakePair) -> None:
    pair = make_pair("job")
    public = load_ssh_private_key(pair.private.encode(), None).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert pair.public == f"{public.decode()} job\n"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@MAKERS
def test_openssh_reads_the_private_key_and_finds_the_same_public_one(make_pair: MakePair, tmp_path: Path) -> None:
    file, pair = tmp_path / "id_rsa", make_pair("job")
    file.write_text(pair.private)
    file.chmod(0o600)
    found = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True, check=True)
    assert found.stdout.split()[:2] == pair.public.split()[:2]
