"""The flight recorder: what the scheduler heard and decided, written down as it happens, and read again later.

A cycle is pure, so a recording of what it was given is a recording of everything: whoever feeds the same changes in the same order
to the same code gets the same decisions, and can stop, ask and try something else at any moment.

    recorder.py         listens to a scheduler and hands entries to
    log_writer.py       the one thread that writes them, with
    entries.py          what is written, and
    object_changes.py   of objects that change only what differs, and
    extender_answers.py what other processes answered, and
    segments.py         how: segments of checksummed, compressed blocks
    replay.py           feeds a recording to sessions again and compares what they decide
    replayed_segment.py does that with one segment, so that several can be replayed at the same time, and
    decision_steps.py   says where two sessions part
    observed_work.py    follows the gangs, pods and nodes of a recording, with gang_lives.py, node_history.py and use_over_time.py
    load.py             makes a load for simulations of them
    other_outcome.py    sets what was recorded beside two simulations of that load
    cluster_watch.py    looks at a cluster that others schedule, with half_starts.py and deadlocks.py
    observed_cluster.py takes these looks at a recording
    shadow_outcome.py   sets what was recorded beside our world, for the report of a shadow
    moment.py           the objects of a cluster as they were at a moment of a recording
"""
