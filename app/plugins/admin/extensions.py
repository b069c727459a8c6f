"""What plugins add to the pages: pages and panels (docs/plugins.md)."""

from collections.abc import Callable

from flask import Flask
from markupsafe import Markup

from app.plugins.admin.frame import ADMIN, Admin, AdminBlueprint, NavigationItem, Panel, render

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
