"""Commands of Volcano's, as vcctl writes them: orders to a Job or a queue, which its controller carries out and deletes."""

import asyncio
from typing import Any

from phalanx.errors import Missing
from phalanx.model.kinds import COMMAND, Document, kind_of
from phalanx.store.kube.client import Client

PATIENCE_SECONDS = 10.0
"""So long a controller may take to carry out a command; it takes a second or two."""
STEP_SECONDS = 0.1
NOT_TAKEN = "no controller has carried it out yet; it will, once the controllers of Volcano's kinds run"


async def command(client: Client, action: str, target: Document, namespace: str) -> bool:
    """Write a command for an object; return whether a controller has carried it out."""
    made = await client.create(_document(action, target, namespace))
    name = str(made["metadata"]["name"])
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                await client.get(COMMAND, namespace, name)
                await asyncio.sleep(STEP_SECONDS)
    except Missing:
        return True
    except TimeoutError:
        return False


def _document(action: str, target: Document, namespace: str) -> dict[str, Any]:
    kind, meta = kind_of(target), target["metadata"]
    reference = {
        "apiVersion": target["apiVersion"], "kind": kind.kind, "name": meta["name"], "uid": meta["uid"], "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    owners = [reference] if kind.is_namespaced else []
    return {
        "apiVersion": COMMAND.api_version, "kind": COMMAND.kind, "action": action, "target": reference,
        "metadata": {"generateName": f"{meta['name']}-{action.lower()}-", "namespace": namespace, "ownerReferences": owners},
    }  # fmt: skip
