"""Annotations that say when work of a simulated cluster comes, and how long it takes."""

ARRIVES = "phalanx.dev/arrives"
"""Of a group or of any other object: how long after the start it comes."""
DURATION = "phalanx.dev/duration"
"""Of a pod or of its group: how long it works."""
