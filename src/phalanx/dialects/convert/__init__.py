"""Converts gangs from one dialect to another through the model, and reports what the other dialect has no field for."""

from phalanx.dialects.convert.convert import DIALECTS, Converted, converted
from phalanx.dialects.convert.neutral_gangs import Lost

__all__ = ["DIALECTS", "Converted", "Lost", "converted"]
