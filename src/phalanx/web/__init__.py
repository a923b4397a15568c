"""The HTTP API of an embedded cluster."""
