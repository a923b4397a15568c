"""What takes a session or more to answer: asked of a process of its own, which knows the same objects."""
