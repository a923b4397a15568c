"""The nouns: frozen dataclasses, no decisions, no arrays."""
