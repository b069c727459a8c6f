"""The admin pages below ``/admin``: a caller of the API in a browser (docs/admin.md).

A page shows the representations of the API and calls its operations with the principal of a session
(``calls.py``). It has no rules of its own.
"""

from __future__ import annotations

from flask import Flask

from app.admin import (
    assets,
    coupon,
    coupon_selection,
    coupons,
    customers,
    data,
    events,
    frame,
    generate,
    html,
    keys,
    orders,
    overview,
    refunds,
    refusals,
    search,
    sessions,
    sign_in,
    texts,
    try_it,
    webhooks,
)
from app.api.error_pages import add_error_pages

# Importing these modules adds their pages to the blueprints of others.
_ON_OTHER_BLUEPRINTS = (coupon, refunds, try_it)

GROUPS = (
    overview,
    search,
    coupons,
    coupon_selection,
    generate,
    refusals,
    orders,
    customers,
    webhooks,
    events,
    data,
    keys,
    sessions,
    sign_in,
)
"""The modules with pages. Each has a blueprint ``blp`` and, for the navigation, ``NAVIGATION``."""


def init_app(app: Flask, api: object) -> None:  # noqa: ARG001  # the signature of every plugin
    """Register the pages, unless SHOP_ADMIN is off."""
    if not app.config["SHOP_ADMIN"]:
        return
    prefix = f"{app.config['SHOP_URL_PREFIX']}/admin"
    for part in (frame, texts, html, assets):
        part.init_app(app)
    for group in GROUPS:
        app.register_blueprint(group.blp, url_prefix=prefix)
        if item := getattr(group, "NAVIGATION", None):
            app.extensions[frame.ADMIN].navigation.append(item)
    app.register_blueprint(assets.blp, url_prefix=prefix)
    add_error_pages(app, prefix, frame.error_page)
