"""The dialects of both versions of the legacy API (decisions 12)."""

from app.api.converters import CodeConverter
from app.api.dialect import Dialect, Schemas
from app.plugins.woocommerce.credentials import from_header_or_query
from app.plugins.woocommerce.legacy.schemas.orders import ORDERS
from app.plugins.woocommerce.legacy.schemas.records import RECORDS, CustomerV3Schema
from app.plugins.woocommerce.legacy.schemas.refunds import REFUNDS, LegacyOrderRefundV3Schema
from app.plugins.woocommerce.legacy.schemas.requests import (
    QUERIES,
    CustomerOrdersV3Query,
    native_object,
)
from app.schemas.customers import CustomerSchema
from app.schemas.orders.refund import OrderRefundSchema
from app.schemas.queries import CustomerOrdersQuery


class PlusCodeConverter(CodeConverter):
    """``{code}`` in the legacy API: a plus is a space (decisions 14)."""

    def to_python(self, value: str) -> str:
        """Return the code, or raise ValidationError if the path does not match."""
        return super().to_python(value.replace("+", " "))


def _dialect(version: str, schemas: Schemas) -> Dialect:
    return Dialect(
        f"wc-api-{version}",
        words={
            # The code of the legacy server has a plural here, unlike those of other records.
            "shop_api_user_cannot_create_webhook": "woocommerce_api_user_cannot_create_webhooks",
            "shop_api_user_cannot_view_reports": "woocommerce_api_user_cannot_read_report",
            "shop_api_": "woocommerce_api_",
            "X-Total": "X-WC-Total",
        },
        credentials=from_header_or_query,
        key_in_query=True,
        hides_methods=True,
        authenticates_first=True,
        statuses={"trashed": 202, "bulk_created": 201},
        like_put=("POST", "PATCH"),
        schemas={**QUERIES, **RECORDS, **ORDERS, **REFUNDS, **schemas},
        converters={"code": PlusCodeConverter},
        native_object=native_object,
        removes_trashed=True,
    )


DIALECTS = {
    "v2": _dialect("v2", {}),
    "v3": _dialect(
        "v3",
        {
            CustomerSchema: CustomerV3Schema,
            CustomerOrdersQuery: CustomerOrdersV3Query,
            OrderRefundSchema: LegacyOrderRefundV3Schema,
        },
    ),
}
"""The dialects by the version in the request path."""


def dialect_of(path: str) -> Dialect:
    """Return the dialect of a path below ``/wc-api/``: that of v3 if the version is unknown."""
    return DIALECTS.get(path.partition("/")[0], DIALECTS["v3"])
