"""Schemas of the objects of this dialect: how each is made, and described (wc-v3, OpenAPI).

A schema has the fields of an object in the order of responses, each with what it shows of a record.
OPTIONS and the OpenAPI document describe the same schemas. The names of the classes begin with
``Rest``, those in the document do not. The schemas of a kind of records are in its module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import marshmallow as ma
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from app.plugins.woocommerce.rest.site import STORED_DP, Object, Record, Site
from app.schemas.base import Base

Field = ma.fields.Field[Any]
Read = Callable[[Record, Site], object]
"""Returns the value of a field of a record."""
Convert = Callable[[Any, Site], object]
"""Returns the value of a field for what a record has."""
Make = Callable[[Sequence[Record], Site, Collection[str]], list[Object]]
"""Returns the objects of records, with some fields that are wanted, or with all."""
ReadAll = Callable[[Sequence[Record], Site], Iterable[object]]
"""Returns the values of a field of records."""

_DRAFT = "http://json-schema.org/draft-04/schema#"


def _field(
    kind: Callable[..., Field],
    of: str | Read = "",
    convert: Convert | None = None,
    *,
    all_of: ReadAll | None = None,
    required: bool = True,
    allow_none: bool = False,
) -> Field:
    """Return a field of an object.

    Args:
        of: what it shows: a key of the record, by default its name, or a function.
        convert: applied to the value of the key.
        all_of: a function that returns what it shows of all records at once.
        required: whether every object has it. ``ma.missing`` leaves it out.
    """
    metadata = {"of": of, "convert": convert, "all_of": all_of}
    return kind(required=required, allow_none=allow_none, metadata=metadata)


def _amount(value: str, site: Site) -> str:
    return site.amount(value)


Text = partial(_field, ma.fields.String)
Integer = partial(_field, ma.fields.Integer)
Number = partial(_field, ma.fields.Float)
Flag = partial(_field, ma.fields.Boolean)
Anything = partial(_field, ma.fields.Raw)
OptionalText = partial(Text, allow_none=True)
OptionalInteger = partial(Integer, allow_none=True)
Texts = partial(_field, partial(ma.fields.List, ma.fields.String))
Integers = partial(_field, partial(ma.fields.List, ma.fields.Integer))
IntegerOrZero = partial(Integer, convert=lambda value, _: value or 0)
TextOrEmpty = partial(Text, convert=lambda value, _: value or "")
Sum = partial(Text, convert=_amount)
LocalTime = partial(Text, convert=lambda time, site: site.local(time))
UtcTime = partial(Text, convert=lambda time, _: time and time[:19])


def times(of: str | Read, *, allow_none: bool = False) -> tuple[Field, Field]:
    """Return the fields of a printed UTC timestamp: the local time, and that in UTC."""
    return LocalTime(of, allow_none=allow_none), UtcTime(of, allow_none=allow_none)


def one(
    schema: type[Base],
    of: str | Read = "",
    *,
    all_of: ReadAll | None = None,
    required: bool = True,
    allow_none: bool = False,
) -> Field:
    """Return the field of an object."""
    nested = partial(ma.fields.Nested, schema)
    return _field(nested, of, all_of=all_of, required=required, allow_none=allow_none)


def many(schema: type[Base], of: str | Read = "") -> Field:
    """Return the field of a list of objects."""
    return _field(partial(ma.fields.List, ma.fields.Nested(schema)), of)


def parts(schema: type[Base], of: Callable[[Record], Sequence[Record]]) -> Field:
    """Return the field of a list of objects that are made of parts of the record."""
    make = maker(schema)

    def read(records: Sequence[Record], site: Site) -> Iterable[object]:
        found = [of(record) for record in records]
        made = iter(make([*chain.from_iterable(found)], site, ()))
        return [[*islice(made, len(each))] for each in found]

    return _field(partial(ma.fields.List, ma.fields.Nested(schema)), all_of=read)


def links(of: str | Read = "") -> Field:
    """Return the field of the links of a record by their relation."""
    values = ma.fields.List(ma.fields.Nested(RestLink))
    return _field(partial(ma.fields.Dict, values=values), of)


def maker(schema: type[Base]) -> Make:
    """Return the function that makes the objects of a schema.

    What is copied from a record is copied together, and the values of a field are made together,
    because a call for each value takes half of the time of a page of orders.
    """
    fields = {name: field.metadata for name, field in schema().fields.items()}
    optional = [name for name, field in schema().fields.items() if not field.required]
    reads = [(name, each["of"]) for name, each in fields.items() if callable(each["of"])]
    together = [(name, each["all_of"]) for name, each in fields.items() if each["all_of"]]
    converts = [(name, each["convert"]) for name, each in fields.items() if each["convert"]]
    others = [(name, convert) for name, convert in converts if convert is not _amount]
    made = {name for name, _ in (*reads, *together)}
    keys = {name: each["of"] or name for name, each in fields.items() if name not in made}
    names, first = tuple(fields), next(iter(keys.values()))
    # One more than there are names, so that the values are a tuple even of a single name.
    values = itemgetter(*(keys.get(name, first) for name in names), first)

    def make(records: Sequence[Record], site: Site, wanted: Collection[str]) -> list[Object]:
        shown = [dict(zip(names, each, strict=False)) for each in map(values, records)]
        wanted = wanted or names
        for name, read in reads:
            for each, record in zip(shown, records, strict=True) if name in wanted else ():
                each[name] = read(record, site)
        for name, read_all in together:
            found = read_all(records, site) if name in wanted else [ma.missing] * len(shown)
            for each, value in zip(shown, found, strict=True):
                each[name] = value
        for name, convert in others if site.dp == STORED_DP else converts:
            for each in shown if name in wanted else ():
                each[name] = convert(each[name], site)
        for name in optional:
            for each in shown:
                if each[name] is ma.missing:
                    del each[name]
        return shown

    return make


class RestTargetHints(Base):
    """Methods that the caller may use."""

    allow = Texts()


class RestLink(Base):
    """Link to a record."""

    href = Text()
    targetHints = one(RestTargetHints, required=False)  # noqa: N815  # the name in responses


class RestMetadata(Base):
    """Entry of metadata."""

    id = Integer()
    key = Text()
    value = Anything()


class RestBilling(Base):
    """Billing address."""

    first_name = last_name = company = address_1 = address_2 = city = state = postcode = Text()
    country = email = phone = Text()


class RestShipping(Base):
    """Shipping address."""

    first_name = last_name = company = address_1 = address_2 = city = state = postcode = Text()
    country = phone = Text()


class RestOrderStatusName(Base):
    """Status of orders with its label."""

    slug = name = Text()


class RestReport(Base):
    """Report that exists."""

    slug = description = Text()
    _links = links()


class RestReportTotal(Base):
    """Number of records of a kind."""

    slug = name = Text()
    total = Integer()


class RestSalesOfInterval(Base):
    """Sales of a day or a month."""

    sales = Text()
    orders = items = Integer()
    tax = shipping = discount = Text()
    customers = Integer()


class RestSalesReport(Base):
    """Sales of a period."""

    total_sales = net_sales = average_sales = Text()
    total_orders = total_items = Integer()
    total_tax = total_shipping = Text()
    total_refunds = Number()
    total_discount = totals_grouped_by = Text()
    totals = ma.fields.Dict(values=ma.fields.Nested(RestSalesOfInterval), required=True)
    total_customers = Integer()
    _links = links()


class RestTopSeller(Base):
    """Product of which many units were sold."""

    name = Text()
    product_id = quantity = Integer()
    _links = links()


class RestCurrency(Base):
    """Currency."""

    code = name = symbol = Text()
    _links = links()


class RestStatusEnvironment(Base):
    """Addresses and versions of the shop."""

    home_url = site_url = version = wp_version = Text()


class RestStatusSettings(Base):
    """Settings of the shop."""

    currency = Text()


class RestSystemStatusTool(Base):
    """Tool."""

    id = name = action = description = Text()


class RestAbsentRecord(Base):
    """Record that this service does not have."""

    id = Integer()


class RestSystemStatus(Base):
    """What programs check before they begin."""

    environment = one(RestStatusEnvironment)
    settings = one(RestStatusSettings)


class RestApiErrorData(Base):
    """Status of an error, and what else is known about it."""

    class Meta(Base.Meta):
        """Further fields are allowed."""

        unknown = ma.INCLUDE

    status = Integer()


class RestApiError(Base):
    """Error."""

    code = message = Text()
    data = one(RestApiErrorData)


def name_of(schema: type[Base]) -> str:
    """Return the name of a schema in the document."""
    return schema.__name__.removeprefix("Rest")


def resolved(schema: type[Base]) -> Object:
    """Return the JSON Schema of an object without references, for OPTIONS."""
    plugin: Any = MarshmallowPlugin(schema_name_resolver=lambda _: "")
    APISpec("", "", "3.1.0", plugins=[plugin])
    described = plugin.converter.schema2jsonschema(schema)
    return {"$schema": _DRAFT, "title": name_of(schema), **described}


def batch_schema() -> Object:
    """Return the schema of a batch, for OPTIONS. Each kind of record has its own items."""
    lists = {"create": "object", "update": "object", "delete": "integer"}
    properties = {name: {"type": "array", "items": {"type": kind}} for name, kind in lists.items()}
    return {"$schema": _DRAFT, "title": "batch", "type": "object", "properties": properties}
