"""Searching settings by simulation: goals, the space of settings, and the search itself. `phalanx tune` runs it."""
