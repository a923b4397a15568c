"""Writes docs/reference/versions.md from the results of checks: ``python -m tests.versions.page``, the end of `make versions`."""

from collections.abc import Iterator
from pathlib import Path

from phalanx.dev.programs import KUBERNETES, KUBERNETES_RELEASES
from tests.support.kept_results import KNOWN_DEFECT, NOT_APPLICABLE, PASSED, Found, read
from tests.versions.checks import CHECKS, NOT_SERVED, RULES_SINCE

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "versions.md"
HEAD = f"""\
# Versions of Kubernetes

On which versions of Kubernetes Phalanx is tested, and what each of them lacks. `make versions` writes this page: it starts the
API server and the controllers of each version beside `phalanx run`. Everything else is tested with every change, on
{KUBERNETES.removeprefix("v")}. The Helm chart refuses clusters before {RULES_SINCE}, because they refuse its CRDs.
"""


def page(results: Found) -> str:
    """Return the whole page."""
    return "\n".join([HEAD, _table(results), *_defects(results), _lacks(), _checks()])


def _table(results: Found) -> str:
    head = [_row("Kubernetes", *CHECKS), _row(*["---"] * (1 + len(CHECKS)))]
    rows = [_row(_short(release), *(_word(results.get(release, {}).get(check, "")) for check in CHECKS))
            for release in KUBERNETES_RELEASES]  # fmt: skip
    return "\n".join([*head, *rows, ""])


def _word(result: str) -> str:
    if result == PASSED:
        return "yes"
    return "not served" if result.startswith(NOT_APPLICABLE) else "**no**" if result else "not tested"


def _defects(results: Found) -> Iterator[str]:
    for release in KUBERNETES_RELEASES:
        for check, result in results.get(release, {}).items():
            if result.startswith(KNOWN_DEFECT):
                yield f"- {_short(release)}, `{check}`: {result.removeprefix(KNOWN_DEFECT)}.\n"


def _lacks() -> str:
    lines = [
        f"- {_short(release)} does not serve {', '.join(f'`{name}`' for name in sorted(absent))}"
        ", and has no MutatingAdmissionPolicy: install without the admission policies."
        for release, absent in NOT_SERVED.items() if absent
    ]  # fmt: skip
    return "\n".join(["What a cluster does not serve is not read; Phalanx finds out which API versions there are.\n", *lines, ""])


def _checks() -> str:
    rows = [_row(f"`{name}`", text) for name, text in CHECKS.items()]
    return "\n".join([_row("check", "test"), _row("---", "---"), *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _short(release: str) -> str:
    return release.removeprefix("v")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(read(RESULTS)))


if __name__ == "__main__":
    main()
