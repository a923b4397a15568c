"""What is wrong with a document that cannot be read, as a sentence."""

import msgspec


def readable(problem: msgspec.ValidationError) -> str:
    """Say which field of a document is wrong, and how."""
    text, _, found = str(problem).partition(" - at `$")
    place = found.rstrip("`").lstrip(".")
    missing = text.removeprefix("Object missing required field ")
    if missing != text:
        return f"{place}.{missing.strip('`')}: missing".lstrip(".")
    return f"{place or 'object'}: {text[0].lower()}{text[1:]}"
