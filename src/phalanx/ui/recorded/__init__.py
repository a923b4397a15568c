"""A recording as a source of the page: the cluster at any moment of it, its sessions, and what became of a gang."""
