"""Inserts orders and download permissions directly into the tables."""

from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

from app.db.session import run_in_transaction
from app.models import DownloadPermission, Order
from app.models.address import ADDRESS_COLUMNS

TIMESTAMP = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LINE_ITEM = {
    "id": 11,
    "subtotal": "8.00",
    "subtotal_tax": "1.50",
    "total": "8.00",
    "total_tax": "1.50",
    "price": "4.00",
    "quantity": 2,
    "tax_class": None,
    "name": "Teapot",
    "product_id": 3,
    "sku": "SKU-003",
    "meta": [],
}
# What responses add to orders without a payment and an origin (records 3).
NO_SHIPPING_TAX = {"total_tax": "0.00", "instance_id": "", "taxes": []}
ORIGIN = {
    "transaction_id": "",
    "paid_at": None,
    "created_via": "rest-api",
    "parent_id": 0,
    "prices_include_tax": False,
    "discount_tax": "0.00",
    "cart_hash": "",
    "version": "",
}
SHIPPING_LINE = {"id": 12, "method_id": "flat_rate", "method_title": "Flat rate", "total": "1.00"}
ORDER = {
    **dict.fromkeys(ADDRESS_COLUMNS, ""),
    "customer_id": None,
    "order_number": "1001",
    "status": "completed",
    "currency": "EUR",
    "created_at": TIMESTAMP,
    "updated_at": TIMESTAMP,
    "completed_at": None,
    "total": Decimal("11.00"),
    "subtotal": Decimal("8.00"),
    "cart_tax": Decimal("1.50"),
    "shipping_tax": Decimal("0.50"),
    "total_shipping": Decimal("1.00"),
    "total_discount": Decimal("0.00"),
    "payment_method_id": "bacs",
    "payment_method_title": "Bank transfer",
    "payment_paid": True,
    "note": "",
    "customer_ip": "192.0.2.1",
    "customer_user_agent": "Mozilla/5.0",
    "line_items": [LINE_ITEM],
    "shipping_lines": [SHIPPING_LINE],
    "tax_lines": [],
    "fee_lines": [],
    "coupon_lines": [],
    "search_text": "",
    "billing_first_name": "Gast",
    "billing_last_name": "Müller",
    "billing_email": "guest@example.com",
    "shipping_city": "Köln",
}
DOWNLOAD = {
    "product_id": 3,
    "download_id": "file-3",
    "download_name": "E-book",
    "download_url": "https://shop.example/?download_file=3",
    "file_name": "E-book",
    "file_url": "https://shop.example/files/3.pdf",
    "downloads_remaining": None,
    "access_expires": None,
}


def _insert(app, model, values, complete=lambda record: None):
    def work(session):
        record = model(**values)
        session.add(record)
        session.flush()
        complete(record)
        return record.id

    with app.app_context():
        return run_in_transaction(work)


def insert_order(app, **over):
    """Insert an order and return its ID. The default order key contains the ID."""

    def complete(order):
        order.order_key = over.get("order_key", f"order_{order.id}")

    return _insert(app, Order, ORDER | {"order_key": uuid4().hex} | over, complete)


def insert_download(app, order_id, **over):
    """Insert a download permission and return its ID."""
    return _insert(app, DownloadPermission, DOWNLOAD | {"order_id": order_id} | over)
