"""One scheduling cycle: session, statement, hooks and how they combine."""
