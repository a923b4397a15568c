"""Whatever is written into the configuration file of a running process, the process goes on with a policy that is right."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.policies import policy_of_text, profile_names, profile_text
from phalanx.live.reload import ConfigSource, Reload

GOOD = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"
SCALARS = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.sampled_from(["gang", "allocate", "x", ""])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "plugins", "arguments", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = [
    "profile", "actions", "tiers", "configurations", "flags", "metrics", "victimRule", "bestEffortMembers", "unreadyNodes",
    "plugins", "options", "kind", "data",
]  # fmt: skip
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4).map(lambda value: yaml.safe_dump(value).encode())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a profile of which some bytes were lost or replaced."""
    text = profile_text(draw(st.sampled_from(profile_names()))).encode()
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.binary(max_size=4)) + text[place + draw(st.integers(0, 40)) :]


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(DOCUMENTS | damaged() | st.binary(max_size=20), max_size=3))
def test_no_file_ends_the_process_and_the_policy_is_one_that_was_accepted(texts: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "scheduler.conf"
        path.write_text(GOOD)
        source = ConfigSource(path, partial(policy_of_text, where=str(path)))
        told: list[Reload] = []
        source.on_reload.append(told.append)
        for text in texts:
            before, heard = source.policy, len(told)
            path.write_bytes(text)
            source.poll()
            was_applied = len(told) > heard and told[-1].is_applied
            assert was_applied or source.policy is before
            assert all(outcome.is_applied or str(path) in outcome.message for outcome in told)
