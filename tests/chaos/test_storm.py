"""A short storm on a real control plane; `make chaos` has one of ten minutes."""

import shutil
from pathlib import Path

import pytest

from tests.chaos.storm import Plan, Storm


@pytest.mark.xdist_group("controlplane")
@pytest.mark.flaky(reruns=0)  # what is broken once is broken
@pytest.mark.timeout(400)
def test_a_storm_breaks_no_promise(tmp_path: Path) -> None:
    storm = Storm(Plan(tmp_path / "plane", seconds=30.0, seed=7, gangs=50, replicas=2, last_gangs=25))
    storm.run()
    print("\n".join(storm.summary()))
    assert storm.findings.violations == [], f"logs are in {tmp_path}"
    assert storm.gangs >= 25
    assert storm.faults.total() > 0
    shutil.rmtree(tmp_path, ignore_errors=True)  # etcd's files are large
