"""Controllers around the scheduler: objects in, writes out, no I/O; they run on the embedded cluster and on a real one."""
