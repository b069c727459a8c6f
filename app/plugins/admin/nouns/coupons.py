"""Coupons: the table, the forms, one coupon, and several at once (admin 2 and 5)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from flask import Response, redirect, request
from markupsafe import Markup
from werkzeug.datastructures import Headers

from app.api.authentication import current_principal
from app.api.representations import coupons, trashed_coupons
from app.conversions.numbers import whole_number
from app.plugins.admin import html, reports
from app.plugins.admin.calls import Record, Reply, api_request, call, can, loaded_query, require
from app.plugins.admin.form_fields import CHOICES, spec_of, specs_of
from app.plugins.admin.form_pages import AnyResponse
from app.plugins.admin.forms import Form
from app.plugins.admin.lists import converted, csv_of, selected_rows
from app.plugins.admin.nouns import Listing, Noun
from app.plugins.admin.nouns.coupon_texts import (
    CAMPAIGN_STATES,
    STATES,
    coupon_warnings,
    state_of,
    type_of,
    uses_and_reserved,
)
from app.plugins.admin.pages import Button, call_if_allowed
from app.plugins.admin.selections import Action, matching_ids, selected_ids, selected_table
from app.plugins.admin.tables import CsvColumns, Tab, Table, page_number
from app.plugins.admin.texts import gettext as _
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.queries import CouponListQuery
from app.services.campaigns import queries as campaign_queries
from app.services.coupons import queries
from app.services.coupons.queries import CouponQuery
from app.services.customers.queries import emails_of
from app.services.reports.refusals import latest_refusals

CSV_PART, CSV_IDS = 1000, 100_000
"""Numbers of coupons in a CSV file that are read at once, and of IDs that are found at once.

A search finds all that match before it returns the first ID.
"""


def _with_addresses(uses: Sequence[Record]) -> list[Record]:
    """Return uses in which those of an account have its address, if they have none."""
    ids = {use["customer_id"] for use in uses if use["customer_id"] and not use["email"]}
    emails = emails_of(ids) if can("list_customers") else {}
    return [use | {"email": use["email"] or emails.get(use["customer_id"], "")} for use in uses]


class CouponPages(Noun):
    """The coupons of the shop."""

    name = resource = "coupon"
    title, navigation, create_label = "Coupons", ("ticket", 100), "Create coupon"
    named_by, create_schema, update_schema = ("code",), CouponCreate, CouponUpdate
    list_schema, query_type, queries = CouponListQuery, CouponQuery, queries
    has_trash, has_csv, pauses = True, True, True

    def badge(self, record: Record) -> Markup:
        """Return the state of a coupon, and that of its campaign unless it is active."""
        badges = [html.state_badge(STATES, state_of(record))]
        if (campaign := record["campaign"]) and campaign["state"] != "active":
            word, tone = CAMPAIGN_STATES[campaign["state"]]
            badges.append(html.badge(_("Campaign: %(state)s", state=_(word)), tone))
        return Markup(" ").join(badges)

    def prepared(self, records: list[Record]) -> list[Record]:
        """Return coupons with what else determines their state, which one statement reads."""
        found = queries.states_of([coupon["id"] for coupon in records])
        numbers = {each["campaign_id"] for each in found.values()} - {None}
        campaigns = campaign_queries.states_of(numbers)
        return [
            coupon | state | {"campaign": campaigns.get(state["campaign_id"])}
            for coupon in records
            for state in [found[coupon["id"]]]
        ]

    def csv_columns(self, *, trashed: bool) -> CsvColumns:
        state: CsvColumns = {_("State"): lambda row: self.badge(row).striptags()}
        end: CsvColumns = {_("Works until"): lambda row: html.last_day(row["expiry_date"])}
        if trashed:
            state = {_("In the trash since"): lambda row: html.sortable_time(row["trashed_at"])}
            end = {}
        return {
            _("Code"): lambda row: row["code"],
            _("Discount"): type_of,
            _("Amount"): lambda row: row["amount"],
            **state,
            _("Uses"): uses_and_reserved,
            **end,
            _("Description"): lambda row: row["description"],
            _("Campaign"): lambda row: row["campaign"] and row["campaign"]["name"],
            _("Created"): lambda row: html.sortable_time(row["created_at"]),
        }

    def listing(self, query: Record, *, trashed: bool) -> Listing:
        return (trashed_coupons if trashed else coupons)(query), queries.list_coupons

    def listed(self, operation: str, query: Record, rows: int | None) -> Reply:
        if rows is None:
            return super().listed(operation, query, None)
        # The API has no limit for coupons (decisions 4), but the page can ask for more of them.
        require(operation)
        found, as_shown = selected_rows(self, query, limit=rows, page=page_number())
        headers = Headers(found.headers("", []))
        return Reply(
            api_request(operation, query=query), {self.plural: as_shown(found.rows)}, headers
        )

    def filters(self) -> Sequence[str]:
        return "type", "campaign"

    def query(self, given: Mapping[str, str]) -> Record:
        state = given.get("state", "")
        found = {name: given.get(name, "") for name in ("type", "batch", "campaign")}
        return found | ({} if state == "trash" else {"state": state})

    def tabs(self, reply: Reply) -> list[Tab]:
        words = {"": _("All"), **html.state_words(STATES)}
        if request.args.get("q"):  # to search for each state takes too long
            return [(name, word, None) for name, word in words.items()]
        wanted = self.query({**request.args, "state": ""})
        state = request.args.get("state")
        total = int(call("count_coupons", query=wanted).content) if state else reply.total
        given = CouponQuery.of(loaded_query(CouponListQuery, wanted))
        counts = queries.counts_by_state(current_principal(), given)
        # The difference, because counting most of a million coupons takes a tenth of a second.
        active = total - sum(counts[name] for name in queries.NOT_ACTIVE)
        counts = {"": total, "active": active, **counts}
        return [(name, word, counts[name]) for name, word in words.items()]

    def list_buttons(self) -> list[Button]:
        return [Button(_("Generate"), "admin_batches.create")]

    def new_values(self) -> Mapping[str, object]:
        """Return what the form of a new coupon shows: with ``from``, a copy of another one."""
        source = whole_number(request.args.get("from", ""))
        if source is None or not can("get_coupon"):
            return {"type": "percent", "code": request.args.get("code", "")}
        copied, _etag = self.read(source)
        return copied | {"code": f"{copied['code']}-copy", "expiry_date": None}

    def warnings(self, form: Form) -> list[str]:
        return coupon_warnings(form)

    def form_values(self, form: Form) -> dict[str, object]:
        """Say why the copy of a paused coupon is paused."""
        is_paused = not form.etag and not form.texts["active"] and "from" in request.args
        text = _("The original is paused, so the copy is paused, too. *Active* starts it.")
        return {"intro": text.replace("*", "“", 1).replace("*", "”")} if is_paused else {}

    def created(self, record: Record) -> AnyResponse:
        if request.args.get("then") == "try" and can("evaluate_coupons"):
            return redirect(self.url("try_it", record["id"], done="created"), 303)
        return super().created(record)

    def values(self, record: Record) -> dict[str, object]:
        query = {"coupon_id": record["id"], "limit": 10}
        found = call_if_allowed("list_redemptions", query=query)
        uses = Table.of_reply(_("Uses"), found) if found else None
        if uses:
            uses.rows, uses.buttons = _with_addresses(uses.rows), self._use_buttons
        return {
            "buttons": [
                Button(_("Duplicate"), self.endpoint("create"), {"from": record["id"]}),
                self.switch_button(record),
                self.button(_("Redeem now"), "redeem", record),
                self.button(_("Try it"), "try_it", record),
                self.button(_("Edit"), "edit", record, tone="primary"),
            ],
            "plots": reports.coupon_plots(record["id"]),
            "uses": uses,
            "refused": refused_codes(code=record["code"]),
            "fields": Form.of_record(specs_of(CouponUpdate), self.name, record),
        }

    def user_of(self, use: Record) -> str:
        """Return the e-mail address of who used or tried a code, or what else is known."""
        return use["email"] or (f"#{use['customer_id']}" if use["customer_id"] else _("Guest"))

    def _use_buttons(self, use: Record) -> list[Button]:
        if use["order_id"] or use["status"] == "released":
            return []
        path = {"coupon_id": use["coupon_id"], "redemption_id": use["id"]}
        confirm, release = (
            Button(label, self.endpoint(way), path, name=self.user_of(use))
            for way, label in (("confirm", _("Confirm")), ("release", _("Release")))
        )
        return [confirm, release] if use["status"] == "reserved" else [release]

    def actions(self) -> dict[str, Action]:
        spec, title = spec_of(CouponUpdate, "expiry_date"), _("Setting the expiry date")
        expiry = Action(self.name, _("Set expiry date"), title, "update_coupon", spec=spec)
        title, offered = _("Moving coupons to a campaign"), dict(CHOICES["campaigns"]())
        offered[""] = offered.pop("")  # at the end, because few remove coupons from a campaign
        spec = replace(spec_of(CouponUpdate, "campaign_id"), choices=lambda: offered)
        move = Action(self.name, _("Move to campaign"), title, "update_coupon", spec=spec)
        moves = {"move": move} if len(offered) > 1 else {}
        csv = Action(self.name, _("Download CSV"), "", "list_coupons", in_trash=None)
        ways = {
            "pause": (_("Pause"), _("Pausing coupons"), "resume", False),
            "resume": (_("Resume"), _("Resuming coupons"), "pause", True),
        }
        switches = {
            name: Action(self.name, label, title, "update_coupon", undo, values={"active": active})
            for name, (label, title, undo, active) in ways.items()
        }
        return {**super().actions(), "expiry": expiry, **switches, **moves, "csv": csv}

    def act(self) -> Response:
        if request.form.get("action") != "csv":
            return super().act()
        parts = self._matching_parts() if request.form.get("everything") else [selected_ids()]
        trashed = selected_table().get("state") == "trash"
        loaded = loaded_query(self.list_schema, {"page": ""}) | {"selection": None}
        serializer, _find = self.listing(loaded, trashed=trashed)
        find = partial(queries.coupons_with_ids, current_principal(), columns=serializer.columns)
        batches = (
            converted(self, serializer, reports.from_replica(partial(find, part))) for part in parts
        )
        return csv_of(self, batches, trashed=trashed)

    def _matching_parts(self) -> Iterator[Sequence[int]]:
        after = 0
        while ids := reports.from_replica(partial(matching_ids, self, after, CSV_IDS)):
            yield from (ids[start : start + CSV_PART] for start in range(0, len(ids), CSV_PART))
            after = ids[-1]


def refused_codes(*, code: str = "", customer: tuple[int, str] | None = None) -> Table | None:
    """Return the latest refusals of a coupon or of a customer, if the key may read them."""
    if not (can("list_refusal_reports") and can("list_customers") and can("list_coupons")):
        return None
    found = latest_refusals(current_principal(), code=code, customer=customer)
    return Table(_("Refused in the last days"), [row._asdict() for row in found])


def best_coupons(query: Mapping[str, str]) -> Record:
    """Return the ten coupons with the largest discount, as ``cells.best_coupons`` shows them.

    Args:
        query: the period, as parameters of the report.
    """
    title = _("Coupons by discount")
    if not can("list_coupon_reports"):
        return {"best": None}
    query = {**query, "limit": "10", "fields": "uses,discount,revenue"}
    reply = reports.unless_slow(lambda: call("list_coupon_reports", query=query))
    if reply is None:
        return {"best": Table(title, ()), "slow": _(reports.SLOW)}
    return {"best": Table.of_reply(title, reply)}


COUPONS = CouponPages()
blp = COUPONS.blp
