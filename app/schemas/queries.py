"""The queries, parameter by parameter, named as on the wire: ``filter[limit]``, ``page``."""

from __future__ import annotations

from app.schemas.customers import BillingAddressSchema, ShippingAddressSchema
from app.schemas.envelope import Base
from app.schemas.parameters import (
    MAX_IDS,
    ChoiceParam,
    CodeParam,
    CouponTypeParam,
    DaysParam,
    DirectionParam,
    FieldList,
    ForceWord,
    IdListParam,
    IntegerParam,
    LimitParam,
    OffsetParam,
    PageNumber,
    RedemptionStatusParam,
    SearchParam,
    StatusListParam,
    TextParam,
    TimestampParam,
)

_TIMES = "a date-time, a date (its midnight, UTC) or Unix seconds."


class Query(Base):
    """A query: the same text always means the same, so that what it means is remembered."""


class ReadQuery(Query):
    """What a read of one object takes."""

    selection = FieldList(
        "fields",
        "Only these fields of each object, separated by commas; a dot names a field of a field: "
        "`billing_address.city`.",
    )


class CustomerOrdersQuery(ReadQuery):
    """The query of a customer's orders."""


class Times(Query):
    """When a record was created and last changed (decisions 6)."""

    created_at_min = TimestampParam(
        "filter[created_at_min]", f"Created at or after this time: {_TIMES}"
    )
    created_at_max = TimestampParam(
        "filter[created_at_max]", f"Created at or before this time: {_TIMES}"
    )
    updated_at_min = TimestampParam(
        "filter[updated_at_min]", f"Changed at or after this time: {_TIMES}"
    )
    updated_at_max = TimestampParam(
        "filter[updated_at_max]", f"Changed at or before this time: {_TIMES}"
    )


class CouponFilter(Times):
    """Which coupons (decisions 4)."""

    q = TextParam("filter[q]", "Part of the code or the description, in any case.")
    type = CouponTypeParam("filter[type]", "Only this coupon type.")
    in_ = IdListParam("filter[in]", f"Only these ids, separated by commas; at most {MAX_IDS:,}.")
    not_in = IdListParam(
        "filter[not_in]", f"Without these ids, separated by commas; at most {MAX_IDS:,}."
    )


class CouponOrder(CouponFilter):
    """Which coupons, and how they are sorted."""

    offset = OffsetParam()
    order = DirectionParam(default="desc")
    orderby = ChoiceParam(
        "filter[orderby]",
        "What the list is sorted by; `date` is the creation.",
        "date", "modified", "id", "code", "amount", "usage_count", "expiry_date",
        default="date",
    )  # fmt: skip


class CouponCountQuery(CouponOrder):
    """The query of a count: offset and order are checked, and change nothing (decisions 13)."""


class CouponListQuery(CouponOrder, ReadQuery):
    """The query of a list."""

    page = PageNumber()


META_KEYS = (
    "first_name",
    "last_name",
    *(f"billing_{name}" for name in BillingAddressSchema._declared_fields),
    *(f"shipping_{name}" for name in ShippingAddressSchema._declared_fields),
)


class CustomerFilter(Times):
    """Which customers (spec 4.2, decisions 5)."""

    role = TextParam("filter[role]", "A single role; `all` is every role.", load_default="customer")
    q = SearchParam(
        "filter[q]", "Part of the e-mail, username or name, in any case; `*` is anything."
    )


class CustomerCountQuery(CustomerFilter):
    """The query of a count: paging and order are checked, and change nothing (decisions 13)."""

    limit = LimitParam()
    offset = OffsetParam()
    order = DirectionParam(default="asc")
    orderby = ChoiceParam(
        "filter[orderby]",
        "What the list is sorted by. `meta_value` and `meta_value_num` sort by the field that "
        "`filter[orderby_meta_key]` names, as text or as a number.",
        "registered", "id", "email", "login", "username", "name", "first_name", "last_name",
        "modified", "orders_count", "total_spent", "meta_value", "meta_value_num",
        default="registered",
    )  # fmt: skip
    orderby_meta_key = ChoiceParam(
        "filter[orderby_meta_key]", "Needed by `meta_value` and `meta_value_num`.", *META_KEYS
    )


class CustomerListQuery(CustomerCountQuery, ReadQuery):
    """The query of a list."""

    page = PageNumber()


class OrderFilter(Times):
    """Which orders (decisions 7)."""

    status = StatusListParam("filter[status]", "Only these statuses, separated by commas.")
    customer_id = IntegerParam("filter[customer_id]", "Only orders of this account; 0 is guests.")
    q = TextParam("filter[q]", "Part of the number, or of a name or an address, in any case.")


class OrderCountQuery(OrderFilter):
    """The query of a count: paging and order are checked, and change nothing (decisions 13)."""

    limit = LimitParam()
    offset = OffsetParam()
    order = DirectionParam(default="desc")
    orderby = ChoiceParam(
        "filter[orderby]",
        "What the list is sorted by; `date` is the creation.",
        "date", "modified", "id", "total",
        default="date",
    )  # fmt: skip


class OrderListQuery(OrderCountQuery, ReadQuery):
    """The query of a list."""

    page = PageNumber()


class RedemptionFilter(Times):
    """Which redemptions (redemptions 4)."""

    code = CodeParam("filter[code]", "Only redemptions of this coupon code.")
    coupon_id = IntegerParam("filter[coupon_id]", "Only redemptions of this coupon.")
    customer_id = IntegerParam(
        "filter[customer_id]", "Only redemptions of this account; 0 is guests."
    )
    email = TextParam("filter[email]", "Only redemptions with this e-mail, in any case.")
    reference = TextParam("filter[reference]", "Only redemptions with this reference.")
    order_id = IntegerParam("filter[order_id]", "Only redemptions of this order.")
    status = RedemptionStatusParam(
        "filter[status]", "Only these statuses, separated by commas. Expired means released."
    )


class RedemptionCountQuery(RedemptionFilter):
    """Query of a count. Paging and order are checked and change nothing."""

    limit = LimitParam()
    offset = OffsetParam()
    order = DirectionParam(default="desc")
    orderby = ChoiceParam(
        "filter[orderby]",
        "What the list is sorted by; `date` is the creation.",
        "date", "id", "expires_at",
        default="date",
    )  # fmt: skip


class RedemptionListQuery(RedemptionCountQuery, ReadQuery):
    """Query of a list."""

    page = PageNumber()


class DeleteQuery(Query):
    """The query of a delete."""

    force = ForceWord()


class TrashQuery(Query):
    """The query that empties a trash (orders 4)."""

    older_than_days = DaysParam(
        "Delete the records that have been in the trash for at least this number of days.",
        default=30,
    )
