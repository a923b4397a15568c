"""Which hooks a plugin answers, and whether it can be asked them as `hooks.py` declares."""

from collections.abc import Sequence
from functools import cache
from inspect import signature

from phalanx.errors import ConfigError
from phalanx.session.combine import AnyHook
from phalanx.session.hooks import HOOKS


@cache
def hooks_of(plugin: type) -> Sequence[AnyHook]:
    """Return the hooks that a class of plugins answers; a method that cannot be asked is an error."""
    found = [hook for hook in HOOKS.values() if hasattr(plugin, hook.name)]
    for hook in found:
        _check_parameters(plugin, hook)
    return found


def _check_parameters(plugin: type, hook: AnyHook) -> None:
    asked, answers = signature(hook.method), signature(getattr(plugin, hook.name))
    try:
        answers.bind(*asked.parameters)
    except TypeError:
        name = getattr(plugin, "name", plugin.__name__)
        wanted, found = ", ".join(asked.parameters), ", ".join(answers.parameters)
        raise ConfigError(f"plugin {name!r}, hook {hook.name!r}: takes ({found}); write ({wanted})") from None
