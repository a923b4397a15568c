"""What we claim about speed, as programs."""
