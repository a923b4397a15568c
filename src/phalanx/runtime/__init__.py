"""The process: what connects decisions with the world around them."""
