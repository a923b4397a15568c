"""Volcano's Job: one controller makes its PodGroup and pods, follows its life, and does what its policies say."""
