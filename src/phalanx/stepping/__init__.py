"""A session step by step: it stops where somebody asks for, shows what it knows there, and goes forward and back.

A step is an event of the trace. A cycle is pure, so going back is running it again, up to an earlier step. Nothing here reads a
terminal or a file: commands come in as lines, and answers go out as data with their text (`debugger.py`).
"""
