"""Configurations to checked policies: built-in profiles, files, and what a batch request brings.

A file is a `volcano-scheduler.conf`, bare or as the ConfigMap that holds it. It may name a profile and override parts of it.
A policy that leaves here was tried: every action and plugin was made once, so a wrong argument is found before the session.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial
from importlib.resources import files

from phalanx.config.builtin import CATALOGUE, KAI_CATALOGUE
from phalanx.config.kai import read_kai_policy
from phalanx.config.kai_shards import policy_of_shard
from phalanx.config.volcano import checked_gates, read_policy
from phalanx.dialects.documents import Located, documents_in, parse_text
from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.shard import PoolShard
from phalanx.session.cycle import Catalogue
from phalanx.session.policy import Policy, ProcessFlags

DEFAULT_PROFILE = "phalanx"
CONFIG_MAP_KEY = "volcano-scheduler.conf"


def profile_names() -> list[str]:
    """Return the built-in profiles."""
    names = (file.name for file in files("phalanx.config").joinpath("profiles").iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def profile_text(name: str) -> str:
    """Return the file of a built-in profile."""
    known = profile_names()
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise ConfigError(f"profile: unknown profile {name!r}; {hint}")
    return files("phalanx.config").joinpath("profiles", f"{name}.yaml").read_text(encoding="utf-8")


def profile_summary(name: str) -> str:
    """Return the first sentence of a profile's first comment."""
    return profile_text(name).partition("\n")[0].lstrip("# ").partition(". ")[0]


@cache
def _profile(name: str) -> Mapping[str, object]:
    document = parse_text(profile_text(name).encode(), f"profile {name}")[0]
    assert isinstance(document, dict), f"profile {name} is not a mapping"
    return document


def policy_of_profile(name: str) -> Policy:
    """Return the policy of a built-in profile."""
    return policy_of({"profile": name})


def policy_of_gates(policy: Policy) -> Policy:
    """Return the policy that finds room for gangs behind the gates of a policy: as the default profile, but nobody is evicted."""
    flags, found = ProcessFlags(gates=policy.flags.gates), policy_of_profile(DEFAULT_PROFILE)
    return replace(found, actions=("allocate", "backfill"), flags=flags, follows_shards=policy.follows_shards)


def with_gates(policy: Policy, names: Sequence[str]) -> Policy:
    """Return a policy with further names of gates; those of the policy itself stay."""
    known = tuple(dict.fromkeys((*policy.flags.gates, *checked_gates(names, "--gate"))))
    return replace(policy, flags=replace(policy.flags, gates=known)) if names else policy


def policy_of_text(text: bytes, where: str) -> Policy:
    """Return the policy of what a configuration file holds; `where` says in an error which file."""
    try:
        return policy_of(_configuration(text, where))
    except ConfigError as problem:
        raise ConfigError(f"{where}: {problem}") from problem
    except SnapshotError as problem:
        raise ConfigError(str(problem)) from problem


def policy_of(document: object) -> Policy:
    """Return the policy of a configuration. What it says overrides the profile it names; an empty one means the default profile."""
    config = _on_profile(document)
    is_kai = isinstance(config, Mapping) and config.get("profile") == "kai"
    catalogue = KAI_CATALOGUE if is_kai else CATALOGUE
    names = {"actions": list(catalogue.actions), "plugins": list(catalogue.plugins)}
    policy = read_kai_policy(config, **names) if is_kai and isinstance(config, Mapping) else read_policy(config, **names)
    _try_out(policy, catalogue)
    return policy


def policy_of_pool_shard(shard: PoolShard) -> Policy:
    """Return the policy that a SchedulingShard asks for."""
    policy = policy_of_shard(shard, actions=list(KAI_CATALOGUE.actions), plugins=list(KAI_CATALOGUE.plugins))
    try:
        _try_out(policy, KAI_CATALOGUE)
    except ConfigError as problem:
        raise ConfigError(f"SchedulingShard {shard.name}: {problem}") from problem
    return policy


def says_more_than(profile: str, policy: Policy) -> bool:
    """Tell whether a policy is not just the profile: then it comes before what shards say."""
    return replace(policy, flags=ProcessFlags()) != policy_of_profile(profile)


def _on_profile(document: object) -> object:
    config = {"profile": DEFAULT_PROFILE} if document is None or document == {} else document
    if not isinstance(config, Mapping) or config.get("profile") is None:
        return config
    name = config["profile"]
    if not isinstance(name, str):
        raise ConfigError(f"profile: expected the name of a profile, got {type(name).__name__}")
    return {**_profile(name), **config}


def _configuration(text: bytes, where: str) -> object:
    documents = documents_in(text, where)
    if len(documents) > 1:
        raise ConfigError(f"{len(documents)} documents; a configuration is one")
    if not documents:
        raise ConfigError("empty; see 'phalanx config show' for a whole configuration")
    return _unwrapped(documents[0])


def _unwrapped(document: Located) -> object:
    """Return the configuration inside a ConfigMap, or the document itself."""
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "ConfigMap":
        return value
    data = value.get("data")
    texts = data if isinstance(data, dict) else {}
    key = CONFIG_MAP_KEY if CONFIG_MAP_KEY in texts else next(iter(texts), "") if len(texts) == 1 else ""
    if not isinstance(texts.get(key), str):
        raise ConfigError(f"data: no key {CONFIG_MAP_KEY!r} in this ConfigMap")
    inner = parse_text(texts[key].encode(), f"{document.place}, data[{key!r}]")
    return inner[0] if inner else None


def _try_out(policy: Policy, catalogue: Catalogue) -> None:
    for number, tier in enumerate(policy.tiers):
        for place, plugin in enumerate(tier):
            where = f"tiers[{number}].plugins[{place}]" if policy.has_tiers else f"plugins.{plugin.name}"
            _make(partial(catalogue.plugins[plugin.name], plugin), f"{where}: plugin {plugin.name!r}")
    for name in dict.fromkeys((*policy.actions, *policy.arguments_by_action)):
        arguments = policy.arguments_by_action.get(name, {})
        _make(partial(catalogue.actions[name], arguments), f"configurations: action {name!r}")


def _make(make: Callable[[], object], owner: str) -> None:
    """Make it once; whatever is wrong with an argument becomes a sentence that says whose it is."""
    try:
        make()
    except ConfigError as problem:
        raise ConfigError(f"{owner}, {str(problem).partition(', ')[2] or problem}") from problem
    except (ValueError, TypeError, AttributeError) as problem:
        raise ConfigError(f"{owner}: an argument cannot be read: {problem}") from problem
