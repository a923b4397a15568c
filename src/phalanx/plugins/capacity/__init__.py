"""Queues with fixed shares: each queue deserves what it says, may use up to its capability, and belongs to a tree."""

from phalanx.plugins.capacity.plugin import CapacityPlugin

__all__ = ["CapacityPlugin"]
