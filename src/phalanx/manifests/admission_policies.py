"""Admission policies: what a schema cannot say, as rules and changes in CEL that the API server runs itself, without a webhook.

The embedded cluster runs the same texts (see `store/admission.py`). What needs a look at other objects cannot be said in CEL: that
a queue exists, is open and has no children. Nor can it be said that dependencies form no circle. Controllers say so in conditions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from phalanx.controllers.binder.reservation_pod import VISIBLE, VISIBLE_VARIABLE
from phalanx.controllers.grouper.settings import KAI
from phalanx.controllers.podgroup import OUR_SCHEDULERS
from phalanx.dialects.gates import GATE
from phalanx.dialects.group_references import LABEL, REFERENCE_FIELDS, SPEC, ReferenceField
from phalanx.dialects.kinds.fields import CelRule
from phalanx.dialects.pods import GPU_CONTAINER, GPU_FRACTION, GPU_MEMORY
from phalanx.model.kinds import COMMAND, POD, Document, Kind, kind_of

Operation = Literal["CREATE", "UPDATE", "DELETE"]

NAMES = ("object", "oldObject", "namespaceObject")
"""What the expressions of a policy read."""
GATES_LABEL = {"phalanx.dev/gates": "enabled"}
"""Namespaces with this label have the pods of gangs gated."""
QUEUE_OF_NAMESPACE = "scheduling.volcano.sh/queue-name"
HIERARCHY, HIERARCHY_WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
MIN_AVAILABLE, MAX_UNAVAILABLE = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
SCHEDULER = "volcano"
"""Who schedules the pods of a job that does not say so."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """What is changed in an object: a CEL expression that gives a list of JSON patches."""

    name: str
    cel: str
    about: str


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """Rules or changes for objects of one kind."""

    name: str
    kind: Kind
    operations: tuple[Operation, ...]
    rules: tuple[CelRule, ...] = ()
    changes: tuple[Mutation, ...] = ()
    annotations: tuple[str, ...] = ()
    """It is about objects with one of these annotations; about all if there are none."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """It is about objects in namespaces with these labels."""
    condition: str = ""
    """It is about objects of which this CEL expression holds; the API server does not show it the namespace."""


_JOB = kind_of({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"})
_GROUP = kind_of({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"})
_QUEUE = kind_of({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"})


# --- CEL in parts --------------------------------------------------------------------------------------------------------


def _annotated(key: str, where: str = "object") -> str:
    return f"has({where}.metadata.annotations) && '{key}' in {where}.metadata.annotations"


def _labelled(key: str) -> str:
    return f"has(object.metadata.labels) && '{key}' in object.metadata.labels"


def _add(path: str, value: str, *, after: str = "") -> str:
    """Return a patch that adds a value; `after` is an expression of which the path goes on."""
    return f"JSONPatch{{op: 'add', path: {after}'{path}', value: {value}}}"


def _for_tasks(condition: str, path: str, value: str) -> str:
    """Return a change of every task t, at place i, of which a condition holds."""
    patch = _add(path, value, after="'/spec/tasks/' + string(i) + ")
    return f"object.spec.tasks.transformList(i, t, {condition}, {patch})"


def _same(field_name: str, new: str, old: str) -> str:
    left, right = f"{new}.{field_name}", f"{old}.{field_name}"
    return f"(has({left}) ? has({right}) && {left} == {right} : !has({right}))"


def _all_same(names: tuple[str, ...], new: str, old: str) -> str:
    return " && ".join(_same(name, new, old) for name in names)


# --- changes -------------------------------------------------------------------------------------------------------------

_REPLICAS = "(has(t.replicas) ? int(t.replicas) : 0)"
_PARTITIONED = "has(t.partitionPolicy) && has(t.partitionPolicy.minPartitions) && t.partitionPolicy.minPartitions > 0"
_MINIMUM = f"{_PARTITIONED} ? int(t.partitionPolicy.minPartitions) * int(t.partitionPolicy.partitionSize) : {_REPLICAS}"
_HOST_NETWORK = (
    "has(t.template) && has(t.template.spec) && has(t.template.spec.hostNetwork) && t.template.spec.hostNetwork && "
    "!has(t.template.spec.dnsPolicy)"
)


def _implied(plugin: str, by: tuple[str, ...]) -> str:
    named = " || ".join(f"'{each}' in object.spec.plugins" for each in by)
    condition = f"has(object.spec.plugins) && ({named}) && !('{plugin}' in object.spec.plugins)"
    return f"{condition} ? [{_add(f'/spec/plugins/{plugin}', '[]')}] : []"


_JOB_CHANGES = (
    Mutation("scheduler", "has(object.spec.schedulerName) && object.spec.schedulerName != '' ? [] : "
             f"[{_add('/spec/schedulerName', repr(SCHEDULER))}]", f"schedulerName is {SCHEDULER}"),
    Mutation("task-names", _for_tasks("!has(t.name) || t.name == ''", "/name", "'default' + string(i)"),
             "tasks without a name are called default0, default1 and so on, by their place"),
    Mutation("task-minima", _for_tasks("!has(t.minAvailable)", "/minAvailable", _MINIMUM),
             "a task's minAvailable is its replicas, or minPartitions times partitionSize"),
    Mutation("job-minimum", "has(object.spec.minAvailable) && object.spec.minAvailable > 0 ? [] : "
             f"[{_add('/spec/minAvailable', 'object.spec.tasks.map(t, int(t.minAvailable)).sum()')}]",
             "minAvailable is the sum of the tasks' minAvailable"),
    Mutation("host-network-dns", _for_tasks(_HOST_NETWORK, "/template/spec/dnsPolicy", "'ClusterFirstWithHostNet'"),
             "pods on the network of the host have the dnsPolicy ClusterFirstWithHostNet"),
    Mutation("service-plugin", _implied("svc", ("tensorflow", "mpi", "pytorch", "ray")),
             "the plugins tensorflow, mpi, pytorch and ray bring svc"),
    Mutation("ssh-plugin", _implied("ssh", ("mpi",)), "the plugin mpi brings ssh"),
)  # fmt: skip

_QUEUE_OF = f"namespaceObject.metadata.annotations['{QUEUE_OF_NAMESPACE}']"
_PATH, _WEIGHTS = f"object.metadata.annotations['{HIERARCHY}']", f"object.metadata.annotations['{HIERARCHY_WEIGHTS}']"


def _prefixed(key: str, value: str, prefix: str) -> str:
    return f"JSONPatch{{op: 'replace', path: '/metadata/annotations/' + jsonpatch.escapeKey('{key}'), value: '{prefix}' + {value}}}"


_NEW_GATE = f"{{'name': '{GATE}'}}"
_HAS_GATE = f"has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == '{GATE}')"
_GATED = (
    f"{_HAS_GATE} ? [] : has(object.spec.schedulingGates) ? [{_add('/spec/schedulingGates/-', _NEW_GATE)}] : "
    f"[{_add('/spec/schedulingGates', f'[{_NEW_GATE}]')}]"
)


def _names_group(mark: ReferenceField) -> str:
    if mark.place == SPEC:
        return "has(object.spec.schedulingGroup)"
    named = (_labelled if mark.place == LABEL else _annotated)(mark.key)
    is_theirs = f"has(object.spec.schedulerName) && object.spec.schedulerName == '{mark.scheduler}'"
    return f"({is_theirs} && {named})" if mark.scheduler else named


_IN_A_GANG = " || ".join(map(_names_group, REFERENCE_FIELDS))

_SHARER = f"object.metadata.annotations['{GPU_CONTAINER}']"
_TOLD = (
    f"{{'name': dyn('{VISIBLE_VARIABLE}'), "
    f"'valueFrom': dyn({{'fieldRef': {{'fieldPath': 'metadata.annotations[\\'{VISIBLE}\\']'}}}})}}"
)
_TELLS = f"c.env.exists(e, e.name == '{VISIBLE_VARIABLE}')"


def _told_devices(containers: str, unnamed: str) -> str:
    """Return a change of the container c that uses a shared GPU; `unnamed` says which that is where the pod names none."""
    is_sharer = f"({_annotated(GPU_CONTAINER)} ? c.name == {_SHARER} : {unnamed})"
    patches = {
        f"{is_sharer} && !has(c.env)": _add("/env", f"[{_TOLD}]", after=f"'/spec/{containers}/' + string(i) + "),
        f"{is_sharer} && has(c.env) && !{_TELLS}": _add("/env/-", _TOLD, after=f"'/spec/{containers}/' + string(i) + "),
    }
    changes = (f"object.spec.{containers}.transformList(i, c, {condition}, {patch})" for condition, patch in patches.items())
    return f"has(object.spec.{containers}) ? {' + '.join(changes)} : []"


_NAMES = (
    "object.spec.containers.exists(c, c.name == {0}) || "
    "(has(object.spec.initContainers) && object.spec.initContainers.exists(c, c.name == {0}))"
)
_IS_OURS = f"has(object.spec.schedulerName) && object.spec.schedulerName in {sorted(OUR_SCHEDULERS | {KAI})}"

MUTATING = (
    AdmissionPolicy("phalanx-job-defaults", _JOB, ("CREATE",), changes=_JOB_CHANGES,
                    condition="has(object.spec) && has(object.spec.tasks)"),
    AdmissionPolicy(
        "phalanx-group-queue", _GROUP, ("CREATE",),
        changes=(Mutation("queue-of-namespace",
                          f"{_annotated(QUEUE_OF_NAMESPACE, 'namespaceObject')} ? [{_add('/spec/queue', _QUEUE_OF)}] : []",
                          f"a group in the queue default goes to that of the namespace's annotation {QUEUE_OF_NAMESPACE}"),),
        condition="has(object.spec) && (!has(object.spec.queue) || object.spec.queue == '' || object.spec.queue == 'default')",
    ),
    AdmissionPolicy(
        "phalanx-queue-hierarchy-root", _QUEUE, ("CREATE", "UPDATE"), annotations=(HIERARCHY,),
        changes=(Mutation("root-of-hierarchy", f"[{_prefixed(HIERARCHY, _PATH, 'root/')}] + "
                          f"({_annotated(HIERARCHY_WEIGHTS)} ? [{_prefixed(HIERARCHY_WEIGHTS, _WEIGHTS, '1/')}] : [])",
                          f"a path in {HIERARCHY} begins with root/, and {HIERARCHY_WEIGHTS} with 1/"),),
        condition=f"!({_PATH} == 'root' || {_PATH}.startsWith('root/'))",
    ),
    AdmissionPolicy(
        "phalanx-pod-gates", POD, ("CREATE",), namespace_labels=GATES_LABEL,
        changes=(Mutation("gate", _GATED, f"a pod of a gang gets the scheduling gate {GATE}"),),
        condition=f"!has(object.spec.nodeName) && ({_IN_A_GANG})",
    ),
    AdmissionPolicy(
        "phalanx-pod-shared-gpu", POD, ("CREATE",), annotations=(GPU_FRACTION, GPU_MEMORY), condition=_IS_OURS,
        changes=(
            Mutation("visible-devices", _told_devices("containers", "i == 0"),
                   f"the container that uses a shared GPU gets {VISIBLE_VARIABLE} from the annotation {VISIBLE}, unless it is set"),
            Mutation("visible-devices-first", _told_devices("initContainers", "false"),
                     f"so does an init container that {GPU_CONTAINER} names"),
        ),
    ),
)  # fmt: skip


# --- rules ---------------------------------------------------------------------------------------------------------------

_JOB_STAYS = ("schedulerName", "queue", "plugins", "policies", "minSuccess", "maxRetry", "networkTopology")
_TASK_STAYS = ("name", "template", "policies", "topologyPolicy", "dependsOn", "partitionPolicy")
_PERCENTAGE = "^([1-9][0-9]*|[1-9][0-9]?%)$"
_WEIGHT = "^([1-9][0-9]*|0*[.][0-9]*[1-9][0-9]*|[1-9][0-9]*[.][0-9]+)$"

VALIDATING = (
    AdmissionPolicy(
        "phalanx-job-update", _JOB, ("UPDATE",),
        rules=(
            CelRule("job-stays", _all_same(_JOB_STAYS, "object.spec", "oldObject.spec"),
                    "of a job only minAvailable, replicas and priorityClassName change; make a new job for the rest"),
            CelRule("tasks-stay", "object.spec.tasks.size() == oldObject.spec.tasks.size() && object.spec.tasks.all(i, t, "
                    f"{_all_same(_TASK_STAYS, 't', 'oldObject.spec.tasks[i]')})",
                    "of a task only replicas and minAvailable change; make a new job for the rest"),
        ),
    ),
    AdmissionPolicy(
        "phalanx-queue-hierarchy", _QUEUE, ("CREATE", "UPDATE"), annotations=(HIERARCHY, HIERARCHY_WEIGHTS),
        rules=(
            CelRule("path-and-weights", f"{_annotated(HIERARCHY)} && {_annotated(HIERARCHY_WEIGHTS)}",
                    f"{HIERARCHY} and {HIERARCHY_WEIGHTS} go together; write both, such as root/research and 1/2"),
            CelRule("weight-per-step", f"!({_annotated(HIERARCHY)}) || !({_annotated(HIERARCHY_WEIGHTS)}) || "
                    f"{_PATH}.split('/').size() == {_WEIGHTS}.split('/').size()",
                    "the path and the weights differ in length; write one weight for each step of the path"),
            CelRule("weights-positive", f"!({_annotated(HIERARCHY_WEIGHTS)}) || "
                    f"{_WEIGHTS}.split('/').all(w, w.matches('{_WEIGHT}'))", "write numbers above 0 as weights, such as 1/2.5"),
        ),
    ),
    AdmissionPolicy(
        "phalanx-queue-delete", _QUEUE, ("DELETE",),
        rules=(CelRule("keeps-first-queues", "!(oldObject.metadata.name in ['root', 'default'])",
                       "root and default are always there; close a queue that is not to be used"),),
    ),
    AdmissionPolicy(
        "phalanx-pod-gpu-container", POD, ("CREATE",), annotations=(GPU_CONTAINER,), condition=_IS_OURS,
        rules=(CelRule("names-container", _NAMES.format(_SHARER),
                       f"write the name of one of the pod's containers into {GPU_CONTAINER}"),),
    ),
    AdmissionPolicy(
        "phalanx-pod-disruption", POD, ("CREATE",), annotations=(MIN_AVAILABLE, MAX_UNAVAILABLE),
        rules=(
            CelRule("one-disruption-bound", f"!({_annotated(MIN_AVAILABLE)} && {_annotated(MAX_UNAVAILABLE)})",
                    f"write either {MIN_AVAILABLE} or {MAX_UNAVAILABLE}"),
            CelRule("disruption-bound-reads",
                    f"['{MIN_AVAILABLE}', '{MAX_UNAVAILABLE}'].all(k, !(k in object.metadata.annotations) || "
                    f"object.metadata.annotations[k].matches('{_PERCENTAGE}'))",
                    f"write a number above 0, or a part from 1% to 99%, into {MIN_AVAILABLE} or {MAX_UNAVAILABLE}"),
        ),
    ),
)  # fmt: skip


_CHANGES_QUEUE = (
    f"authorizer.group('{_QUEUE.group}').resource('{_QUEUE.plural}').name(object.target.name).check('update').allowed()"
)
AUTHORIZING = (
    AdmissionPolicy(
        "phalanx-command-queue", COMMAND, ("CREATE", "UPDATE"),
        condition="has(object.target) && has(object.target.kind) && object.target.kind == 'Queue' && has(object.target.name)",
        rules=(CelRule("may-change-queue", _CHANGES_QUEUE,
                       "a command to a queue needs the permission to update that queue; ask those who run the cluster"),),
    ),
)  # fmt: skip
"""About who asks, which an embedded cluster does not know. Commands are in namespaces and queues are not: without this, whoever may
write commands in one namespace could close the queues of all others."""


# --- documents -----------------------------------------------------------------------------------------------------------

_API = "admissionregistration.k8s.io/v1"


def policy_documents() -> list[Document]:
    """Return the policies, each followed by its binding, always in the same order."""
    found: list[Document] = []
    for policy in MUTATING:
        changes = [{"patchType": "JSONPatch", "jsonPatch": {"expression": change.cel}} for change in policy.changes]
        spec = {**_applies(policy), "reinvocationPolicy": "IfNeeded", "mutations": changes}
        found += [_document("MutatingAdmissionPolicy", policy, spec), _binding("MutatingAdmissionPolicyBinding", policy)]
    for policy in (*VALIDATING, *AUTHORIZING):
        rules = [{"expression": rule.cel, "message": rule.message} for rule in policy.rules]
        found += [
            _document("ValidatingAdmissionPolicy", policy, {**_applies(policy), "validations": rules}),
            _binding("ValidatingAdmissionPolicyBinding", policy, validationActions=["Deny"]),
        ]
    return found


def _applies(policy: AdmissionPolicy) -> dict[str, Any]:
    kind = policy.kind
    selector = {"namespaceSelector": {"matchLabels": dict(policy.namespace_labels)}} if policy.namespace_labels else {}
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": list(policy.operations),
        "resources": [kind.plural],
    }
    annotated = " || ".join(f"({_annotated(key)})" for key in policy.annotations)
    texts = {"annotated": annotated, "concerned": policy.condition}
    conditions = [{"name": name, "expression": text} for name, text in texts.items() if text]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule], **selector},
        **({"matchConditions": conditions} if conditions else {}),
    }


def _document(kind: str, policy: AdmissionPolicy, spec: dict[str, Any]) -> Document:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": policy.name}, "spec": spec}


def _binding(kind: str, policy: AdmissionPolicy, **more: object) -> Document:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": policy.name}, "spec": {"policyName": policy.name, **more}}
