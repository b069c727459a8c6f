"""The indexes of the large tables, each with the request that needs it.

Every write of a row pays for them. Add an index here with its request, or remove it.
"""

import pytest
from sqlalchemy import inspect

from app.db.session import db

INDEXES = {
    "redemptions": {
        "uq_redemptions_coupon_reference": "POST /redemptions: once for a code and a reference",
        "uq_redemptions_order_coupon": "orders with coupon_lines: one live use of a coupon",
        "ix_redemptions_slots": "POST /redemptions: reservations of a coupon; numbers of batches",
        "ix_redemptions_expiring": "the worker releases expired reservations, oldest first",
        "ix_redemptions_coupon_customer": "usage_limit_per_user by account; filter[coupon_id]",
        "ix_redemptions_coupon_email": "usage_limit_per_user by address",
        "ix_redemptions_created": "GET /redemptions in order of date, filter[created_at_min]",
        "ix_redemptions_updated": "GET /redemptions with filter[updated_at_min]",
        "ix_redemptions_expires": "GET /redemptions with filter[orderby]=expires_at",
        "ix_redemptions_expires_desc": "the same descending, with the nulls last",
        "ix_redemptions_confirmed": "GET /redemptions with filter[status]=confirmed",
        "ix_redemptions_report": "GET /reports/coupons, /reports/sales: uses of a period",
        "ix_redemptions_order_confirmed": "GET /reports/coupons: orders with a use",
        "ix_redemptions_campaign": "limits, budgets and figures of a campaign",
        "ix_redemptions_campaign_customer": "usage_limit_per_user of a campaign, by account",
        "ix_redemptions_campaign_email": "usage_limit_per_user of a campaign, by address",
        "ix_redemptions_customer": "filter[customer_id]; DELETE /customers/{id}; merges",
        "ix_redemptions_email": "filter[email]; erasure of persons",
        "ix_redemptions_reference": "filter[reference], filter[order_id]; updates of orders",
        "ix_redemptions_code": "GET /redemptions with filter[code]",
    },
    "orders": {
        "uq_orders_order_key": "links of downloads identify an order by its key",
        "ix_orders_id": "lists of several statuses, or of a period, in order of ID",
        "ix_orders_created": "GET /orders in order of date; changed in a period",
        "ix_orders_updated": "GET /orders with filter[orderby]=modified",
        "ix_orders_created_via": "wc/v3: GET /orders with created_via",
        "ix_orders_created_via_postgresql": "the number of these orders",
        "ix_orders_total": "GET /orders with filter[orderby]=total",
        "ix_orders_status_created": "GET /orders with filter[status]; the trash",
        "ix_orders_customer": "GET /customers/{id}/orders; statistics of a customer",
        "ix_orders_customer_last": "last_order_id of a customer",
        "ix_orders_customer_created": "reports of customers; first_order_only",
        "ix_orders_paying": "wc/v3: paying customers of reports/customers/totals",
        "ix_orders_parent": "permanent deletion of a parent; filter of wc/v3",
        "ix_orders_guests": "GET /orders with filter[customer_id]=0",
        "ix_orders_guests_updated": "SHOP_GUEST_ORDERS_DAYS: old orders of guests",
        "ix_orders_guest_normalized": "reports and persons: orders of a guest by address",
        "ix_orders_guest_email_sqlite": "the same for addresses in ASCII",
        "ix_orders_guest_email_postgresql": "the same for addresses in ASCII",
        "ix_orders_guest_long_emails_postgresql": "reports: guests with very long addresses",
        "ix_orders_guest_report_postgresql": "reports: guests of a period",
        "ix_orders_report_sqlite": "GET /reports/sales, /reports/customers",
        "ix_orders_report_postgresql": "GET /reports/sales, /reports/customers",
        "ix_orders_search_sqlite": "filter[q]",
        "ix_orders_unicode_emails": "reports of the previous release during an upgrade",
        "ix_orders_without_figures": "the worker completes orders of the previous release",
    },
    "coupons": {
        "uq_coupons_published_code": "one published coupon for a code",
        "ix_coupons_code": "coupons by code; wc/v3 in order of title",
        "ix_coupons_author_id": "deletion of the account of the author",
        "ix_coupons_batch": "GET /coupons with filter[batch]",
        "ix_coupons_batch_used": "used coupons of a batch",
        "ix_coupons_campaign": "GET /coupons with filter[campaign]",
        "ix_coupons_paused": "GET /coupons with filter[state]=paused",
        "ix_coupons_starts": "GET /coupons with filter[state]=scheduled",
        "ix_coupons_used_up": "GET /coupons with filter[state]=used_up",
        "ix_coupons_type": "GET /coupons with filter[type]; wc/v3: reports/coupons/totals",
        "ix_coupons_trash_type": "wc/v3: reports/coupons/totals, which count the trash",
        "ix_coupons_status_amount": "GET /coupons with filter[orderby]=amount",
        "ix_coupons_status_amount_desc": "the same descending, with the nulls last",
        "ix_coupons_status_created": "GET /coupons in order of date; the trash",
        "ix_coupons_status_expiry": "GET /coupons with filter[orderby]=expiry_date",
        "ix_coupons_status_expiry_desc": "the same descending, with the nulls last",
        "ix_coupons_status_id": "GET /coupons with filter[orderby]=id",
        "ix_coupons_status_updated": "GET /coupons changed in a period",
        "ix_coupons_status_usage_count": "GET /coupons with filter[orderby]=usage_count",
        "ix_coupons_search_sqlite": "filter[q]",
    },
    "users": {
        "uq_users_email_normalized": "an e-mail belongs to one account",
        "uq_users_username_key": "a username belongs to one account; lists by username",
        "uq_users_id_created_at": "the foreign key of roles",
        "ix_users_created": "GET /customers in order of date",
        "ix_users_updated": "GET /customers changed in a period",
        "ix_users_changed": "GET /customers changed in a period in order of ID",
        "ix_users_email": "GET /customers with filter[orderby]=email",
        "ix_users_name": "GET /customers with filter[orderby]=name",
        "ix_users_first_name": "wc/v3 in order of first name",
        "ix_users_last_name": "wc/v3 in order of last name",
        "ix_users_search_sqlite": "filter[q]",
    },
    "events": {
        "uq_events_id": "GET /events in its order",
        "ix_events_unnumbered": "numbering of events on PostgreSQL",
        "ix_events_type": "GET /events with filter[type]",
        "ix_events_resource": "history of a record",
        "ix_events_created": "GET /events with filter[created_at_min]",
        "ix_events_user": "GET /events with filter[user_id]",
        "ix_events_request": "GET /events with filter[request_id]",
        "ix_events_customer": "DELETE /customers/{id}: events of a customer",
        "ix_events_deleted_notes": "the same: events of deleted notes of orders",
    },
    "webhook_deliveries": {
        "uq_webhook_deliveries_event": "one delivery of an event to a webhook",
        "ix_webhook_deliveries_event": "removal and erasure of events",
        "ix_webhook_deliveries_webhook": "GET /webhooks/{id}/deliveries",
        "ix_webhook_deliveries_state": "the same with filter[state]",
        "ix_webhook_deliveries_due": "the worker sends due deliveries",
        "ix_webhook_deliveries_order": "the worker sends those of a resource in order",
    },
}


@pytest.mark.both_databases
@pytest.mark.parametrize("table", INDEXES)
def test_each_index_has_a_request(app, table):
    with app.app_context(), db.engine.connect() as connection:
        inspector = inspect(connection)
        unique = inspector.get_unique_constraints(table)
        found = {each["name"] for each in [*inspector.get_indexes(table), *unique]}
        on_sqlite = connection.dialect.name == "sqlite"
    others = ("_postgresql", "_desc") if on_sqlite else ("_sqlite",)
    assert found == {name for name in INDEXES[table] if not name.endswith(others)}
