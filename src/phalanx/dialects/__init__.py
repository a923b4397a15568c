"""Kubernetes objects to the model and back, one file per dialect."""
