"""Gang scheduling for Kubernetes: a set of pods starts together or not at all."""

__version__ = "0.2.0"
