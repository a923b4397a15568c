"""A release says its version in every file that names it, and what is new in it."""

import re
from pathlib import Path

import yaml

from phalanx import __version__

ROOT = Path(__file__).resolve().parents[2]
KINDS = "added|changed|fixed|removed"


def test_the_image_and_the_overlay_have_the_version_of_the_program() -> None:
    assert f"podman build -t phalanx:{__version__} " in (ROOT / "deploy/Containerfile").read_text()
    overlay = yaml.safe_load((ROOT / "deploy/kustomize/overlays/beside-volcano/kustomization.yaml").read_text())
    assert [image["newTag"] for image in overlay["images"]] == [__version__]


def test_the_changelog_has_a_dated_section_for_this_version_at_its_top() -> None:
    (first, *_) = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert re.fullmatch(rf"{re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)", first)


def test_fragments_are_named_by_issue_or_word_and_kind() -> None:
    names = [file.name for file in (ROOT / "changelog.d").iterdir() if file.name != "README.md"]
    assert [name for name in names if not re.fullmatch(rf"(\d+|\+[a-z0-9-]+)\.({KINDS})\.md", name)] == []


def test_the_workflow_runs_what_a_developer_runs_with_rights_to_read_only() -> None:
    workflow = yaml.load((ROOT / ".github/workflows/ci.yml").read_text(), Loader=yaml.BaseLoader)  # "on" is no boolean here
    assert sorted(workflow["on"]) == ["pull_request", "push"]
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert (int(job["timeout-minutes"]) <= 90, job["steps"][-1]) == (True, {"run": ".ci/run"})
    foreign = [step["uses"] for step in job["steps"] if "uses" in step]
    assert [name for name in foreign if not re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", name)] == []
