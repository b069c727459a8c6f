"""Query parameters of each list and count, with their names: ``filter[limit]``, ``page``.

The names are those of the specification. The native API also accepts their plain
names, such as ``limit``, and documents these (decisions 16).

``app.schemas.fields.query`` converts each parameter. The modules ``queries.py`` in ``app.services``
turn a loaded query into SQL.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import marshmallow as ma

from app.errors import InvalidParams, Sentence
from app.schemas.base import Base
from app.schemas.customers import BillingAddressSchema, ShippingAddressSchema
from app.schemas.fields import json_schema
from app.schemas.fields import query as params
from app.schemas.fields.json_schema import MAX_IDS

TIMES = "A date-time in UTC or with an offset."


_INDEX = re.compile(r"\[\d*\]$")


class Query(Base):
    """Parameters of a request.

    Parsed queries are cached by their text, so a field must not depend on anything else.

    Attributes:
        undocumented: names of parameters that are checked and have no effect (decisions 13). The
            OpenAPI document omits them (decisions 16).
        further: pattern of further names, which contain a part of the condition.
        about_further: sentences about them for the description of an operation.
    """

    undocumented: frozenset[str] = frozenset()
    further: re.Pattern[str] | None = None
    about_further = ""

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each parameter by its plain name: ``filter[limit]`` by ``limit``."""
        names = [field.data_key or name for name, field in self.load_fields.items()]
        return {params.plain(name): name for name in names} | {name: name for name in names}

    def specified_name(self, name: str) -> str:
        """Return the name of a parameter, given its name or plain name. Others are unchanged."""
        first, bracket, rest = name.partition("[")
        further = f"filter[{first}]{bracket}{rest}"
        if self.further and self.further.fullmatch(further):
            return further
        return self.names.get(name, name)

    @cached_property
    def lists(self) -> set[str]:
        """The names of the parameters that are lists."""
        return {
            field.data_key or name
            for name, field in self.load_fields.items()
            if isinstance(field, params.QueryField) and field.is_list
        }

    def without_index(self, name: str) -> str:
        """Return ``status`` for ``status[]`` and ``status[0]`` if it is a list."""
        own = _INDEX.sub("", name)
        return own if self.specified_name(own) in self.lists else name

    def joined(self, sent: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the parameters. The values of a repeated list are joined.

        Raises:
            InvalidParams: a parameter that is neither a list nor a further one is repeated.
        """
        values: dict[str, list[str]] = {}
        for name, value in sent:
            values.setdefault(name, []).append(value)
        repeated = {
            name: "must be sent only once."
            for name, each in values.items()
            if len(each) > 1 and name not in self.lists and name in self.names
        }
        if repeated:
            raise InvalidParams(repeated)
        return [
            (name, value)
            for name, each in values.items()
            for value in ([",".join(each)] if name in self.lists else each)
        ]


class ReadQuery(Query):
    """Query of a request that returns records."""

    selection = params.FieldList(
        "fields",
        "Fields of the records in the response, separated by commas, for example "
        "`id,billing_address.city`. The records then have only these fields.",
    )


class RecordQuery(ReadQuery):
    """Query of a request that returns records with metadata."""

    meta = params.TrueWord("filter[meta]", "`true` adds `metadata` to the records in the response.")


class CustomerOrdersQuery(RecordQuery):
    """Query of the orders of a customer."""


class CountQuery(Query):
    """Base of counts, which check the parameters of the list. Paging and order have no effect."""

    undocumented = frozenset({"limit", "offset", "order", "orderby", "orderby_meta_key"})


class PageQuery(Query):
    """Base of lists with pages."""

    # Blank text means the first page (decisions 14).
    page = params.IntegerParam(meaning="Page number, starting with 1.", minimum=1, load_default=1)


class LimitQuery(Query):
    """Base of lists with a limit, an offset and a sort direction."""

    limit = params.LimitParam()
    offset = params.OffsetParam()
    order = params.DirectionParam(default="desc")


MAX_METADATA_FILTERS = 5
"""Conditions on metadata in a query (records 5)."""


class MetadataFilter(Query):
    """Filter by metadata: ``filter[metadata][KEY]=VALUE``, or a key and a value of their own.

    Loaded, ``metadata`` is a list of keys, each with its value, or None for any value.
    """

    further = re.compile(r"filter\[metadata\]\[([^\[\]]+)\]")
    about_further = (
        "`filter[metadata][KEY]=VALUE` finds records by their metadata. Up to "
        f"{MAX_METADATA_FILTERS} such filters must all match."
    )

    metadata_key = params.ExactText(
        "filter[metadata_key]",
        "Only records with this key in their metadata, and with the value of "
        "`filter[metadata_value]`, if given. `filter[metadata][KEY]=VALUE` is a shorter form, "
        f"which can be repeated with other keys. At most {MAX_METADATA_FILTERS} conditions.",
    )
    metadata_value = params.ExactText(
        "filter[metadata_value]",
        "Value of `filter[metadata_key]`: text of at most 255 characters, which is compared "
        "exactly. Numbers and booleans are found by their JSON text.",
    )

    @ma.post_load(pass_original=True)
    def collect_metadata(
        self, data: dict[str, Any], original: Mapping[str, object], **_: object
    ) -> dict[str, object]:
        """Return the query with all conditions in ``metadata``."""
        key, value = data.pop("metadata_key", None), data.pop("metadata_value", None)
        conditions = [(key, value)] if key else []
        if value and not key:
            raise ma.ValidationError("requires metadata_key.", "filter[metadata_value]")
        conditions += self._bracketed(original)
        if len(conditions) > MAX_METADATA_FILTERS:
            reason = Sentence("has more than {0} conditions.", MAX_METADATA_FILTERS)
            raise ma.ValidationError([reason], "filter[metadata]")
        return {**data, "metadata": conditions}

    def _bracketed(self, original: Any) -> Iterator[tuple[str, str]]:
        for name in original:
            if self.further and (found := self.further.fullmatch(name)):
                # A parameter that is repeated is several conditions.
                values = (
                    original.getlist(name) if hasattr(original, "getlist") else [original[name]]
                )
                for value in values:
                    if "\0" in name or "\0" in value:
                        raise ma.ValidationError("must not contain a NUL character.", name)
                    yield found[1], value


class Times(Query):
    """Filter by creation and update times (decisions 6)."""

    created_at_min = params.TimestampParam(
        "filter[created_at_min]", f"Only records created at or after this time. {TIMES}"
    )
    created_at_max = params.TimestampParam(
        "filter[created_at_max]", f"Only records created at or before this time. {TIMES}"
    )
    updated_at_min = params.TimestampParam(
        "filter[updated_at_min]", f"Only records updated at or after this time. {TIMES}"
    )
    updated_at_max = params.TimestampParam(
        "filter[updated_at_max]", f"Only records updated at or before this time. {TIMES}"
    )


class CouponFilter(Times, MetadataFilter):
    """Filter of coupons (decisions 4)."""

    q = params.TextParam(
        "filter[q]", "Text in the code or the description. Letter case and accents do not matter."
    )
    type = params.TextParam(
        "filter[type]", "Only coupons of this type.", openapi=json_schema.KNOWN_COUPON_TYPE
    )
    code = params.CodeParam(
        "filter[code]", "Only coupons with exactly this code, in any letter case."
    )
    state = params.ChoiceParam(
        "filter[state]",
        "Only coupons in this state, the first that holds: `expired`, `paused`, `scheduled` (not "
        "started), `used_up` (all uses are taken or reserved), or `active`.",
        "active",
        "expired",
        "paused",
        "scheduled",
        "used_up",
    )
    in_ = params.IdListParam(
        "filter[in]", f"Only these IDs, separated by commas. At most {MAX_IDS:,}."
    )
    not_in = params.IdListParam(
        "filter[not_in]", f"Without these IDs, separated by commas. At most {MAX_IDS:,}."
    )
    batch = params.IntegerParam(
        "filter[batch]", "Only coupons that were generated with this batch."
    )
    campaign = params.IntegerParam("filter[campaign]", "Only coupons of this campaign.")


class CouponOrder(CouponFilter):
    """Filter and order of coupons."""

    offset = params.OffsetParam()
    order = params.DirectionParam(default="desc")
    orderby = params.ChoiceParam(
        "filter[orderby]",
        "Sort key. `date` is the creation time, `uses` the same as `usage_count`.",
        "date",
        "modified",
        "id",
        "code",
        "amount",
        "usage_count",
        "uses",
        "expiry_date",
        default="date",
    )


class CouponCountQuery(CountQuery, CouponOrder):
    """Query of a count of coupons."""


class CouponListQuery(PageQuery, CouponOrder, RecordQuery):
    """Query of a list of coupons. Coupons have no ``filter[limit]`` in the native API."""


META_KEYS = (
    "first_name",
    "last_name",
    *(f"billing_{name}" for name in BillingAddressSchema().fields),
    *(f"shipping_{name}" for name in ShippingAddressSchema().fields),
)


class CustomerFilter(Times, MetadataFilter):
    """Filter of customers (spec 4.2, decisions 5)."""

    role = params.TextParam(
        "filter[role]",
        "Only accounts with this role. `all` includes every role.",
        load_default="customer",
    )
    q = params.SearchParam(
        "filter[q]",
        "Text in the e-mail address, username or name. `*` matches any text. Letter case and "
        "accents do not matter.",
    )
    tag = params.CodeParam("filter[tag]", "Only customers with this tag, in any letter case.")
    total_spent_min = params.AmountParam(
        "filter[total_spent_min]", "Only customers whose `total_spent` is at least this amount."
    )
    total_spent_max = params.AmountParam(
        "filter[total_spent_max]", "Only customers whose `total_spent` is at most this amount."
    )


class CustomerOrder(LimitQuery, CustomerFilter):
    """Filter and order of customers."""

    order = params.DirectionParam(default="asc")
    orderby = params.ChoiceParam(
        "filter[orderby]",
        "Sort key. `meta_value` and `meta_value_num` sort by the field in "
        "`filter[orderby_meta_key]`, as text or as a number.",
        "registered",
        "id",
        "email",
        "login",
        "username",
        "name",
        "first_name",
        "last_name",
        "modified",
        "orders_count",
        "total_spent",
        "meta_value",
        "meta_value_num",
        default="registered",
    )
    orderby_meta_key = params.ChoiceParam(
        "filter[orderby_meta_key]",
        "Field to sort by. Required by `meta_value` and `meta_value_num`.",
        *META_KEYS,
    )


class CustomerCountQuery(CountQuery, CustomerOrder):
    """Query of a count of customers."""


class CustomerListQuery(PageQuery, CustomerOrder, RecordQuery):
    """Query of a list of customers."""


class OrderFilter(Times, MetadataFilter):
    """Filter of orders (decisions 7)."""

    status = params.StatusListParam(
        "filter[status]", "Only orders in these statuses, separated by commas."
    )
    customer_id = params.IntegerParam(
        "filter[customer_id]", "Only orders of this customer. 0 means guests."
    )
    q = params.TextParam(
        "filter[q]",
        "Text in the order number, an address, a line or the payment, or in the name, username or "
        "e-mail address of the account. Letter case and accents do not matter.",
    )
    total_min = params.AmountParam(
        "filter[total_min]", "Only orders whose `total` is at least this amount."
    )
    total_max = params.AmountParam(
        "filter[total_max]", "Only orders whose `total` is at most this amount."
    )


class OrderOrder(LimitQuery, OrderFilter):
    """Filter and order of orders."""

    orderby = params.ChoiceParam(
        "filter[orderby]",
        "Sort key. `date` is the creation time.",
        "date",
        "modified",
        "id",
        "total",
        default="date",
    )


class OrderCountQuery(CountQuery, OrderOrder):
    """Query of a count of orders."""


class OrderListQuery(PageQuery, OrderOrder, RecordQuery):
    """Query of a list of orders."""


class DeleteQuery(Query):
    """Query of a deletion."""

    force = params.TrueWord(
        meaning="`true` deletes the record permanently. Otherwise it is moved to the trash."
    )


class TrashQuery(Query):
    """Query that empties a trash (orders 4)."""

    older_than_days = params.DaysParam(
        "Delete the records that have been in the trash for at least this number of days.",
        default=30,
    )
