"""A real Kubernetes control plane on this machine, without containers: built from Go modules, run on loopback ports."""
