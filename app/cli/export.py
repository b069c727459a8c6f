"""``shop-api export``: write records to a file or to standard output."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import marshmallow as ma
from flask.cli import with_appcontext
from sqlalchemy import ColumnElement, exists
from werkzeug.datastructures import MultiDict

from app.catalog import TRASH, current_catalog
from app.cli.keys import require_schema
from app.cli.progress import showing_progress
from app.conversions.text import nearest_name
from app.db.search import Search
from app.errors import InvalidParams, ShopError
from app.import_export.export_kinds import KINDS
from app.import_export.exports import (
    complete_file,
    csv_writer,
    ndjson_writer,
    number_of,
    records,
    whole_snapshot,
)
from app.models import COUPONS, ORDERS, USER_ROLES, USERS
from app.models.coupon import CouponStatus
from app.schemas.campaigns import CampaignFilter
from app.schemas.coupons.batch import CouponBatchFilter
from app.schemas.fields.query import ChoiceParam, TextParam
from app.schemas.loading import invalid_params
from app.schemas.orders.refund import RefundFilter
from app.schemas.queries import CouponFilter, CustomerFilter, OrderFilter, Query
from app.schemas.redemptions import RedemptionFilter
from app.services.campaigns import queries as campaign_queries
from app.services.campaigns.queries import CampaignQuery
from app.services.common.filtering import ListQuery, require_known_status, within
from app.services.coupons import batch_queries
from app.services.coupons import queries as coupon_queries
from app.services.coupons.batch_queries import BatchQuery
from app.services.coupons.queries import CouponQuery
from app.services.customers import queries as customer_queries
from app.services.customers.queries import ALL_ROLES, CustomerQuery
from app.services.customers.statistics import TOTALS
from app.services.orders import queries as order_queries
from app.services.orders import refunds
from app.services.orders.queries import OrderQuery
from app.services.orders.refunds import RefundQuery
from app.services.redemptions import queries as redemption_queries
from app.services.redemptions.queries import RedemptionQuery


class _CouponFilter(CouponFilter):
    """Filters of coupons. Without a status, coupons in the trash are exported, too."""

    status = ChoiceParam("filter[status]", "Status.", *CouponStatus)


@dataclass(frozen=True, kw_only=True)
class _CouponQuery(CouponQuery):
    status: str | None = None


class _CustomerFilter(CustomerFilter):
    """Filters of customers. Without a role, all accounts are exported."""

    role = TextParam(
        "filter[role]", "A single role. `all` includes every role.", load_default=ALL_ROLES
    )


def conditions(kind: str, given: Sequence[str]) -> list[ColumnElement[bool]]:
    """Return the conditions of the filters of an export.

    Args:
        given: filters as ``name=value``. The names are those of the list of the API.

    Raises:
        InvalidParams: a filter is unknown, or its value is invalid.
    """
    found_by = _FILTERS[kind]
    schema = found_by.schema()
    names = {
        str(field.data_key).removeprefix("filter[").rstrip("]") for field in schema.fields.values()
    }
    further = schema.further
    query: MultiDict[str, str] = MultiDict()
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidParams({"--filter": f"{text!r} is not of the form NAME=VALUE."})
        parameter = _parameter(name)
        if further and further.fullmatch(parameter):
            query.add(parameter, value)
            continue
        if name not in names:
            known = f". Known filters: {', '.join(sorted(names))}."
            nearest = nearest_name(name, names)
            hint = f"; did you mean {nearest!r}?" if nearest else known
            raise InvalidParams({"--filter": f"unknown filter {name!r}{hint}"})
        query[parameter] = value
    try:
        return found_by.conditions(found_by.query.of(schema.load(query)))
    except (ma.ValidationError, InvalidParams) as error:
        found = error if isinstance(error, InvalidParams) else invalid_params(error)
        reasons = {f"--filter {_name(each.param or '')}": each.reason for each in found.parts}
        raise InvalidParams(reasons) from None


def _parameter(name: str) -> str:
    """Return the parameter of a filter: ``filter[q]``, or ``filter[metadata][erp_id]``."""
    first, bracket, rest = name.partition("[")
    return f"filter[{first}]{bracket}{rest}"


def _name(parameter: str) -> str:
    """Return the filter of a parameter: ``q`` for ``filter[q]``."""
    return parameter.removeprefix("filter[").replace("]", "", 1)


def _of_coupons(query: _CouponQuery) -> list[ColumnElement[bool]]:
    coupon_queries.require_known_filter(query)
    search, found = coupon_queries.filters_of(query)
    if query.status is not None:
        found.append(COUPONS.c.status == query.status)
    return _with(search, found)


def _of_customers(query: CustomerQuery) -> list[ColumnElement[bool]]:
    found = customer_queries.conditions_of(query)
    if query.role != ALL_ROLES:
        found.append(
            exists().where(USER_ROLES.c.user_id == USERS.c.id, USER_ROLES.c.role == query.role)
        )
    found += within(TOTALS["total_spent"], query.total_spent_min, query.total_spent_max)
    return _with(customer_queries.search_of(query), found)


def _of_orders(query: OrderQuery) -> list[ColumnElement[bool]]:
    require_known_status(query.status, [*current_catalog().order_statuses, TRASH])
    found = order_queries.conditions_of(query)
    if query.status is not None:
        found.append(ORDERS.c.status.in_(query.status))
    return _with(order_queries.search_of(query), found)


def _with(
    search: Search | None, conditions: list[ColumnElement[bool]]
) -> list[ColumnElement[bool]]:
    """Return conditions with that of a search."""
    return conditions if search is None else [*conditions, search.by_index]


class _Filter(NamedTuple):
    schema: type[Query]
    query: type[ListQuery]
    conditions: Callable[[Any], list[ColumnElement[bool]]]  # of that query


_FILTERS: Mapping[str, _Filter] = {
    "coupons": _Filter(_CouponFilter, _CouponQuery, _of_coupons),
    "customers": _Filter(_CustomerFilter, CustomerQuery, _of_customers),
    "orders": _Filter(OrderFilter, OrderQuery, _of_orders),
    "refunds": _Filter(RefundFilter, RefundQuery, refunds.conditions_of),
    "redemptions": _Filter(RedemptionFilter, RedemptionQuery, redemption_queries.conditions_of),
    "batches": _Filter(CouponBatchFilter, BatchQuery, batch_queries.conditions_of),
    "campaigns": _Filter(CampaignFilter, CampaignQuery, campaign_queries.conditions_of),
}


ALL = "all"
FORMATS = ("ndjson", "csv")
FORMAT_HELP = "Format of the file. By default, csv if its name ends with .csv, otherwise ndjson."


def format_of(given: str | None, file: str) -> str:
    """Return the format of a file: the given format, or the format of the file name."""
    return given or ("csv" if Path(file).suffix.lower() == ".csv" else "ndjson")


@click.command("export")
@click.argument("kind", type=click.Choice([*KINDS, ALL]))
@click.argument("file")
@click.option("--format", "given_format", type=click.Choice(FORMATS), help=FORMAT_HELP)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only records that match, as in lists of the API. Can be repeated.",
)
@click.option(
    "--password-hashes", is_flag=True, help="Include the hashes of the passwords of accounts."
)
@with_appcontext
def export(
    kind: str,
    file: str,
    given_format: str | None,
    filters: tuple[str, ...],
    *,
    password_hashes: bool,
) -> None:
    """Write records to FILE, or to standard output if FILE is -.

    KIND `all` writes all kinds into one NDJSON file, which `shop-api import restore` reads. The
    records of an export show the same state of the database. The trash is included.
    """
    require_schema()
    is_csv = format_of(given_format, file) == "csv"
    if is_csv and (kind == ALL or password_hashes):
        raise click.UsageError("A CSV file contains one kind of record and no password hashes.")
    if kind == ALL and filters:
        raise click.UsageError("--filter requires a kind of record.")
    try:
        wanted = conditions(kind, filters) if filters else []
    except ShopError as error:
        raise click.ClickException(str(error)) from None
    with ExitStack() as stack:
        output = stack.enter_context(complete_file(file))
        snapshot = stack.enter_context(whole_snapshot())
        for each in KINDS.values() if kind == ALL else [KINDS[kind]]:
            write = ndjson_writer(output)
            total = number_of(snapshot, each, wanted)
            with ExitStack() as parts:
                if is_csv:
                    write = parts.enter_context(csv_writer(output, each))
                note = parts.enter_context(showing_progress(each.name, total))
                done = 0
                for chunk in records(snapshot, each, wanted, password_hashes=password_hashes):
                    for record in chunk:
                        write(record)
                    done += len(chunk)
                    note(done)
            click.echo(f"{each.name}: {done:,} exported.", err=True)
