"""A page of a list, as the API server gives long lists in parts."""

from dataclasses import dataclass

from phalanx.model.kinds import Document


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list: its objects, the version that all pages show, and the token for the next one."""

    items: list[Document]
    version: str
    continue_token: str = ""
    remaining: int = 0
    """How many objects follow."""
