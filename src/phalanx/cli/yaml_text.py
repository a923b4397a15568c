"""YAML of results: what the streams show as `\\u202e` is in double quotes, where it means the character."""

from typing import Any

import yaml

from phalanx.cli.streams import has_hidden

try:
    from yaml import CSafeDumper as SafeDumper
except ImportError:  # PyYAML was built without libyaml: slower, the same otherwise
    from yaml import SafeDumper  # type: ignore[assignment]  # the same interface


class _Dumper(SafeDumper):
    """Writes what `yaml.safe_dump` writes, but for strings with characters that cannot be seen."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return a string as YAML."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if has_hidden(text) else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def yaml_text(answer: Any) -> str:  # Any: whatever JSON holds
    """Return data as YAML, keys in their order."""
    text: str = yaml.dump(answer, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 16)
    return text
