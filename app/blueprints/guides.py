"""Guides: the documentation site, or the Markdown files in ``docs`` if it is not built."""

import re
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from flask import (
    Blueprint,
    Config,
    Flask,
    Response,
    abort,
    current_app,
    redirect,
    request,
    send_from_directory,
)
from werkzeug.wrappers import Response as BaseResponse

from app.api.error_pages import hashes_of
from app.api.openapi.info import GUIDES, guide_title, guides_url
from app.api.smorest import Api
from app.config.files import folder_of

SITE = folder_of("site")
"""Folder of the site that ``make docs`` builds. Without it, each guide is a plain page."""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ font: 16px/1.6 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto }}
:root {{ color-scheme: light dark; background: light-dark(oklch(0.982 0 0), oklch(0.175 0 0)) }}
body {{ color: light-dark(oklch(0.24 0 0), oklch(0.93 0 0)) }}
a {{ color: light-dark(oklch(0.45 0.19 277), oklch(0.79 0.11 277)); text-underline-offset: 2px }}
h1 {{ font-size: 1.75rem }}
h2 {{ font-size: 1.25rem; margin-top: 2rem }}
h1, h2, h3, h4, strong, th {{ font-weight: 600 }}
body {{ padding: 0 1rem }}
p, ul, ol, blockquote {{ max-width: 56rem }}
pre {{ overflow-x: auto; padding: 1rem; background: #8881 }}
code {{ font-size: 0.9em }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
td:last-child code {{ overflow-wrap: anywhere }}
th, td {{ border: 1px solid #8886; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top }}
img {{ max-width: 100% }}
</style>
{body}
</html>
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; frame-ancestors 'none'"
# Allows the files of the site, the inline scripts that MkDocs writes, and icons in its style sheet.
_SITE_POLICY = (
    "default-src 'none'; script-src 'self' {scripts}; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NAME = re.compile(r"[a-z0-9-]+")
_LINK = re.compile(r'<a href="((?:\.\./)?[\w/.-]+)(?:#[^"]*)?">(.*?)</a>')
_HEADING = re.compile(r"<h([2-4])>(.*?)</h\1>")

_LINK_TO_GUIDE = re.compile(r"(\]\([a-z0-9-]+)\.md(?=[#)])")
_TABLE_ROW = re.compile(r"^\| \[([^]]+)\]\(([a-z0-9-]+)\.md\) \| (.*) \|$", re.MULTILINE)

_HINT = """<p><em>These are plain pages. In the folder of the service, <code>make docs</code> builds
the site with navigation, search and all fields. Restart the service to see it here.</em></p>
"""

blp = Blueprint("guides", __name__)
site = Blueprint("guides", __name__)
llms = Blueprint("llms", __name__)


def init_app(app: Flask, _api: Api) -> None:
    """Register the routes of the site, or of the plain guides, if they are installed."""
    is_built = (SITE / "index.html").is_file()
    if is_built or GUIDES.is_dir():
        prefix = f"{app.config['SHOP_URL_PREFIX']}/docs/guides"
        app.register_blueprint(site if is_built else blp, url_prefix=prefix)
    if GUIDES.is_dir():
        app.register_blueprint(llms, url_prefix=app.config["SHOP_URL_PREFIX"] or None)


@site.route("/")
def show_start() -> BaseResponse:
    """Return the start page. Its links are relative to an address with a slash at the end."""
    return show_site("index.html") if request.path.endswith("/") else redirect("guides/")


@site.route("/<path:name>")
def show_site(name: str) -> Response:
    """Return a file of the site. Browsers ask whether their copy is still current."""
    response = send_from_directory(SITE, name)
    if name.endswith(".html"):
        scripts = hashes_of("script", (SITE / name).read_text(encoding="utf-8"))
        response.headers["Content-Security-Policy"] = _SITE_POLICY.format(scripts=scripts)
    return response


@site.route("/<name>.md")
def redirect_to_page(name: str) -> BaseResponse:
    """Redirect the address of a guide, as in the OpenAPI document, to its page."""
    if not _NAME.fullmatch(name) or not (SITE / f"{name}.html").is_file():
        abort(404)
    return redirect(f"{name}.html")


@site.route("/<name>.html.md")
@blp.route("/<name>.html.md")
def show_markdown(name: str) -> Response:
    """Return a guide as Markdown, at the address that llmstxt.org proposes."""
    text = _LINK_TO_GUIDE.sub(r"\1.html.md", _text_of(name))
    return Response(text, content_type="text/markdown; charset=utf-8")


@llms.route("/llms.txt")
def show_llms() -> Response:
    """Return the list of the guides for language models, made of the tables of the start page."""
    config = current_app.config
    title, first, *rest = _text_of("index").split("\n\n")
    sections = [
        f"{part}\n\n{links}"
        for part, table in pairwise(rest)
        if (links := "\n".join(_llms_links(config, table)))
    ]
    summary = f"> {' '.join(first.split())}"
    document = f"- [OpenAPI document]({config['SHOP_URL_PREFIX']}/openapi.json): Every operation"
    text = "\n\n".join([title, summary, document, *sections]) + "\n"
    return Response(text, content_type="text/markdown; charset=utf-8")


def _llms_links(config: Config, table: str) -> Iterator[str]:
    for title, name, task in _TABLE_ROW.findall(table):
        if (GUIDES / f"{name}.md").is_file():
            yield f"- [{title}]({guides_url(config)}{name}.html.md): {task}"


@blp.route("/")
def show_index() -> BaseResponse:
    """Return the start page, which links all guides. Its links are relative, too."""
    return show_guide("index") if request.path.endswith("/") else redirect("guides/")


@blp.route("/<name>.md")
def show_guide(name: str) -> Response:
    """Return a guide as HTML. Links between guides work as in the repository."""
    text = _text_of(name)
    from markdown_it import MarkdownIt  # noqa: PLC0415  # 62 modules, needed without built pages

    body = MarkdownIt("commonmark").enable("table").render(text)
    body = _HEADING.sub(_with_anchor, _LINK.sub(_if_served, body))
    top = _HINT if name == "index" else '<nav><a href="./">All guides</a></nav>\n'
    return _page(guide_title(text), f"{top}{body}")


@blp.route("/<name>.<any(png, svg):kind>")
def show_picture(name: str, kind: str) -> Response:
    """Return a picture of a guide."""
    return send_from_directory(GUIDES, f"{name}.{kind}")


def _text_of(name: str) -> str:
    path = GUIDES / f"{name}.md"
    if not _NAME.fullmatch(name) or not path.is_file():
        abort(404)
    return path.read_text(encoding="utf-8")


def _page(title: str, body: str) -> Response:
    page = _PAGE.format(title=escape(title), body=body)
    return Response(page, mimetype="text/html", headers={"Content-Security-Policy": _POLICY})


def _if_served(link: re.Match[str]) -> str:
    """Return a link, or only its text if it leads to a file that is not a guide."""
    path = GUIDES / link[1]
    return link[0] if path.parent == GUIDES and path.is_file() else link[2]


def _with_anchor(heading: re.Match[str]) -> str:
    """Return a heading with an ID for links, in the same form as on code hosting sites."""
    level, text = heading.groups()
    words = re.sub(r"<[^>]*>", "", text).lower()
    anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
    return f'<h{level} id="{anchor}">{text}</h{level}>'
