"""How the documentation is built: `make docs`."""

project = "Phalanx"
language = "en"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Phalanx"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

highlight_language = "none"
