"""Downloads that a customer of this dialect may use (wc-v3, surface 8)."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Response

from app.db.records import Row
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import lists, schemas, stored_orders
from app.plugins.woocommerce.rest.customers import CUSTOMERS
from app.plugins.woocommerce.rest.operations import Call, Operation, Route
from app.plugins.woocommerce.rest.site import Object, Record, Site
from app.schemas.base import Base
from app.services.orders.queries import DOWNLOAD_COLUMNS, downloads_of_customer


def _download_links(record: Record, site: Site) -> Object:
    return {
        "collection": [{"href": site.url("customers", record["customer_id"], "downloads")}],
        "product": [{"href": site.url("products", record["product_id"])}],
        "order": [{"href": site.url("orders", record["order_id"])}],
    }


class RestDownloadFile(Base):
    """File of a download."""

    name = file = schemas.Text()


class RestDownload(Base):
    """Download that a customer may use."""

    download_id = download_url = schemas.Text()
    product_id = schemas.Integer()
    product_name = download_name = schemas.Text()
    order_id = schemas.Integer()
    order_key = schemas.Text()
    downloads_remaining = schemas.Text(
        convert=lambda number, _: "unlimited" if number is None else str(number)
    )
    access_expires = schemas.Text(convert=lambda time, site: site.local(time) or "never")
    access_expires_gmt = schemas.Text(
        "access_expires", lambda time, _: time[:19] if time else "never"
    )
    file = schemas.one(
        RestDownloadFile,
        lambda record, _: {"name": record["file_name"], "file": record["file_file"]},
    )
    _links = schemas.links(_download_links)


_download_objects = schemas.maker(RestDownload)


def list_downloads(call: Call) -> Response:
    """Return the downloads that a customer may use."""
    CUSTOMERS.view(call)
    names, columns = zip(*DOWNLOAD_COLUMNS.items(), strict=True)

    def made(rows: Sequence[Row]) -> list[Object]:
        shown = [dict(zip(names, row, strict=False)) for row in rows]
        products = stored_orders.product_names([each["order_id"] for each in shown])
        for each in shown:
            each["product_name"] = products.get((each["order_id"], each["product_id"]), "")
            each["customer_id"] = call.ids["id"]
        return _download_objects(shown, call.site, call.wanted)

    return lists.listed(call, downloads_of_customer(call.actor, call.ids["id"], columns), made)


ROUTES = (
    Route(
        "/customers/<id:id>/downloads",
        {
            "GET": Operation(
                list_downloads, "list", CUSTOMERS.needs[:1], arg.query(arg.VIEW),
                "List the downloads of a customer", result=RestDownload, is_list=True,
            )
        },
        also=("orders",),
    ),
)  # fmt: skip
