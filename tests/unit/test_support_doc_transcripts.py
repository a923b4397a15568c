"""Commands in Markdown are found, and what they show is compared line by line and in order."""

from tests.support.doc_transcripts import first_missing, transcripts

PAGE = """# Page

    phalanx schedule -f a
    something else

```console
$ phalanx simulate b
one
...
$ phalanx simulate c
two
```

Words.

```yaml
three
```
"""


def test_commands_are_found_with_what_they_show() -> None:
    found = [(transcript.command, transcript.shown) for transcript in transcripts(PAGE)]
    assert found == [("phalanx schedule -f a", []), ("phalanx simulate b", ["one", "..."]), ("phalanx simulate c", ["two"])]


def test_output_is_compared_line_by_line_and_in_order() -> None:
    assert first_missing(["one", "... two", "..."], "one\nand two\nthree\n") is None
    assert first_missing(["two", "one"], "one\ntwo\n") == "one"
    assert first_missing(["one t"], "one two\n") == "one t"
