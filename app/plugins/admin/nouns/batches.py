"""Generated coupons: batches, with a preview and a file of the codes (admin 2)."""

from collections.abc import Mapping

from flask import Response, request
from markupsafe import Markup

from app.api.authentication import current_principal
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import html, reports
from app.plugins.admin.calls import Record, call, can
from app.plugins.admin.forms import Form
from app.plugins.admin.nouns import Noun
from app.plugins.admin.nouns.coupons import coupon_warnings, linked_campaign
from app.plugins.admin.pages import Button
from app.plugins.admin.tables import Column, Table, csv_file
from app.plugins.admin.texts import gettext as _
from app.schemas.coupons.batch import CHARSET, CouponBatchCreate, CouponBatchSchema
from app.services.campaigns import queries as campaign_queries
from app.services.coupons import batch_queries
from app.services.coupons.code_patterns import CodePattern

PREVIEW = 5

FIELDS = ",".join(CouponBatchSchema._declared_fields)
"""All fields, because a response contains the campaign only on request."""


class Batches(Noun):
    """The batches of generated coupons."""

    name, plural, operation, create_key = "batch", "batches", "coupon_batch", "generate"
    resource = "coupon_batch"
    title, menu, create_label = "Generated coupons", "Generate", "Generate coupons"
    navigation = ("layers", 110)
    empty = (
        "No generated coupons yet",
        (
            "Generate up to ten thousand coupons with random codes that cannot be guessed, for a "
            "mailing or for printed cards."
        ),
    )
    create_schema, deletes = CouponBatchCreate, False

    def name_of(self, record: Record) -> str:
        return record["name"] or f"{record['prefix']}{record['pattern']}"

    def title_of(self, record: Record) -> str:
        return _("Batch %(name)s", name=self.name_of(record))

    def columns(self, *, trashed: bool) -> list[Column]:
        def name(row: Record) -> Markup:
            if not (campaign := row["campaign"]):
                return self.link(row)
            text = Markup('{}<br><small class="muted">{}</small>')
            return text.format(self.link(row), _("Campaign: %(name)s", name=campaign["name"]))

        return [
            Column(_("Batch"), name),
            Column(_("Codes"), lambda row: f"{row['prefix']}{row['pattern']}"),
            Column.of(_("Number"), "count"),
            Column.of(_("Unused"), "unused", on_phone=True),
            Column.of(_("Reserved"), "reserved"),
            Column.of(_("Used"), "used", on_phone=True),
            Column.of(_("Generated"), "created_at", html.time),
        ]

    def new_values(self) -> Mapping[str, object]:
        """Return what the form shows at first, with ``campaign`` that campaign."""
        number = whole_number(request.args.get("campaign", ""))
        found = campaign_queries.states_of([number]) if number and can("get_campaign") else {}
        return {
            "name": found[number]["name"] if number in found else "",
            "pattern": "####-####",
            "charset": CHARSET,
            "coupon": {"type": "percent", "usage_limit": 1, "campaign_id": next(iter(found), None)},
        }

    def prepared(self, records: list[Record]) -> list[Record]:
        """Return batches with the names and states of their campaigns."""
        found = campaign_queries.states_of({each["campaign_id"] for each in records} - {None})
        return [each | {"campaign": found.get(each["campaign_id"])} for each in records]

    def query(self, given: Mapping[str, str]) -> dict[str, object]:
        return {"fields": FIELDS, "campaign": given.get("campaign", "")}

    def read(self, record_id: int) -> tuple[Record, str]:
        reply = call("get_coupon_batch", query={"fields": FIELDS}, batch_id=record_id)
        return self.prepared([reply.content])[0], ""

    def panel(self, campaign_id: int) -> Table:
        """Return the latest batches of a campaign."""
        query = self.query({"campaign": str(campaign_id)}) | {"limit": 10}
        reply = call("list_coupon_batches", query=query)
        table = Table.of_reply(_("Batches"), self.columns(trashed=False), reply)
        table.rows = [each | {"campaign": None} for each in table.rows]
        return table

    def list_notice(self) -> str:
        number = request.args.get("campaign", "")
        return _("Only batches of campaign %(id)s.", id=number) if number else ""

    def warnings(self, form: Form) -> list[str]:
        return coupon_warnings(form, "coupon.")

    def form_values(self, form: Form) -> dict[str, object]:
        """Return some codes of the pattern, and note an error of the pattern."""
        texts = form.texts
        try:
            pattern = CodePattern.parse(
                texts["prefix"], texts["pattern"] or "####-####", texts["charset"] or CHARSET
            )
            return {"codes": pattern.random_codes(PREVIEW)}
        except ShopError as error:
            if not form.errors:
                form.note(error)
            return {}

    def values(self, record: Record) -> dict[str, object]:
        number, download = record["id"], self.endpoint("download")
        campaign = record["campaign"]
        question = _(
            "Move %(count)s unused coupons to the trash?", count=html.number(record["unused"])
        )
        trash = self.button(_("Trash the unused coupons"), "trash", record, question=question)
        return {
            "buttons": [
                Button(_("Show its coupons"), "admin_coupons.show_list", {"batch": number}),
                Button(_("Download unused codes"), download, {"batch_id": number, "unused": 1}),
                self.button(_("Download codes"), "download", record, tone="primary"),
            ],
            "plots": reports.batch_plots(number) if record["used"] else [],
            "campaign": campaign and linked_campaign(campaign),
            "dangers": [trash] if record["unused"] else [],
        }


BATCHES = Batches()
blp = BATCHES.blp
BATCHES.runs("trash", "delete_coupon_batch", "trashed")


@blp.page("/batches/<id:batch_id>/codes.csv", "get_coupon_batch", "list_coupons")
def download(batch_id: int) -> Response:
    """Download the codes of a batch, with ``unused`` only those without a use."""
    call("get_coupon_batch", batch_id=batch_id)
    unused = bool(request.args.get("unused"))
    actor = current_principal()
    rows = reports.from_replica(lambda: batch_queries.codes_of(actor, batch_id, unused=unused))
    name = f"codes-of-batch-{batch_id}{'-unused' if unused else ''}"
    return csv_file(name, [column.name for column in batch_queries.CODE_COLUMNS], [rows])
