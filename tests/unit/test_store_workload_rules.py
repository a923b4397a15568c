"""What the API server refuses in the workloads of manifests; the messages were read off a real one."""

from typing import Any

import pytest

from phalanx.model.kinds import Document
from tests.support.submissions import owner, submit, template

RESTART = 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
NO_IMAGE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}


def job(**spec: Any) -> Document:
    return owner("batch/v1", "Job", **{"template": template(), **spec})


def deployment(**spec: Any) -> Document:
    return owner("apps/v1", "Deployment", **{"template": template({"app": "web"}), **spec})


def without(document: Document, field: str) -> Document:
    return {**document, "spec": {key: value for key, value in document["spec"].items() if key != field}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({**job(), "spec": {"template": template()}}, RESTART),
        (job(template=template(restartPolicy="Always")), RESTART),
        (
            owner("batch/v1", "CronJob", jobTemplate={"spec": {"template": template()}}),
            RESTART.replace("spec.template", "spec.jobTemplate.spec.template"),
        ),
        (job(parallelism=-3), "spec.parallelism: Invalid value: -3: must be greater than or equal to 0"),
        (job(template={"spec": {}}), "spec.template.spec.containers: Required value"),
        (job(template=NO_IMAGE), "spec.template.spec.containers[0].image: Required value"),
        (owner("batch/v1", "Job", "Train_X", template=template()), 'metadata.name: Invalid value: "Train_X"'),
        (without(deployment(), "selector"), "spec.selector: Required value"),
        (deployment(selector={"matchLabels": {"app": "other"}}), "`selector` does not match template `labels`"),
        (
            deployment(template=template({"app": "web"}, restartPolicy="Never")),
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
    ],
)
def test_a_workload_that_the_api_server_would_refuse_is_refused(document: Document, message: str) -> None:
    made = submit(document)
    ((name, text),) = made.found.refused
    assert name == f"{document['kind']} ml/{document['metadata']['name']}"
    assert f'{document["kind"]} "{document["metadata"]["name"]}" is invalid: ' in text
    assert message in text
    assert made.names == []


@pytest.mark.parametrize("document", [job(), deployment(), owner("apps/v1", "StatefulSet", "db.a-b", template=template())])
def test_what_the_api_server_takes_is_taken(document: Document) -> None:
    assert submit(document).found.refused == []


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"max": {"cpu": "500m"}}, "maximum cpu usage per Container is 500m, but limit is 1"),
        ({"max": {"memory": "1Gi"}}, ""),  # which is the default, too
        ({"min": {"cpu": "2"}}, "minimum cpu usage per Container is 2, but request is 1"),
        ({"max": {"cpu": "1"}, "min": {"cpu": "1"}}, ""),
    ],
)
def test_limit_ranges_bound_what_containers_ask_for(bounds: dict[str, Any], message: str) -> None:
    spec = {"limits": [{"type": "Container", **bounds}]}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "team", "namespace": "ml"}, "spec": spec}
    refused = submit(job(), existing=[limits]).found.refused
    assert [name for name, _ in refused] == (["Pod ml/train-00000"] if message else [])
    assert all(message in text and text.startswith('pods "train-00000" is forbidden: ') for _, text in refused)
