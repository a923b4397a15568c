"""Verdicts to sentences, tables and plain data."""
