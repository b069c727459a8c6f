"""The admin pages below ``/admin``: a caller of the API in a browser (docs/admin.md).

A page shows the representations of the API and calls its operations with the principal of a session
(``calls.py``). It has no rules of its own.
"""

from collections.abc import Callable
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

import flask
from flask import Flask, Response, abort, url_for
from markupsafe import Markup

from app.api.error_pages import add_error_pages
from app.catalog import EXTENSION
from app.plugins.admin import (
    authorize,
    data,
    form_fields,
    frame,
    html,
    overview,
    privacy,
    report_pages,
    reports,
    search,
    texts,
)
from app.plugins.admin.frame import ADMIN, Admin, AdminBlueprint, NavigationItem, Panel, render
from app.plugins.admin.nouns import coupon_texts, coupon_uses, keys, refunds
from app.plugins.admin.nouns.campaigns import BATCHES, CAMPAIGNS
from app.plugins.admin.nouns.coupons import COUPONS
from app.plugins.admin.nouns.customers import CUSTOMERS
from app.plugins.admin.nouns.events import EVENTS
from app.plugins.admin.nouns.keys import KEYS
from app.plugins.admin.nouns.orders import ORDERS
from app.plugins.admin.nouns.webhooks import WEBHOOKS
from app.plugins.admin.sessions import sign_in

STATIC = Path(__file__).parent / "static"

_assets = flask.Blueprint("admin_assets", __name__)


def _hash(name: str) -> str:
    return sha256((STATIC / name).read_bytes()).hexdigest()[:16]


def asset_url(name: str) -> str:
    """Return the address of a static file."""
    return url_for("admin_assets.show", digest=_hash(name), name=name)


@_assets.route("/static/<digest>/<name>")
def show(digest: str, name: str) -> Response:
    """Return a static file of the current version."""
    path = STATIC / name
    if not path.is_file() or digest != _hash(name):
        abort(404)
    response = Response(path.read_bytes(), mimetype=guess_type(name)[0])
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return response


Content = Callable[[], Markup | str]


def add_page(
    app: Flask,
    name: str,
    label: str,
    content: Content,
    *,
    needs: tuple[str, ...] = (),
    icon: str = "puzzle",
    position: int = 900,
) -> None:
    """Add a page to the navigation, at ``/admin/x/<name>``.

    Does nothing if the admin pages are switched off.

    Args:
        app: the app.
        name: letters, digits and hyphens.
        label: the title of the page.
        content: returns the content. Plain text is escaped; markup is ``markupsafe.Markup``.
        needs: the operations of the API that the session must be able to run, by the names of
            their views. The API of the plugin checks its own rights.
        icon: the name of an icon of the pages.
        position: its place. The pages of the service have 0 to 890.
    """
    admin: Admin | None = app.extensions.get(ADMIN)
    if admin is None:
        return
    blp = AdminBlueprint(f"admin_x_{name}")

    @blp.page(f"/x/{name}", *needs)
    def show() -> object:
        return render("plugin_page.html", title=label, content=content())

    app.register_blueprint(blp, url_prefix=f"{app.config['SHOP_URL_PREFIX']}/admin")
    admin.navigation.append(NavigationItem(label, f"{blp.name}.show", icon, position))


def add_panel(
    app: Flask,
    record: str,
    label: str,
    content: Callable[[dict[str, object]], Markup | str],
    *,
    needs: tuple[str, ...] = (),
) -> None:
    """Add a panel to the page of a record.

    Args:
        app: the app.
        record: ``coupon``, ``customer`` or ``order``.
        label: the title of the panel.
        content: returns its content for the record as the API returns it.
        needs: as for ``add_page``.

    Raises:
        ValueError: the record is unknown.
    """
    if record not in {"coupon", "customer", "order"}:
        raise ValueError(f"{record!r} has no page. Use coupon, customer or order.")
    admin: Admin | None = app.extensions.get(ADMIN)
    if admin is not None:
        admin.panels.append(Panel(record, label, content, needs))


NOUNS = {
    each.resource: each
    for each in (COUPONS, CAMPAIGNS, BATCHES, ORDERS, CUSTOMERS, WEBHOOKS, EVENTS, KEYS)
}
"""The kinds of records by their names in events."""

_MORE_PAGES = (coupon_uses, refunds)  # importing these adds pages to those of coupons and orders


def init_app(app: Flask, _api: object) -> None:
    """Register the pages, unless SHOP_ADMIN is off."""
    catalog = app.extensions[EXTENSION]
    catalog.add_page, catalog.add_panel = add_page, add_panel
    if not app.config["SHOP_ADMIN"]:
        return
    prefix = f"{app.config['SHOP_URL_PREFIX']}/admin"
    app.extensions[ADMIN] = Admin(NOUNS)
    app.jinja_env.globals.update(
        asset_url=asset_url,
        nouns=NOUNS,
        coupon_texts=coupon_texts,
        form_fields=form_fields,
        reports=reports,
    )
    for part in (texts, html):
        part.init_app(app)
    pages = overview, search, report_pages, data, privacy, authorize, sign_in
    blueprints = [*(noun.blp for noun in NOUNS.values()), *(page.blp for page in pages)]
    blueprints += [report_pages.refusals, keys.sessions_blp]
    for blp in (*blueprints, _assets):
        app.register_blueprint(blp, url_prefix=prefix)
    app.extensions[ADMIN].navigation += [blp.item for blp in blueprints if blp.item]
    add_error_pages(app, prefix, frame.error_page)
