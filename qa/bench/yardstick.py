"""Views to compare the service with, on the same gunicorn and without authentication."""

from __future__ import annotations

import os

from flask import Flask, Response, jsonify
from sqlalchemy import case, create_engine, func, select
from sqlalchemy.orm import Session

from app.models import Order, User, UserRole
from app.schemas.customers import CustomerSchema
from app.services.coupons import refusals

READY = b'{"coupon": {"id": 1, "code": "summer", "type": "percent", "amount": "15.00"}}\n'
PAID = Order.status.in_(("processing", "completed"))

app = Flask("bench")
app.config["DATABASE_URL"] = os.environ["DATABASE_URL"]
engine = create_engine(app.config["DATABASE_URL"])
app.config["SHOP_TIMEZONE"] = "UTC"
refusals.init_app(app)  # gunicorn.conf.py starts them


@app.get("/healthz")
@app.get("/ready")
def ready() -> Response:
    """Return a ready JSON response. This bare view is the yardstick B."""
    return Response(READY, mimetype="application/json")


@app.get("/customers")
def customers() -> Response:
    """List the first 100 customers with plain ORM code and few queries."""
    with Session(engine) as session:
        users = session.scalars(
            select(User)
            .join(UserRole, UserRole.user_id == User.id)
            .where(UserRole.role == "customer")
            .order_by(User.created_at, User.id)
            .limit(100)
        ).all()
        ids = [user.id for user in users]
        roles = {
            role.user_id: role.role
            for role in session.scalars(select(UserRole).where(UserRole.user_id.in_(ids)))
        }
        statistics = {
            row.customer_id: row
            for row in session.execute(
                select(
                    Order.customer_id,
                    func.count().label("count"),
                    func.max(Order.id).label("last"),
                    func.sum(case((PAID, Order.total))).label("spent"),
                )
                .where(Order.customer_id.in_(ids))
                .group_by(Order.customer_id)
            )
        }
        newest = [row.last for row in statistics.values()]
        dates = dict(
            session.execute(select(Order.id, Order.created_at).where(Order.id.in_(newest))).all()
        )
        session.scalar(select(func.count()).where(UserRole.role == "customer"))
        for user in users:
            found = statistics.get(user.id)
            vars(user).update(
                role=roles[user.id],
                avatar_url=user.email,
                orders_count=found.count if found else 0,
                total_spent=found.spent if found else None,
                last_order_id=found.last if found else None,
                last_order_date=dates[found.last] if found else None,
            )
        return jsonify({"customers": CustomerSchema(many=True).dump(users)})
