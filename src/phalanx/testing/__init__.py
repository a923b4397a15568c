"""Public helpers for tests: builders of clusters, gangs and nodes."""
