"""Phalanx on a real cluster: watches in, sessions and controllers, writes out."""
