"""Actions of the profile kai."""
