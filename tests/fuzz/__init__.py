"""Fuzzers of everything that reads what others wrote; `make fuzz` runs them, and each input that broke something is kept."""
