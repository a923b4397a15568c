"""Three classes of priority for simulated work.

All of them are below 100: from there on KAI takes a gang for one that may never be preempted.
"""

LOW, NORMAL, HIGH = 10, 50, 90
