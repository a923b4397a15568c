"""Fill nodes up: the fuller a node would be with the task, the better."""

from phalanx.model.shape import Shape
from phalanx.placement import Scores
from phalanx.placement.ledger import amounts_at
from phalanx.placement.score import TOP, pack
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.resource_patterns import setting_for
from phalanx.session.session import Session


class BinpackPlugin:
    """Scores by how full a node would be, weighted by resource."""

    name = "binpack"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the weights; only listed resources count, by name or by a pattern that ends in a star."""
        settings = Arguments(self.name, policy.arguments, prefixes=("binpack.resources.",))
        self.weight = settings.integer("binpack.weight", 1)
        self.weights = {"cpu": settings.integer("binpack.cpu", 1), "memory": settings.integer("binpack.memory", 1)}
        listed = settings.text("binpack.resources", "")
        for name in filter(None, (part.strip() for part in listed.split(","))):
            self.weights[name] = settings.integer(f"binpack.resources.{name}", 1)
        settings.done()
        self.weights = {name: 1 if weight < 0 else weight for name, weight in self.weights.items()}

    def node_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        """Return the score of each node of the site."""
        request, ledger = session.request_of(shape), session.ledger
        names = session.snapshot.space.names
        weighted = [(row, amount, setting_for(names[row], self.weights)) for row, amount in request.rows]
        parts = [(row, amount) for row, amount, weight in weighted if weight is not None]
        weights = [float(weight) for *_, weight in weighted if weight is not None]
        rows = [row for row, _ in parts]
        used = amounts_at(ledger.used, rows, site.nodes) + request.amounts[rows][:, None] * site.extra
        local = [(place, amount) for place, (_, amount) in enumerate(parts)]
        return pack(amounts_at(ledger.allocatable, rows, site.nodes), used, local, weights) * float(TOP * self.weight)
