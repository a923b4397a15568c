"""Key pairs for ssh: as the standard has them, and as OpenSSH reads them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from phalanx.sim.sshkeys import pair_for, pair_of, public_key


@pytest.mark.parametrize(
    ("seed", "public"),
    [
        ("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
         "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
        ("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
         "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
    ],
)  # fmt: skip
def test_public_keys_are_those_of_the_standard(seed: str, public: str) -> None:
    assert public_key(bytes.fromhex(seed)).hex() == public


def test_every_job_has_a_pair_of_its_own() -> None:
    assert pair_for("a") == pair_for("a")
    assert pair_for("a").public != pair_for("b").public


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_openssh_reads_the_private_key_and_finds_the_same_public_one(tmp_path: Path) -> None:
    file, pair = tmp_path / "id_rsa", pair_of(bytes(range(32)), "job")
    file.write_text(pair.private)
    file.chmod(0o600)
    found = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True, check=True)
    assert found.stdout == pair.public
