"""What may be secret is not shown; what is not, is."""

import pytest

from phalanx.model.redaction import redacted, redacted_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://extender:8888/filter", "http://extender:8888/filter"),
        ("https://ada:pa55@extender:8888", "https://***@extender:8888"),
        ("https://ada:p@55@extender", "https://***@extender"),
        ("https://ghp_abc@extender/x", "https://***@extender/x"),
        ("http://extender/filter?key=pa55&x=1", "http://extender/filter?***"),
        ("no cluster at https://ada:pa55@a/b?c=d refused", "no cluster at https://***@a/b?*** refused"),
        ("mail ada@example.com", "mail ada@example.com"),
        ("allocate, backfill", "allocate, backfill"),
    ],
)
def test_addresses_are_shown_without_users_and_queries(text: str, shown: str) -> None:
    assert redacted_text(text) == shown


def test_texts_under_a_key_that_says_so_are_hidden_wherever_they_are() -> None:
    given = {"plugins": [{"arguments": {"bearerToken": "pa55", "api-key": "pa55", "tokens": 3, "password": "", "weight": "1"}}]}
    shown = {"plugins": [{"arguments": {"bearerToken": "***", "api-key": "***", "tokens": 3, "password": "", "weight": "1"}}]}
    assert redacted(given) == shown
