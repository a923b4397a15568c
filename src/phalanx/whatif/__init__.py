"""What would happen if something were different: changes of objects on trial, each decided by a whole session of the engine."""
