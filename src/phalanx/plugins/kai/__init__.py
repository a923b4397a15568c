"""Plugins of the profile kai, with a catalogue of their own: several have the name of a Volcano plugin and another meaning."""
