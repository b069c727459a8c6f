"""Hooks of MkDocs for the documentation site: pages and links outside of ``docs``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file by its path

from field_page import fields_page

_ROOT = Path(__file__).parents[1]
_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "clients/python/README.md": "client-python.md",
    "clients/typescript/README.md": "client-typescript.md",
}
_BEHIND_OTHERS = {"Measurements", "Contributors", "Endpoints", "Fields"}
"""Sections and pages that follow the others in results of the search."""
_LINK_OUTSIDE = re.compile(r"(?<!!)\[([^]]*)\]\(\.\./([^)\s]+)\)")
_ERROR_CODE = re.compile(r"^\| `([a-z_-]+)` \|(?= [0-9]{3} \|)", re.MULTILINE)
_FILE_NAME = re.compile(r"\[([a-z-]+\.md)\]\((?=\1[#)])")
_LINK_FROM_ROOT = re.compile(r"(?<=\]\()(?![a-z]+:|#|docs/)(?=[^)\s])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are outside of ``docs``, and the page of all fields."""
    for source, name in _PAGES.items():
        text = _LINK_FROM_ROOT.sub("../", (_ROOT / source).read_text(encoding="utf-8"))
        text = text.replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "fields.md", content=fields_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # the signature of the hook
    """Return the text of a page whose links lead to pages of the site only.

    Links to other files of the repository become their text, as the site does not contain them. The
    text of a link that is the name of a file becomes the title of its page.
    """

    def on_site(link: re.Match[str]) -> str:
        text, target = link.groups()
        path, _, anchor = target.partition("#")
        if path not in _PAGES:
            return text
        shown = path.removesuffix(".md").capitalize() if text == path else text
        return f"[{shown}]({_PAGES[path]}{'#' if anchor else ''}{anchor})"

    def with_title(link: re.Match[str]) -> str:
        first = (Path(config.docs_dir) / link[1]).read_text(encoding="utf-8").partition("\n")[0]
        return f"[{first.lstrip('# ')}]("

    names = {page.parent and page.parent.title, markdown.partition("\n")[0].lstrip("# ")}
    if names & _BEHIND_OTHERS:
        page.meta["search"] = {"boost": 0.02}
    # The header `Link` of an error leads to its code.
    markdown = _ERROR_CODE.sub(r'| <span id="\1"></span>`\1` |', markdown)
    return _FILE_NAME.sub(with_title, _LINK_OUTSIDE.sub(on_site, markdown))


def on_post_build(config: MkDocsConfig) -> None:
    """Write the index of the search as a script, too, which pages that are opened as files load."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
