"""The admin pages below ``/admin``: a caller of the API in a browser (docs/admin.md).

A page shows the representations of the API and calls its operations with the principal of a session
(``calls.py``). It has no rules of its own.
"""

from flask import Flask

from app.api.error_pages import add_error_pages
from app.catalog import EXTENSION
from app.plugins.admin import (
    assets,
    authorize,
    data,
    extensions,
    frame,
    html,
    overview,
    privacy,
    refusals,
    report_pages,
    search,
    texts,
)
from app.plugins.admin.nouns import (
    NOUNS,
    batches,
    campaigns,
    coupon_uses,
    customer_merges,
    events,
    refunds,
    try_it,
    webhooks,
)
from app.plugins.admin.sessions import invitations, sign_in

# Importing these modules adds their records, or pages to those of others.
_OTHERS = (batches, campaigns, coupon_uses, customer_merges, events, refunds, try_it, webhooks)


def init_app(app: Flask, _api: object) -> None:
    """Register the pages, unless SHOP_ADMIN is off."""
    catalog = app.extensions[EXTENSION]
    catalog.add_page, catalog.add_panel = extensions.add_page, extensions.add_panel
    if not app.config["SHOP_ADMIN"]:
        return
    prefix = f"{app.config['SHOP_URL_PREFIX']}/admin"
    app.extensions[frame.ADMIN] = frame.Admin()
    for part in (texts, html, assets):
        part.init_app(app)
    found = overview, search, report_pages, refusals, data, privacy, authorize
    pages = (*found, sign_in, invitations)
    blueprints = [*(noun.blp for noun in NOUNS.values()), *(page.blp for page in pages)]
    for blp in (*blueprints, assets.blp):
        app.register_blueprint(blp, url_prefix=prefix)
    app.extensions[frame.ADMIN].navigation += [blp.item for blp in blueprints if blp.item]
    add_error_pages(app, prefix, frame.error_page)
