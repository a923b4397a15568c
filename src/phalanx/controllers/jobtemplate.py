"""Job templates say which jobs were made from them."""

from collections.abc import Iterable

from phalanx.controllers.controller import NOTHING, Key, Patch, Result, View
from phalanx.controllers.jobflow import FROM_TEMPLATE
from phalanx.controllers.objects import annotations_of, inside, key_of
from phalanx.model.kinds import JOB_TEMPLATE, VOLCANO_JOB, Document, Kind

MADE_FROM_IT = "jobDependsOnList"


class JobTemplateController:
    """Keeps the lists of templates."""

    name = "jobtemplate"
    watches = (JOB_TEMPLATE, VOLCANO_JOB)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look at a template when it has changed, or one of its jobs has come or gone."""
        key = key_of(document)
        if kind is JOB_TEMPLATE:
            return [key]
        name = _template_of(document)
        template = view.find(JOB_TEMPLATE, key.namespace, name) if name else None
        is_there = view.find(VOLCANO_JOB, key.namespace, key.name) is not None
        is_listed = key.name in (inside(template or {}, "status", MADE_FROM_IT) or ())
        return [Key(key.namespace, name)] if template is not None and is_there != is_listed else []

    def reconcile(self, view: View, key: Key) -> Result:
        """List the jobs of a template."""
        template = view.find(JOB_TEMPLATE, key.namespace, key.name)
        if template is None:
            return NOTHING
        names = [key_of(job).name for job in view.within(VOLCANO_JOB, key.namespace) if _template_of(job) == key.name]
        if names == (inside(template, "status", MADE_FROM_IT) or []):
            return NOTHING
        return Result([Patch(JOB_TEMPLATE, key.namespace, key.name, {"status": {MADE_FROM_IT: names}}, is_status=True)])


def _template_of(job: Document) -> str:
    """Return the name of the template that a job was made from; empty for others."""
    return annotations_of(job).get(FROM_TEMPLATE, "").removeprefix(f"{key_of(job).namespace}.")
