"""Warnings that an API server sends beside an answer, in headers that kubectl prints: ``Warning: 299 - "text"``."""

import re

CODE = "299 -"
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


def warning_header(text: str) -> str:
    """Return the value of the header for a warning; characters that headers cannot have become question marks."""
    plain = _UNPRINTABLE.sub("?", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'{CODE} "{plain}"'


def warning_text(header: str) -> str:
    """Return the warning in a header; empty if there is none."""
    found = _WARNING.match(header)
    return "" if found is None else _ESCAPED.sub(r"\1", found.group(1))
