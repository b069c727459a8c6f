"""Campaigns and generated coupons: tables, forms, codes of a batch (admin 2, campaigns 8)."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

from flask import Response, request
from markupsafe import Markup

from app.api.authentication import current_principal
from app.api.representations import CAMPAIGN
from app.config.current import shop_zone
from app.conversions.dates import in_zone
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import html, reports
from app.plugins.admin.calls import Record, Reply, call, can, loaded_query
from app.plugins.admin.form_fields import specs_of
from app.plugins.admin.form_pages import add_action
from app.plugins.admin.forms import Form
from app.plugins.admin.nouns import Listing, Noun
from app.plugins.admin.nouns.coupon_texts import CAMPAIGN_STATES, coupon_warnings
from app.plugins.admin.nouns.coupons import COUPONS, best_coupons
from app.plugins.admin.pages import Button
from app.plugins.admin.tables import Tab, Table, csv_file
from app.plugins.admin.texts import gettext as _
from app.schemas.campaigns import CampaignCreate, CampaignListQuery, CampaignUpdate
from app.schemas.coupons.batch import CHARSET, CouponBatchCreate, CouponBatchSchema
from app.services.campaigns import queries
from app.services.campaigns import queries as campaign_queries
from app.services.campaigns.queries import CampaignQuery
from app.services.coupons import batch_queries
from app.services.coupons.code_patterns import CodePattern


class CampaignPages(Noun):
    """The campaigns of the shop."""

    name = resource = "campaign"
    title, navigation, create_label = "Campaigns", ("megaphone", 105), "Create campaign"
    named_by, create_schema, update_schema = ("name",), CampaignCreate, CampaignUpdate
    list_schema, query_type = CampaignListQuery, CampaignQuery
    pauses = True
    delete_note = (
        "Only a campaign without coupons, also in the trash, and without uses can be deleted. "
        "End or pause any other one."
    )

    def badge(self, record: Record) -> Markup:
        return html.state_badge(CAMPAIGN_STATES, record["state"])

    def listing(self, query: Record, *, trashed: bool) -> Listing:
        return CAMPAIGN.only(query["selection"]), queries.list_campaigns

    def query(self, given: Mapping[str, str]) -> Record:
        return {"state": given.get("state", "")}

    def tabs(self, reply: Reply) -> list[Tab]:
        q = request.args.get("q", "")
        given = CampaignQuery.of(loaded_query(CampaignListQuery, {"q": q}))
        counts = queries.counts_by_state(current_principal(), given)
        words = html.state_words(CAMPAIGN_STATES).items()
        tabs = [(name, word, counts.get(name, 0)) for name, word in words]
        return [("", _("All"), sum(counts.values())), *tabs] if counts or q else []

    def warnings(self, form: Form) -> list[str]:
        end = html.moment_of(form.texts["ends_at"])
        is_past = end and end <= datetime.now(UTC) and form.has_new("ends_at")
        return [_("The end is in the past, so its coupons do not work.")] if is_past else []

    def values(self, record: Record) -> dict[str, object]:
        number = {"campaign": record["id"]}
        created = in_zone(html.parse_time(record["created_at"]), shop_zone()).date()
        first = max(created, date(1970, 1, 1))
        since = {"campaign": str(record["id"]), "from": first.isoformat()}
        budget = Decimal(record["budget"]) or None
        return {
            "buttons": [
                self.switch_button(record),
                Button(_("Show its coupons"), COUPONS.endpoint("show_list"), number),
                Button(_("Generate codes"), BATCHES.endpoint("create"), number),
                self.button(_("Edit"), "edit", record, tone="primary"),
            ],
            "coupons": call("count_coupons", query=number).content,
            "uses_left": _left(record["usage_limit"], record["uses"], html.number),
            "budget_left": _left(budget, Decimal(record["discount"]), html.money),
            **best_coupons(since),
            "first_day": html.short_date(first),
            "batches": BATCHES.panel(record["id"]),
            "fields": Form.of_record(specs_of(CampaignUpdate), self.name, record),
        }


def _left(limit: Decimal | int | None, taken: Decimal | int, shown: Callable[..., str]) -> str:
    """Return what is left of a limit, or an empty string without a limit."""
    if not limit:
        return ""
    left = shown(max(limit - taken, 0 * taken))
    return _("of %(limit)s, %(left)s left", limit=shown(limit), left=left)


PREVIEW = 5

FIELDS = ",".join(CouponBatchSchema._declared_fields)
"""All fields, because a response contains the campaign only on request."""


class Batches(Noun):
    """The batches of generated coupons."""

    name, plural, operation, create_key = "batch", "batches", "coupon_batch", "generate"
    resource = "coupon_batch"
    title, menu, create_label = "Generated coupons", "Generate", "Generate coupons"
    navigation = ("layers", 110)
    create_schema, deletes = CouponBatchCreate, False

    def name_of(self, record: Record) -> str:
        return record["name"] or f"{record['prefix']}{record['pattern']}"

    def title_of(self, record: Record) -> str:
        return _("Batch %(name)s", name=self.name_of(record))

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
        table = Table.of_reply(_("Batches"), reply)
        table.rows = [each | {"campaign": None} for each in table.rows]
        return table

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
            "dangers": [trash] if record["unused"] else [],
        }


CAMPAIGNS = CampaignPages()
BATCHES = Batches()
add_action(BATCHES, "trash", "delete_coupon_batch", "trashed")


@BATCHES.blp.page("/batches/<id:batch_id>/codes.csv", "get_coupon_batch", "list_coupons")
def download(batch_id: int) -> Response:
    """Download the codes of a batch, with ``unused`` only those without a use."""
    call("get_coupon_batch", batch_id=batch_id)
    unused = bool(request.args.get("unused"))
    actor = current_principal()
    rows = reports.from_replica(lambda: batch_queries.codes_of(actor, batch_id, unused=unused))
    name = f"codes-of-batch-{batch_id}{'-unused' if unused else ''}"
    return csv_file(name, [column.name for column in batch_queries.CODE_COLUMNS], [rows])
