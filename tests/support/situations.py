"""Situations: small clusters in which one gang waits for one reason, each with what an explanation must say and what ends the wait.

The first document of a file is the Situation:

    gang       the gang that waits, as "namespace/name"
    profile    or `config`, a configuration: who decides
    now        the time of the session, if it matters
    status     what becomes of the gang, if it is not that it waits
    source     where the situation comes from
    first      what the first lines must say: texts, or several with '|' between them of which one is enough
    also       what must be said, in any line
    not        what the first lines must not say
    fix        what ends the wait: changes as `phalanx explain --if` takes them, or an edit where the language has no word:
               {patch: OBJECT}, {create: OBJECT}, {delete: KIND NAME}, {now: TIME}

The other documents are the cluster. `phalanx explain GANG -f FILE` reads the same file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from phalanx.cli.grouping import grouped
from phalanx.cli.session_input import cluster_for
from phalanx.config.policies import policy_of_profile, policy_of_text
from phalanx.dialects.documents import documents_in
from phalanx.dialects.field_values import seconds
from phalanx.live.catalogue import connected
from phalanx.model.kinds import object_key
from phalanx.session.policy import Policy
from phalanx.store.completion import ManifestObjects
from phalanx.store.input_files import Intake
from phalanx.store.patches import MERGE, patched
from phalanx.whatif.changes import parse_all
from phalanx.whatif.trial_cluster import Change, Trial, TrialCluster

FOLDER = Path(__file__).resolve().parents[1] / "scenarios" / "explained"
NOW = "2026-01-05T09:00:00Z"

Document = dict[str, Any]


@dataclass(frozen=True)
class Situation:
    """A cluster in which a gang waits, and what is expected of its explanation."""

    path: Path
    header: Document
    documents: list[Document] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> "Situation":
        """Read a file."""
        header, *documents = [item.value for item in documents_in(path.read_bytes(), path.name)]
        assert isinstance(header, dict), path.name
        assert header["kind"] == "Situation", path.name
        return cls(path, header, [item for item in documents if isinstance(item, dict)])

    @property
    def gang(self) -> str:
        """The gang that waits."""
        return str(self.header["gang"])

    @property
    def now(self) -> str:
        """The time of the session."""
        return str(self.header.get("now", NOW))

    @property
    def names(self) -> tuple[str, ...]:
        """The scheduler names that are ours, if not the usual ones."""
        return tuple(self.header.get("schedulerNames", ()))

    @cached_property
    def policy(self) -> Policy:
        """Who decides."""
        if "config" in self.header:
            return policy_of_text(yaml.safe_dump(self.header["config"]).encode(), f"{self.path.name}, config")
        return policy_of_profile(self.header["profile"])

    def options(self, folder: Path) -> list[str]:
        """Return the options of commands that read the file; a configuration is written into a folder."""
        names = [part for name in self.names for part in ("--scheduler-name", name)]
        chosen = ["--profile", str(self.header.get("profile"))]
        if "config" in self.header:
            file = folder / "scheduler.conf"
            file.write_text(yaml.safe_dump(self.header["config"]))
            chosen = ["--config", str(file)]
        return ["-f", str(self.path), "--now", self.now, *chosen, *names]

    def cluster(self) -> TrialCluster:
        """Return the cluster, ready for trials."""
        now = seconds(self.now, where="now")
        intake = Intake(cluster_for(self.policy, self.names), ManifestObjects(self.documents))
        for number, document in enumerate(self.documents):
            intake.enter(f"{self.path.name}, object {number}", document)
        return TrialCluster(grouped(intake, self.names, now).documents, intake.cluster, connected(self.policy), now)

    # --- what ends the wait ------------------------------------------------------------------------------------------

    def edited(self) -> "Situation":
        """Return the situation with the edits of objects that its remedy has."""
        edits = [edit for edit in self.header["fix"] if not isinstance(edit, str)]
        now = [edit["now"] for edit in edits if "now" in edit]
        header = {**self.header, **({"now": now[-1]} if now else {})}
        documents = self.documents
        for edit in edits:
            documents = list(_edited(documents, edit))
        return replace(self, header=header, documents=documents)

    def changes(self) -> list[Change]:
        """Return the changes that its remedy has."""
        return [*parse_all(change for change in self.header["fix"] if isinstance(change, str))]

    def after_its_remedy(self) -> Trial:
        """Hold a session with everything changed as the remedy says."""
        with self.edited().cluster().with_changes(self.changes()) as cluster:
            return cluster.decide(traced=[self.gang])


def _edited(documents: Iterable[Document], edit: Mapping[str, Any]) -> Iterator[Document]:
    """Yield objects after an edit; one that finds nothing to edit is a mistake in the file."""
    meant = edit.get("delete") or (_name(edit["patch"]) if "patch" in edit else None)
    found = False
    for document in documents:
        is_meant = _name(document) == meant
        found = found or is_meant
        if not is_meant:
            yield document
        elif "patch" in edit:
            yield dict(patched(document, edit["patch"], MERGE))
    assert found or meant is None, f"there is no {meant}"
    if "create" in edit:
        yield edit["create"]


def _name(document: Mapping[str, Any]) -> str:
    """Return the kind and name of an object, as "Pod research/bert-0" or "Node gpu-1"."""
    key = object_key(document)
    return f"{document['kind']} {key if 'namespace' in document['metadata'] else document['metadata']['name']}"


def situations() -> list[Situation]:
    """Return all situations."""
    return [Situation.read(path) for path in sorted(FOLDER.glob("*.yaml"))]
