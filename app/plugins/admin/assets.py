"""Static files. Their addresses contain a hash, so that browsers keep them forever."""

from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

import flask
from flask import Flask, Response, abort, url_for

FOLDER = Path(__file__).parent / "static"

blp = flask.Blueprint("admin_assets", __name__)


def _hash(name: str) -> str:
    return sha256((FOLDER / name).read_bytes()).hexdigest()[:16]


def asset_url(name: str) -> str:
    """Return the address of a static file."""
    return url_for("admin_assets.show", digest=_hash(name), name=name)


@blp.route("/static/<digest>/<name>")
def show(digest: str, name: str) -> Response:
    """Return a static file of the current version."""
    path = FOLDER / name
    if not path.is_file() or digest != _hash(name):
        abort(404)
    response = Response(path.read_bytes(), mimetype=guess_type(name)[0])
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return response


def init_app(app: Flask) -> None:
    """Let templates use ``asset_url``."""
    app.jinja_env.globals["asset_url"] = asset_url
