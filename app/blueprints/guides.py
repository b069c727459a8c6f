"""Guides: the documentation site, or the Markdown files in ``docs`` if it is not built."""

import re
from html import escape

from flask import (
    Blueprint,
    Flask,
    Response,
    abort,
    current_app,
    redirect,
    request,
    send_from_directory,
)
from werkzeug.wrappers import Response as BaseResponse

from app.api.openapi.info import GUIDES, guide_title, guide_titles, guide_url
from app.api.security_headers import inline_scripts
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
_LINK_OUTSIDE = re.compile(r'<a href="\.\./[^"]*">(.*?)</a>')
_HEADING = re.compile(r"<h([2-4])>(.*?)</h\1>")

blp = Blueprint("guides", __name__)
site = Blueprint("guides", __name__)


def init_app(app: Flask, api: Api) -> None:  # noqa: ARG001  # the signature of every plugin
    """Register the routes of the site, or of the plain guides, if they are installed."""
    is_built = (SITE / "index.html").is_file()
    if is_built or GUIDES.is_dir():
        prefix = f"{app.config['SHOP_URL_PREFIX']}/docs/guides"
        app.register_blueprint(site if is_built else blp, url_prefix=prefix)


@site.route("/")
def show_start() -> BaseResponse:
    """Return the start page. Its links are relative to an address with a slash at the end."""
    return show_site("index.html") if request.path.endswith("/") else redirect("guides/")


@site.route("/<path:name>")
def show_site(name: str) -> Response:
    """Return a file of the site. Browsers ask whether their copy is still current."""
    response = send_from_directory(SITE, name)
    if name.endswith(".html"):
        scripts = inline_scripts((SITE / name).read_text(encoding="utf-8"))
        response.headers["Content-Security-Policy"] = _SITE_POLICY.format(scripts=scripts)
    return response


@site.route("/<name>.md")
def redirect_to_page(name: str) -> BaseResponse:
    """Redirect the address of a guide, as in the OpenAPI document, to its page."""
    if not _NAME.fullmatch(name) or not (SITE / f"{name}.html").is_file():
        abort(404)
    return redirect(f"{name}.html")


@blp.route("/")
def show_index() -> Response:
    """Return the links to all guides."""
    links = "\n".join(
        f'<li><a href="{guide_url(current_app.config, name)}">{escape(title)}</a></li>'
        for name, title in guide_titles().items()
    )
    return _page("Guides", f"<h1>Guides</h1>\n<ul>\n{links}\n</ul>")


@blp.route("/<name>.md")
def show_guide(name: str) -> Response:
    """Return a guide as HTML. Links between guides work as in the repository."""
    path = GUIDES / f"{name}.md"
    if not _NAME.fullmatch(name) or not path.is_file():
        abort(404)
    from markdown_it import MarkdownIt  # noqa: PLC0415  # 62 modules, needed without built pages

    text = path.read_text(encoding="utf-8")
    body = MarkdownIt("commonmark").enable("table").render(text)
    body = _LINK_OUTSIDE.sub(r"\1", body)  # files of the repository, which are not served
    body = _HEADING.sub(_with_anchor, body)
    return _page(guide_title(text), f'<nav><a href="./">All guides</a></nav>\n{body}')


@blp.route("/<name>.<any(png, svg):kind>")
def show_picture(name: str, kind: str) -> Response:
    """Return a picture of a guide."""
    return send_from_directory(GUIDES, f"{name}.{kind}")


def _page(title: str, body: str) -> Response:
    page = _PAGE.format(title=escape(title), body=body)
    return Response(page, mimetype="text/html", headers={"Content-Security-Policy": _POLICY})


def _with_anchor(heading: re.Match[str]) -> str:
    """Return a heading with an ID for links, in the same form as on code hosting sites."""
    level, text = heading.groups()
    words = re.sub(r"<[^>]*>", "", text).lower()
    anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
    return f'<h{level} id="{anchor}">{text}</h{level}>'
