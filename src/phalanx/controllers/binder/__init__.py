"""The binder: works off bind requests, those of a gang together."""
