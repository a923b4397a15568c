"""The custom kinds, one declaration each: definitions and checks are made of it, and so is what reads the objects."""
