"""Campaigns: the table, one campaign and its form (campaigns 8)."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from flask import request
from markupsafe import Markup

from app.api.authentication import current_principal
from app.api.representations import CAMPAIGN
from app.conversions.dates import in_zone
from app.plugins.admin import html
from app.plugins.admin.calls import Record, Reply, call, loaded_query
from app.plugins.admin.forms import Form, specs_of
from app.plugins.admin.nouns import Listing, Noun
from app.plugins.admin.nouns.batches import BATCHES
from app.plugins.admin.nouns.coupons import COUPONS, best_coupons, facts_of
from app.plugins.admin.pages import Button
from app.plugins.admin.tables import Column, Tab
from app.plugins.admin.texts import gettext as _
from app.schemas.campaigns import CampaignCreate, CampaignListQuery, CampaignUpdate
from app.services.campaigns import queries
from app.services.campaigns.queries import CampaignQuery

STATES = {
    "active": ("Active", "ok"),
    "scheduled": ("Scheduled", ""),
    "paused": ("Paused", "warning"),
    "used_up": ("Used up", "warning"),
    "ended": ("Ended", ""),
}
"""Word and tone of each state."""


class CampaignPages(Noun):
    """The campaigns of the shop."""

    name = resource = "campaign"
    title, navigation, create_label = "Campaigns", ("megaphone", 105), "Create campaign"
    empty = (
        "No campaigns yet",
        (
            "A campaign gives many coupons one start and end, one limit of uses and one budget. "
            "Create one, then generate its codes."
        ),
    )
    named_by, create_schema, update_schema = ("name",), CampaignCreate, CampaignUpdate
    list_schema, query_type = CampaignListQuery, CampaignQuery
    pauses, searches = True, "Search name"
    delete_note = (
        "Only a campaign without coupons, also in the trash, and without uses can be deleted. "
        "End or pause any other one."
    )

    def name_of(self, record: Record) -> str:
        return str(record["name"])

    def badge(self, record: Record, text: str = "%(state)s") -> Markup:
        """Return the state of a campaign, within a text of another record."""
        word, tone = STATES[record["state"]]
        return html.badge(text % {"state": _(word)}, tone)

    def columns(self, *, trashed: bool) -> list[Column]:
        return [
            Column(_("Name"), self.link),
            Column(_("State"), self.badge, on_phone=True),
            Column(_("Period"), _period),
            Column(_("Uses"), _uses, is_number=True, on_phone=True),
            Column(_("Discount"), _discount, is_number=True),
        ]

    def listing(self, query: Record, *, trashed: bool) -> Listing:
        return CAMPAIGN.only(query["selection"]), queries.list_campaigns

    def query(self, given: Mapping[str, str]) -> Record:
        return {"state": given.get("state", "")}

    def tabs(self, reply: Reply) -> list[Tab]:
        q = request.args.get("q", "")
        given = CampaignQuery.of(loaded_query(CampaignListQuery, {"q": q}))
        counts = queries.counts_by_state(current_principal(), given)
        words = {name: _(word) for name, (word, _tone) in STATES.items()}
        tabs = [Tab(name, word, counts.get(name, 0)) for name, word in words.items()]
        return [Tab("", _("All"), sum(counts.values())), *tabs] if counts or q else []

    def warnings(self, form: Form) -> list[str]:
        end = html.moment_of(form.texts["ends_at"])
        is_past = end and end <= datetime.now(UTC) and form.has_new("ends_at")
        return [_("The end is in the past, so its coupons do not work.")] if is_past else []

    def values(self, record: Record) -> dict[str, object]:
        number = {"campaign": record["id"]}
        created = in_zone(html.parse_time(record["created_at"]), html.zone()).date()
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
            "facts": facts_of(specs_of(CampaignUpdate), record, {"name", "active"}),
        }


def _left(limit: Any, taken: Any, shown: Callable[[Any], str]) -> str:
    """Return what is left of a limit, or an empty string without a limit."""
    if not limit:
        return ""
    left = shown(max(limit - taken, 0 * taken))
    return _("of %(limit)s, %(left)s left", limit=shown(limit), left=left)


def _uses(campaign: Record) -> str:
    uses, limit = html.number(campaign["uses"]), campaign["usage_limit"]
    return _("%(uses)s of %(limit)s", uses=uses, limit=html.number(limit)) if limit else uses


def _discount(campaign: Record) -> str:
    given, budget = html.money(campaign["discount"]), campaign["budget"]
    if not Decimal(budget):
        return given
    return _("%(uses)s of %(limit)s", uses=given, limit=html.money(budget))


def _period(campaign: Record) -> Markup | str:
    start, end = campaign["starts_at"], campaign["ends_at"]
    if start and end:
        return html.joined([html.time(start), html.time(end)], " – ")  # noqa: RUF001  # a dash
    if start or end:
        return html.joined([_("from") if start else _("until"), html.time(start or end)], " ")
    return html.NONE


CAMPAIGNS = CampaignPages()
blp = CAMPAIGNS.blp
