"""Loyalty points for the Shop Administration API: a complete third-party plugin.

It adds a coupon type, an order status, a key of orders, and routes that return orders. It rejects
orders that are ready for pickup without a phone number, keeps a list of all changes of orders, and
publishes an event of its own when a customer earns points.
"""

from decimal import Decimal

import marshmallow as ma
from flask import request
from flask.views import MethodView
from sqlalchemy import select

from app.plugin_api import (
    Blueprint,
    Capability,
    ChangeHook,
    NewEvent,
    Order,
    OrderExtension,
    OrderSchema,
    ShopError,
    current_principal,
    db,
    publish_events,
    registry,
    run_in_transaction,
)

PICKUP = "awaiting-pickup"
EARNED, GRANTED = "loyalty_points.earned", "loyalty_points.granted"


class Points(ma.Schema):
    """Points earned by an order."""

    points = ma.fields.Integer()


class OrdersAtPickup(ma.Schema):
    """Orders awaiting pickup."""

    orders = ma.fields.List(ma.fields.Nested(OrderSchema))


class Highlights(ma.Schema):
    """Orders nested in several places of a response."""

    best = ma.fields.Nested(OrderSchema)
    others = ma.fields.Nested(OrderSchema, many=True)
    by_number = ma.fields.Dict(keys=ma.fields.String(), values=ma.fields.Nested(OrderSchema))


blp = Blueprint("loyalty", __name__, url_prefix="/loyalty", description="Loyalty points.")


def init_app(app, api):
    """Register the plugin."""
    api.register_blueprint(blp)
    with app.app_context():
        registry().add_coupon_type("store_credit")
        registry().add_order_status(PICKUP, "Awaiting pickup")
        registry().add_order_extension(
            OrderExtension(
                "loyalty", ma.fields.Nested(Points, metadata={"deprecated": True}), points_of
            )
        )
        app.extensions["shop_loyalty"] = outbox = []
        registry().add_change_hook(
            ChangeHook("order", before_commit=require_phone, after_commit=outbox.append)
        )
        registry().add_event_type(EARNED, "A completed order earned points.")
        registry().add_event_type(GRANTED, "The shop granted points to a customer.")
        registry().add_change_hook(ChangeHook("order", before_commit=earn_points))
        # Everything that happens in the shop, including events of plugins.
        app.extensions["shop_loyalty_log"] = log = []
        registry().add_change_hook(ChangeHook("*", before_commit=log.extend))
    app.after_request(announce_end)
    # A plain Flask view, which writes its JSON by hand.
    app.add_url_rule("/loyalty-by-hand", view_func=by_hand)


def announce_end(response):
    """Announce the end of the key ``loyalty`` of orders (RFC 9745, RFC 8594)."""
    if request.blueprint == "orders":
        response.headers["Deprecation"] = "@1798761600"
        response.headers["Sunset"] = "Fri, 31 Dec 2027 00:00:00 GMT"
    return response


def require_phone(changes):
    """Reject orders that become ready for pickup and have no phone number."""
    for change in changes:
        order = change.after
        if order and order["status"] == PICKUP and not order["billing_phone"]:
            raise ShopError("shop_api_cannot_update_order", reason="its phone is missing.")


def earn_points(changes):
    """Publish an event for each order that becomes completed, in the transaction of the change."""
    for change in changes:
        order, before = change.after, change.before or {"status": None}
        if order and order["status"] == "completed" != before["status"] and order["customer_id"]:
            points = {"order_id": order["id"], "points": int(order["total"])}
            event = NewEvent(EARNED, order["customer_id"], {"loyalty_points": points})
            run_in_transaction(lambda session: publish_events(session, change, [event]))  # noqa: B023  # called at once


@blp.route("/grant/<int:customer_id>", methods=["POST"])
@blp.errors("shop_api_user_cannot_edit_customer")
@blp.response(200)
def grant_points(customer_id):
    """Grant points to a customer."""
    principal = current_principal()
    principal.require("shop_api_user_cannot_edit_customer", Capability.EDIT_USERS)
    event = NewEvent(GRANTED, customer_id, {"loyalty_points": {"points": 100}})
    run_in_transaction(lambda session: publish_events(session, principal, [event]))
    return {"granted": 100}


def points_of(orders):
    """Return a point for each whole unit of money, for all orders of a response at once."""
    return [{"points": int(Decimal(order["total"]))} for order in orders]


@blp.route("/pickup")
@blp.response(200, OrdersAtPickup)
def list_orders_at_pickup():
    """List orders awaiting pickup."""
    waiting = select(Order).where(Order.status == PICKUP).order_by(Order.id)
    return {"orders": db.session.scalars(waiting).all()}


@blp.route("/highlights")
@blp.response(200, Highlights)
def get_highlights():
    """Show the largest order and the other orders."""
    best, *others = db.session.scalars(select(Order).order_by(Order.total.desc())).all()
    by_number = {order.order_number: order for order in others}
    return {"best": best, "others": others, "by_number": by_number}


@blp.route("/newest")
class Newest(MethodView):
    """Class-based view of flask-smorest."""

    @blp.response(200, OrderSchema)
    def get(self):
        """Show the newest order, without a wrapper."""
        return db.session.scalars(select(Order).order_by(Order.id.desc()).limit(1)).one()


def by_hand():
    """Return orders without a schema."""
    orders = db.session.scalars(select(Order).order_by(Order.id)).all()
    return {
        "orders": [
            {"id": order.id, "total": str(order.total), "customer_id": order.customer_id or 0}
            for order in orders
        ]
    }
