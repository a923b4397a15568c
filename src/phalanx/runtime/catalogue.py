"""What we ship, connected: plugins that talk to other processes get their lines here, and nowhere below."""

from dataclasses import replace
from functools import partial

from phalanx.builtin import CATALOGUE, KAI_CATALOGUE
from phalanx.core.cycle import Catalogue
from phalanx.plugins.extender import Endpoint, ExtenderPlugin, Line


def connected_catalogue(profile: str = "") -> Catalogue:
    """Return the catalogue of a profile for programs that may talk to other processes."""
    if profile == "kai":
        return KAI_CATALOGUE
    return replace(CATALOGUE, plugins={**CATALOGUE.plugins, ExtenderPlugin.name: partial(ExtenderPlugin, connect=_http_line)})


def _http_line(endpoint: Endpoint) -> Line:
    # Importing an HTTP client takes longer than most sessions; those without an extender do without.
    from phalanx.runtime.extender import HttpLine

    return HttpLine(endpoint)
