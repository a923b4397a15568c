"""What gangs may expect of Cluster Autoscaler: its lanes, in the order of the page that their results become."""

from phalanx.dev.programs import PROGRAMS

PROGRAM = "cluster-autoscaler"
TITLE, RELEASE = "Cluster Autoscaler", "1.33.0"
KEY = f"{PROGRAM} {PROGRAMS[PROGRAM].version} kwok"
"""What it is called in results: they hold for one version and one cloud provider."""
LANES = {
    "one": "A gang of 8 on an empty pool starts whole after one scale-up of 8 nodes.",
    "steps": "A gang of 8 whose nodes come in several scale-ups starts when the last of them is there; no pod is bound before.",
    "quota": "A gang that waits for quota scales nothing. Nodes come for it when its queue gets more.",
    "limit": "A gang that does not fit into the largest pool starts no pod. The nodes that came for it serve a smaller gang.",
    "request": "A `best-effort-atomic-scale-up` request brings the nodes that a gang lacks besides those that are free, in one "
    "scale-up, and is deleted when the gang runs.",
    "refused": "A request for more nodes than the pool may have brings none, and the gang starts no pod.",
    "half": "A request of which only a part of the nodes can be made gives them back. All of them come when the cloud can "
    "make them.",
    "check": "A `check-capacity` request brings no nodes and says that there is no room. The gang starts when somebody adds nodes.",
    "fails": "A request that the autoscaler gives up is reported by an event and deleted.",
    "idle": "The nodes of a gang go when it has ended.",
    "nominated": "A node that a gang is nominated to is kept, though it is idle, until the gang is bound.",
}
