"""The columns that kubectl shows of Kubernetes' own kinds."""

import pytest

from phalanx.model.kinds import KINDS, Kind
from phalanx.web.server_columns import server_columns
from tests.support.http_api import Connection

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
OURS = [kind for kind in KINDS if server_columns(kind, 0.0) is not None]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.resource)
def test_a_kind_has_the_columns_of_a_real_server(connection: Connection, kind: Kind) -> None:
    asking = Connection(connection.server, {**connection.headers, "Accept": TABLE}, connection.tls)
    found = asking.ask("GET", f"/{'apis' if kind.group else 'api'}/{kind.api_version}/{kind.plural}").body
    columns = [(column.title, int(column.is_wide)) for column in server_columns(kind, 0.0) or ()]
    assert [(item["name"], item["priority"]) for item in found["columnDefinitions"]] == columns


def test_every_kind_of_kubernetes_has_its_columns() -> None:
    without = [kind.resource for kind in KINDS if kind.is_built_in and server_columns(kind, 0.0) is None]
    assert without == ["nodes.metrics.k8s.io"]
