"""Builders of clusters, gangs and nodes for the tests of your own plugins."""
