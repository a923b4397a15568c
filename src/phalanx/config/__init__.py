"""Profiles and configuration files: read, checked, and described; and the one list of the actions and plugins that exist."""
