"""Carries out what sessions decide, once for a real cluster, an embedded one and a simulated one. No I/O, no clock of its own."""
