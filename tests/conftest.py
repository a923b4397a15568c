"""Properties are tried on the same examples in every run; `make fuzz` looks for new ones."""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("fuzz", derandomize=False)
settings.load_profile("fuzz" if os.environ.get("PHALANX_FUZZ") else "repeatable")
