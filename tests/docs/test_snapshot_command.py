"""The command that prints a snapshot of a cluster, for where `phalanx` cannot reach it."""

import re
from pathlib import Path

from phalanx.cli.schedule import EXAMPLES
from phalanx.dialects.cluster import kinds_read
from phalanx.manifests.permissions import kinds_listed
from phalanx.model.kinds import KINDS
from phalanx.store.snapshot_command import SNAPSHOT_COMMAND

ROOT = Path(__file__).parents[2]
FOR_FEW = frozenset({"nodes.metrics.k8s.io", "numatopologies.nodeinfo.volcano.sh"})
"""What few configurations read."""


def test_the_reference_shows_it() -> None:
    assert SNAPSHOT_COMMAND in (ROOT / "docs/reference/command-line.md").read_text()


def test_people_who_can_reach_their_cluster_are_not_sent_to_kubectl() -> None:
    assert "phalanx schedule --context" in EXAMPLES
    assert "kubectl" not in EXAMPLES
    for page in ("README.md", *(f"docs/howto/{name}.md" for name in ("from-volcano", "from-kai", "why-does-my-gang-wait"))):
        text = (ROOT / page).read_text()
        assert "phalanx schedule --context" in text or "phalanx explain research/whisper --context" in text
        assert "kubectl get -A -o yaml" not in text


def test_it_chooses_all_kinds_that_a_session_needs_and_none_that_decides_nothing() -> None:
    chosen = re.compile(SNAPSHOT_COMMAND.split("'")[1])
    found = {kind.resource for kind in KINDS if chosen.search(kind.resource)}
    assert {kind.resource for kind in kinds_read()} - found == FOR_FEW
    assert found <= {kind.resource for kind in kinds_listed()}
