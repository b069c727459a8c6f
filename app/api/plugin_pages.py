"""Pages and panels of plugins (docs/plugins.md). They are not shown without admin pages."""

from flask import Flask

from app.catalog import EXTENSION


def add_page(app: Flask, *args: object, **options: object) -> None:
    """Add a page to the navigation of the admin pages."""
    app.extensions[EXTENSION].add_page(app, *args, **options)


def add_panel(app: Flask, *args: object, **options: object) -> None:
    """Add a panel to the page of a record."""
    app.extensions[EXTENSION].add_panel(app, *args, **options)
