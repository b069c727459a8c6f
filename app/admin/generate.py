"""Generated coupons: batches, with a preview and a file of the codes (admin 2)."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, reports, rights
from app.admin.calls import call
from app.admin.files import csv_response
from app.admin.forms import Form
from app.admin.frame import AdminBlueprint, NavigationItem, render, see_other
from app.admin.record_forms import RecordForms
from app.admin.tables import Column, Table, list_query
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.errors import ShopError
from app.schemas.coupons.batch import CHARSET, CouponBatchCreate
from app.services.coupons import batch_queries
from app.services.coupons.code_patterns import CodePattern

blp = AdminBlueprint("admin_generate", __name__)

NAVIGATION = NavigationItem(
    "Generate", "admin_generate.show_list", "layers", ("list_coupon_batches",), 110
)  # fmt: skip

PREVIEW = 5


def name_of(batch: dict[str, Any]) -> str:
    """Return the name of a batch, or its prefix and pattern."""
    return batch["name"] or f"{batch['prefix']}{batch['pattern']}"


def _columns() -> list[Column]:
    def name(row: dict[str, Any]) -> Markup:
        href = url_for("admin_generate.show", batch_id=row["id"])
        return html.link(href, name_of(row))

    return [
        Column(_("Batch"), name),
        Column(_("Codes"), lambda row: f"{row['prefix']}{row['pattern']}"),
        Column(_("Number"), lambda row: html.number(row["count"]), is_number=True),
        Column(_("Unused"), lambda row: html.number(row["unused"]), is_number=True, on_phone=True),
        Column(_("Reserved"), lambda row: html.number(row["reserved"]), is_number=True),
        Column(_("Used"), lambda row: html.number(row["used"]), is_number=True, on_phone=True),
        Column(_("Generated"), lambda row: html.time(row["created_at"]), is_number=True),
    ]


@blp.page("/batches", "list_coupon_batches")
def show_list() -> Response:
    """Show the batches."""
    query = {name: value for name, value in list_query().items() if name == "page"}
    reply = call("list_coupon_batches", query=query)
    table = Table.of_reply(_("Batches of coupons"), _columns(), reply, "batches")
    return render("batches.html", title=_("Generated coupons"), table=table)


FORMS = RecordForms(
    "coupon_batch", blp.name, CouponBatchCreate, None, "Generate coupons", "Generated coupons", "",
    key="generate", reply_key="batch", template="generate.html",
)  # fmt: skip
BATCH = {
    "pattern": "####-####", "charset": CHARSET, "coupon": {"type": "percent", "usage_limit": 1}
}  # fmt: skip
"""What the form of a batch shows at first."""


@blp.page("/batches/new", "create_coupon_batch", methods=("GET", "POST"))
def create() -> Response | BaseResponse:
    """Show the form with a preview of the codes, or generate the coupons."""

    def created(batch: dict[str, Any]) -> BaseResponse:
        return see_other("admin_generate.show", batch_id=batch["id"], done="created")

    return FORMS.create(BATCH, then=created, codes=_examples)


def _examples(form: Form) -> list[str]:
    """Return some codes of a pattern, and note an error of the pattern."""
    texts = form.texts
    try:
        pattern = CodePattern.parse(
            texts["prefix"], texts["pattern"] or "####-####", texts["charset"] or CHARSET
        )
        return pattern.random_codes(PREVIEW)
    except ShopError as error:
        if not form.errors:
            form.note(error)
        return []


@blp.page("/batches/<int:batch_id>", "get_coupon_batch")
def show(batch_id: int) -> Response:
    """Show a batch."""
    reply = call("get_coupon_batch", batch_id=batch_id)
    batch = reply.body["batch"]
    return render(
        "batch.html",
        title=_("Batch %(name)s", name=name_of(batch)),
        plot=reports.unless_slow(lambda: reports.batch_plot(batch_id))
        if rights.can("get_coupon_report")
        else None,
        batch=batch,
        sent=reply.request,
        can_trash=rights.can("delete_coupon_batch"),
    )


@blp.page("/batches/<int:batch_id>/codes.csv", "get_coupon_batch", "list_coupons")
def download(batch_id: int) -> Response:
    """Download the codes of a batch, with ``unused`` only those without a use."""
    call("get_coupon_batch", batch_id=batch_id)
    unused = bool(request.args.get("unused"))
    rows = batch_queries.codes_of(current_principal(), batch_id, unused=unused)
    name = f"codes-of-batch-{batch_id}{'-unused' if unused else ''}.csv"
    return csv_response(name, rows)


@blp.action("/batches/<int:batch_id>/trash", "delete_coupon_batch")
def trash(batch_id: int) -> BaseResponse:
    """Move the unused coupons of a batch to the trash."""
    call("delete_coupon_batch", batch_id=batch_id)
    return see_other("admin_generate.show", batch_id=batch_id, done="trashed")
