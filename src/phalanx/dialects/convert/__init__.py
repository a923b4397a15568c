"""Gangs from one dialect to another, through the one model: what the other has no word for is said, not dropped in silence."""

from phalanx.dialects.convert.convert import DIALECTS, Converted, converted
from phalanx.dialects.convert.groups import Lost

__all__ = ["DIALECTS", "Converted", "Lost", "converted"]
