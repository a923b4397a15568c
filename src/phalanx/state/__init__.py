"""The cluster as the scheduler knows it: kept up to date by events, copied into a snapshot for each session."""
