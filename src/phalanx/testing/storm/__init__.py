"""Storms: the whole system in virtual time, where everything that can go wrong does, and every failure replays from its seed."""
