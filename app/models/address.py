"""Columns of billing and shipping addresses, shared by accounts and orders (spec 2.2, 2.3)."""

from typing import TypedDict

from sqlalchemy import text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.sql.types import Key

SHIPPING_PARTS = (
    "first_name",
    "last_name",
    "company",
    "address_1",
    "address_2",
    "city",
    "state",
    "postcode",
    "country",
)
BILLING_PARTS = (*SHIPPING_PARTS, "email", "phone")
ADDRESS_COLUMNS = (
    *(f"billing_{part}" for part in BILLING_PARTS),
    *(f"shipping_{part}" for part in SHIPPING_PARTS),
)
SHIPPING_PHONE = "shipping_phone"
"""A column beside the parts of the native API, which only some dialects show."""


class BillingColumns:
    """The 11 columns of a billing address."""

    billing_first_name: Mapped[str] = mapped_column(Key)
    billing_last_name: Mapped[str] = mapped_column(Key)
    billing_company: Mapped[str] = mapped_column(Key)
    billing_address_1: Mapped[str] = mapped_column(Key)
    billing_address_2: Mapped[str] = mapped_column(Key)
    billing_city: Mapped[str] = mapped_column(Key)
    billing_state: Mapped[str] = mapped_column(Key)
    billing_postcode: Mapped[str] = mapped_column(Key)
    billing_country: Mapped[str] = mapped_column(Key)
    billing_email: Mapped[str] = mapped_column(Key)
    billing_phone: Mapped[str] = mapped_column(Key)


class ShippingColumns:
    """The columns of a shipping address: 9 parts, and a phone number for some dialects."""

    shipping_first_name: Mapped[str] = mapped_column(Key)
    shipping_last_name: Mapped[str] = mapped_column(Key)
    shipping_company: Mapped[str] = mapped_column(Key)
    shipping_address_1: Mapped[str] = mapped_column(Key)
    shipping_address_2: Mapped[str] = mapped_column(Key)
    shipping_city: Mapped[str] = mapped_column(Key)
    shipping_state: Mapped[str] = mapped_column(Key)
    shipping_postcode: Mapped[str] = mapped_column(Key)
    shipping_country: Mapped[str] = mapped_column(Key)
    shipping_phone: Mapped[str] = mapped_column(Key, server_default=text("''"), sort_order=3)


class AddressRow(TypedDict):
    """The two addresses by their column names."""

    billing_first_name: str
    billing_last_name: str
    billing_company: str
    billing_address_1: str
    billing_address_2: str
    billing_city: str
    billing_state: str
    billing_postcode: str
    billing_country: str
    billing_email: str
    billing_phone: str
    shipping_first_name: str
    shipping_last_name: str
    shipping_company: str
    shipping_address_1: str
    shipping_address_2: str
    shipping_city: str
    shipping_state: str
    shipping_postcode: str
    shipping_country: str
    shipping_phone: str
