"""What we ship, connected: plugins that talk to other processes get their lines here, and nowhere below."""

from dataclasses import replace
from functools import partial

from phalanx.config.builtin import catalogue_of
from phalanx.plugins.extender import Endpoint, ExtenderPlugin, Line
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy


def connected(policy: Policy) -> Profile:
    """Return the scheduler profile of a policy for programs that may talk to other processes."""
    catalogue = catalogue_of(policy.catalogue)
    if ExtenderPlugin.name not in catalogue.plugins:
        return Profile(policy, catalogue)
    plugins = {**catalogue.plugins, ExtenderPlugin.name: partial(ExtenderPlugin, connect=_http_line)}
    return Profile(policy, replace(catalogue, plugins=plugins))


def _http_line(endpoint: Endpoint) -> Line:
    # Importing an HTTP client takes longer than most sessions; those without an extender do without.
    from phalanx.live.extender import HttpLine

    return HttpLine(endpoint)
