"""How the documentation is built: `make docs`."""

project = "Phalanx"
copyright = "the Phalanx authors, Apache 2.0"
language = "en"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Phalanx"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"source_directory": "docs/"}

highlight_language = "none"
