"""What a cluster has to know of us: definitions of kinds, their rules and defaults, and policies; as data, and as checks."""
