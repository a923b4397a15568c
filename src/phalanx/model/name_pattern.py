"""What the names of gangs have in common that somebody submits again and again."""

import re

_UID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=$|-)")
_RANDOM = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}|(?=[0-9a-f]*[0-9])[0-9a-f]{6,}|[0-9]+|(?=.*[0-9].*[0-9])[0-9a-z]{8,10}")
"""The last part of a name that a controller or a clock has made up."""
_DIGITS = re.compile(r"[0-9]+")


def pattern_of(gang: str) -> str:
    """Return a name without digits and without random endings: ml/bert-* for ml/bert-7-x2f9k."""
    namespace, _, name = gang.partition("@")[0].rpartition("/")
    parts = _UID.sub("", name).split("-")
    while len(parts) > 1 and _RANDOM.fullmatch(parts[-1]):
        parts.pop()
    short = "-".join(_DIGITS.sub("", part) for part in parts)
    return f"{namespace}/{short}" + ("" if short == name else "*" if short.endswith("-") else "-*")
