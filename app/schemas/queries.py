"""Query parameters, named as on the wire: ``filter[limit]``, ``page``, ``fields``."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from app import sanitize
from app.schemas.customers import BillingAddressSchema, ShippingAddressSchema
from app.schemas.envelope import Base
from app.schemas.fields import Input

MAX_IDS = 10_000
"""Ids in one parameter: fewer than a database accepts values in one statement."""

Selection = dict[str, "Selection | None"]
"""What ``fields`` selects: names; under a name None for all of it, or a selection of its parts."""


def _nothing() -> None:
    """Be the default of what is not supplied; a plain None would stand in the document."""


class QueryField(Input):
    """A query parameter; an empty one is not supplied unless its kind says otherwise."""

    def __init__(self, data_key: str | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("load_default", _nothing)
        super().__init__(data_key=data_key, **kwargs)
        self.allow_none = False

    def convert(self, value: Any) -> Any:
        """Return the converted parameter."""
        return self.read(value) if value.strip(" ") else self.deserialize(None)

    def read(self, value: str) -> Any:
        """Convert text that is not blank, or raise ValueError."""
        raise NotImplementedError


class Words(QueryField):
    """Text, as it is."""

    openapi = {"type": "string", "maxLength": 1000}

    def read(self, value: str) -> str:
        """Return the text."""
        if len(value) > 1000:
            raise ValueError("is longer than 1000 characters.")
        return value


class WordList(Words):
    """Words, separated by commas."""

    def read(self, value: str) -> list[str]:  # type: ignore[override] # a list of what Words reads
        """Return the words."""
        return [word.strip() for word in super().read(value).split(",") if word.strip()]


class FieldList(QueryField):
    """``fields``: names, separated by commas, with one level of dots (decisions 6)."""

    openapi = {"type": "string", "examples": ["id,code"]}

    def read(self, value: str) -> Selection:
        """Return the selection."""
        selection: Selection = {}
        for name in value.split(","):
            parent, dot, child = (part.strip() for part in name.partition("."))
            if not dot:
                selection[parent] = None
            elif (parts := selection.setdefault(parent, {})) is not None:
                parts[child] = None
        return selection


class Whole(QueryField):
    """A whole number of at least ``minimum``."""

    openapi = {"type": "integer"}

    def __init__(self, data_key: str | None = None, *, minimum: int = 0, **kwargs: Any) -> None:
        super().__init__(data_key, **kwargs)
        self.minimum = minimum
        self.openapi = {"type": "integer", "minimum": minimum}

    def read(self, value: str) -> int:
        """Return the number."""
        # More digits than any record could need, fewer than Python refuses to convert.
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,100}\s*", value) or int(value) < self.minimum:
            raise ValueError(f"must be a whole number of at least {self.minimum}.")
        return int(value)


class PageNumber(Whole):
    """``page``: from 1; an empty one is not a number (decisions 6)."""

    def __init__(self) -> None:
        super().__init__(minimum=1, load_default=1)
        self.openapi = self.openapi | {"default": 1}

    def convert(self, value: Any) -> int:
        """Return the number."""
        return self.read(value)


class Limit(Whole):
    """A page size; 0 is the default, -1 is none (spec 4.2)."""

    def __init__(self, data_key: str, **kwargs: Any) -> None:
        super().__init__(data_key, minimum=-1, **kwargs)


class Pattern(Words):
    """Text to search for, in which ``*`` is anything."""

    def read(self, value: str) -> str:
        """Return the pattern. Many stars could keep a database busy for long."""
        if value.count("*") > 10:
            raise ValueError("has more than 10 stars.")
        return super().read(value)


class Moments(QueryField):
    """A date-time: ISO with or without offset and fraction, a date, or Unix seconds."""

    openapi = {"type": "string", "examples": ["2026-11-20T09:38:00Z"]}

    def read(self, value: str) -> datetime:
        """Return the moment, UTC."""
        return sanitize.moment(value)


class Choice(QueryField):
    """One of several words."""

    def __init__(self, data_key: str, *choices: str, default: str | None) -> None:
        super().__init__(data_key, load_default=default or _nothing)
        self.choices = choices
        self.openapi = {"type": "string", "enum": list(choices)}
        if default:
            self.openapi["default"] = default

    def read(self, value: str) -> str:
        """Return the word."""
        if value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}.")
        return value


class Direction(Choice):
    """``asc`` or ``desc``, in any case."""

    def read(self, value: str) -> str:
        """Return the direction in lower case."""
        return super().read(value.lower())


class Ids(QueryField):
    """Ids, separated by commas."""

    openapi = {"type": "string", "examples": ["7,12"]}

    def read(self, value: str) -> list[int]:
        """Return the ids; those beyond 64 bits identify nothing."""
        if value.count(",") >= MAX_IDS:
            raise ValueError(f"has more than {MAX_IDS} ids.")
        if not re.fullmatch(r"\s*[0-9]{1,100}\s*(,\s*[0-9]{1,100}\s*)*", value):
            raise ValueError("must be ids, separated by commas.")
        return [number for number in map(int, value.split(",")) if number <= sanitize.INT64_MAX]


class ReadQuery(Base):
    """What a read of one object takes."""

    selection = FieldList(
        "fields", metadata={"description": "Only these fields, separated by commas."}
    )


class CouponFilter(Base):
    """Which coupons (decisions 4)."""

    q = Words("filter[q]", metadata={"description": "Part of the code or the description."})
    type = Words("filter[type]", metadata={"description": "Only this coupon type."})
    created_at_min = Moments("filter[created_at_min]")
    created_at_max = Moments("filter[created_at_max]")
    updated_at_min = Moments("filter[updated_at_min]")
    updated_at_max = Moments("filter[updated_at_max]")
    in_ = Ids("filter[in]", metadata={"description": "Only these ids."})
    not_in = Ids("filter[not_in]", metadata={"description": "Without these ids."})


class CouponOrder(CouponFilter):
    """Which coupons, and how they are sorted."""

    offset = Whole("filter[offset]", metadata={"description": "Rows to skip, instead of `page`."})
    order = Direction("filter[order]", "asc", "desc", default="desc")
    orderby = Choice(
        "filter[orderby]",
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


class CustomerFilter(Base):
    """Which customers (spec 4.2, decisions 5)."""

    role = Words(
        "filter[role]",
        load_default="customer",
        metadata={"description": "A single role; `all` is every role."},
    )
    q = Pattern(
        "filter[q]",
        metadata={"description": "Part of the e-mail, username or name; `*` is anything."},
    )
    created_at_min = Moments("filter[created_at_min]")
    created_at_max = Moments("filter[created_at_max]")
    updated_at_min = Moments("filter[updated_at_min]")
    updated_at_max = Moments("filter[updated_at_max]")


class CustomerCountQuery(CustomerFilter):
    """The query of a count: paging and order are checked, and change nothing (decisions 13)."""

    limit = Limit("filter[limit]", metadata={"description": "Rows on a page; -1 is no limit."})
    offset = Whole("filter[offset]", metadata={"description": "Rows to skip, instead of `page`."})
    order = Direction("filter[order]", "asc", "desc", default="asc")
    orderby = Choice(
        "filter[orderby]",
        "registered", "id", "email", "login", "username", "name", "first_name", "last_name",
        "modified", "orders_count", "total_spent", "meta_value", "meta_value_num",
        default="registered",
    )  # fmt: skip
    orderby_meta_key = Choice("filter[orderby_meta_key]", *META_KEYS, default=None)


class CustomerListQuery(CustomerCountQuery, ReadQuery):
    """The query of a list."""

    page = PageNumber()


class OrderFilter(Base):
    """Which orders (decisions 7)."""

    status = WordList("filter[status]", metadata={"description": "Statuses, by commas."})
    customer_id = Whole(
        "filter[customer_id]", metadata={"description": "Orders of one account; 0 is guests."}
    )
    q = Words(
        "filter[q]", metadata={"description": "Part of the number, or of a name or an address."}
    )
    created_at_min = Moments("filter[created_at_min]")
    created_at_max = Moments("filter[created_at_max]")
    updated_at_min = Moments("filter[updated_at_min]")
    updated_at_max = Moments("filter[updated_at_max]")


class OrderCountQuery(OrderFilter):
    """The query of a count: paging and order are checked, and change nothing (decisions 13)."""

    limit = Limit("filter[limit]", metadata={"description": "Rows on a page; -1 is no limit."})
    offset = Whole("filter[offset]", metadata={"description": "Rows to skip, instead of `page`."})
    order = Direction("filter[order]", "asc", "desc", default="desc")
    orderby = Choice("filter[orderby]", "date", "modified", "id", "total", default="date")


class OrderListQuery(OrderCountQuery, ReadQuery):
    """The query of a list."""

    page = PageNumber()


class DeleteQuery(Base):
    """The query of a delete."""

    force = Words(metadata={"description": "`true` removes permanently instead of to the trash."})
