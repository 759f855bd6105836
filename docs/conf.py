"""The site: Sphinx reads these pages, and `make docs` writes them to build/docs."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tools"))

project = "walkback"
author = "the walkback developers"
release = version = version_of("walkback")
html_title = f"walkback {version}"

extensions = ["myst_parser", "reference"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nitpick_ignore_regex = [("py:class", ".*")]  # annotations name types that are not public

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_show_copyright = False
toc_object_entries_show_parents = "hide"
html_copy_source = False
