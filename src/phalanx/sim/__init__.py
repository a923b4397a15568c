"""A cluster in virtual time: the same decisions as on a real one, on a laptop, repeatable."""
