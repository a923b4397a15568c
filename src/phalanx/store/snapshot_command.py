"""The command that prints a snapshot of a cluster, as the help, a hint and the documentation show it."""

SNAPSHOT_COMMAND = (
    "kubectl get -A -o yaml $(kubectl api-resources --verbs=list -o name |"
    " grep -E '^(nodes|pods)$|^(podgroups|queues|priorityclasses|hypernodes|topologies)\\.' | paste -sd, -)"
)
"""kubectl takes a plain `podgroups` for the first API group that has one, and prints nothing at all if a kind that was named is not
there: so it is asked which of them the cluster serves."""
