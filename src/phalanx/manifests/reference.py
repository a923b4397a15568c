"""The page of the reference on rules and defaults, from the code that has them.

A test holds the page against the code. After a change, write it anew:
`python -m phalanx.manifests.reference > docs/reference/validation.md`.
"""

from collections.abc import Iterable, Iterator

from phalanx.manifests.admission_policies import MUTATING, VALIDATING, AdmissionPolicy
from phalanx.manifests.definitions import DEFINITIONS, Definition
from phalanx.manifests.schema import defaults_of, rules_of

HEAD = """# Rules and defaults

`phalanx manifests crds` prints the definitions of every kind that comes with one, and `phalanx manifests policies` the admission
policies for what a definition cannot hold. The API server runs both by itself: there is no webhook that could be down. `phalanx up`
and `phalanx simulate` refuse the same objects in the same words, and fill in the same defaults.

```console
$ phalanx up examples/crds/nodes.yaml &
cluster with 4 nodes and 0 pods at http://127.0.0.1:...
$ phalanx apply -f examples/crds/broken/job.yaml  # exit status 1
...Job.batch.volcano.sh "train" is invalid: [spec.minAvailable: Invalid value: more pods are needed than the tasks have; ...
$ phalanx manifests crds | grep -c CustomResourceDefinition
17
$ phalanx manifests policies | grep -c '^kind: .*Policy$'
10
```

Types, required fields, bounds and known words of every field are in the definitions; `kubectl explain` shows them. The tables
below have the rules between fields. The rules of a Job hold wherever a job is described, in a CronJob and a JobTemplate too. An
object is looked at when it is made and when its spec changes; a status never is. On a change, Kubernetes lets a part pass that was
wrong before and stays as it was; here the whole spec has to be right.

This page is written by `python -m phalanx.manifests.reference`, and a test holds it against the code.
"""
TAIL = """## What no rule says

CEL sees one object, and its namespace. The following is left to controllers and schedulers, which say in a condition or an event
what is wrong:

- that a queue exists, is open and is a leaf; that a parent exists, and that parents form a tree
- that the children of a queue together have no more than it has; that a queue which is deleted holds nothing
- that dependencies of tasks and flows, and parents of sub-groups, form no circle of two or more
- that a schedule means times that exist, and a time zone is known
- that a pod template is one: the pods made of it are refused instead
"""


def document() -> str:
    """Return the page."""
    parts = [HEAD, *map("\n".join, map(list, _sections())), TAIL]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _sections() -> Iterator[Iterable[str]]:
    told: set[str] = set()
    for definition in DEFINITIONS:
        lines = [*_rules(definition, told), *_defaults(definition)]
        if lines:
            kind = definition.kind
            yield (f"## {kind.kind} ({kind.api_version})", "", *lines)
    yield ("## Policies that change objects", "", "| policy | for | what it writes |", "| --- | --- | --- |", *_changes(MUTATING))
    yield (
        "## Policies that refuse objects",
        "",
        "| policy | for | rule | message |",
        "| --- | --- | --- | --- |",
        *_refusals(VALIDATING),
    )


def _rules(definition: Definition, told: set[str]) -> Iterator[str]:
    """Yield the table of the rules that no kind before had."""
    places: dict[str, list[str]] = {}
    messages: dict[str, str] = {}
    for place, rule in rules_of(definition.struct):
        if rule.cel not in told or definition.kind.kind == "Job":
            places.setdefault(rule.name, []).append(place or "metadata.name")
            messages[rule.name] = rule.message
    told |= {rule.cel for _, rule in rules_of(definition.struct)}
    if places:
        yield from ("| rule | place | message |", "| --- | --- | --- |")
        for name, found in places.items():
            yield f"| {name} | {_listed(found)} | {messages[name].replace('|', chr(92) + '|')} |"
        yield ""


def _defaults(definition: Definition) -> Iterator[str]:
    found = [(place, value) for place, value in defaults_of(definition.schema) if not _is_of_a_job(definition, place)]
    if found:
        yield from ("| field | default |", "| --- | --- |")
        yield from (f"| `{place}` | `{str(value).lower() if isinstance(value, bool) else value}` |" for place, value in found)
        yield ""


def _is_of_a_job(definition: Definition, place: str) -> bool:
    """Tell whether a default is one that the table of Job has."""
    kind = definition.kind.kind
    return kind == "JobTemplate" or (kind == "CronJob" and place.startswith("spec.jobTemplate."))


def _changes(policies: Iterable[AdmissionPolicy]) -> Iterator[str]:
    for policy in policies:
        for change in policy.changes:
            yield f"| {policy.name} | {_about(policy)} | {change.about} |"
    yield ""


def _refusals(policies: Iterable[AdmissionPolicy]) -> Iterator[str]:
    for policy in policies:
        for rule in policy.rules:
            yield f"| {policy.name} | {_about(policy)} | {rule.name} | {rule.message} |"
    yield ""


def _about(policy: AdmissionPolicy) -> str:
    """Return which objects a policy is about."""
    where = "".join(f" in namespaces with the label `{key}={value}`" for key, value in policy.namespace_labels.items())
    which = f" with {_listed(policy.annotations)}" if policy.annotations else ""
    return f"{', '.join(policy.operations)} {policy.kind.resource}{which}{where}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


if __name__ == "__main__":
    print(document(), end="")
