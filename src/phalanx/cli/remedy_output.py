"""What would start a gang, and what else would change, as lines for a terminal."""

from collections.abc import Sequence

from phalanx.cli.streams import visible
from phalanx.explain.reason_text import counted
from phalanx.whatif.answer import WhatIf
from phalanx.whatif.difference import GangDifference
from phalanx.whatif.remedy import Findings

INDENT = "  "
MOST_OTHERS = 12
"""Other gangs that are named; `-o json` has all of them."""
MOST_REMEDIES = 6


def what_if_lines(found: WhatIf) -> list[str]:
    """Say what else would change by changes, and what would start the gang."""
    others = lines_of_difference(found.others) if found.changes else []
    others += [f"note: {change.text!r} changes nothing, it is so already" for change in found.idle]
    return [INDENT + visible(text) for text in (*others, *lines_of_findings(found.findings))]


def lines_of_difference(others: Sequence[GangDifference]) -> list[str]:
    """Say what else would change."""
    if not others:
        return ["also: nothing would change for other gangs"]
    shown = [f"also: {found.text}" for found in others[:MOST_OTHERS]]
    more = len(others) - MOST_OTHERS
    return [*shown, f"also: {counted(more, 'more gang')} would change; -o json has all"] if more > 0 else shown


def lines_of_findings(findings: Findings) -> list[str]:
    """Say what would start the gang, the first few ways to it."""
    lines = [remedy.text for remedy in findings.remedies[:MOST_REMEDIES]]
    more = len(findings.remedies) - MOST_REMEDIES
    if more > 0:
        lines.append(f"and {counted(more, 'more way')}; -o json has all")
    said = findings.tried or findings.untried
    return [*lines, *([findings.summary] if said and findings.summary else [])]
