"""What Volcano's Jobs and flows of them make later; our own controllers make the rest."""

from collections.abc import Iterator
from typing import Any

from phalanx.controllers.objects import inside
from phalanx.controllers.owner_pods.children import Children
from phalanx.model.kinds import Document


def job(owner: Document) -> Children:
    """Name the tasks that wait for others."""
    names = list(_waiting(inside(owner, "spec", "tasks")))
    return Children(notes=[f"the pods of {', '.join(names)} are made once the tasks before them run"] if names else [])


def job_flow(owner: Document) -> Children:
    """Name the jobs that wait for others."""
    names = list(_waiting(inside(owner, "spec", "flows")))
    return Children(notes=[f"the jobs {', '.join(names)} are made once those before them are completed"] if names else [])


def _waiting(parts: Any) -> Iterator[str]:  # Any: whatever somebody wrote there
    for part in parts if isinstance(parts, list) else ():
        if inside(part, "dependsOn"):
            yield str(inside(part, "name"))
