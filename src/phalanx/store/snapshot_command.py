"""The command that prints a snapshot of a cluster where `phalanx` cannot reach it; a hint and the reference show it."""

SNAPSHOT_COMMAND = (
    "kubectl get -A -o yaml $(kubectl api-resources --verbs=list -o name | grep -E"
    " '^(nodes|pods|namespaces|services|limitranges|resourcequotas|persistentvolume.*)$"
    "|^(podgroups|queues|priorityclasses|hypernodes|topologies|.*shards|bindrequests|poddisruptionbudgets|storageclasses|csi.*"
    "|resource.*|deviceclasses|.*jobs|jobsets|rayclusters|leaderworkersets)\\.' | paste -sd, -)"
)
"""kubectl takes a plain `podgroups` for the first API group that has one, and prints nothing at all if a kind that was named is not
there: so it is asked which of them the cluster serves."""
