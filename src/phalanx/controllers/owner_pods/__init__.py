"""Stand-ins for operators that are not ours: which pods, and which owners of pods, each would make of an object now.

For `phalanx try`, which decides as if an object were submitted: one small file for each family of kinds, and a controller that
runs them. What an operator makes later, or what cannot be known of it, is said in a sentence and never guessed.
"""
