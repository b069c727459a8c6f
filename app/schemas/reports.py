"""Reports in responses, and their query parameters (reports 1 and 2)."""

import re
from datetime import date

import marshmallow as ma

from app.conversions.intervals import DAY, INTERVALS
from app.errors import invalid
from app.schemas.base import Base, list_response, response
from app.schemas.fields import output as fields
from app.schemas.fields.query import (
    ChoiceParam,
    DirectionParam,
    IntegerParam,
    LimitParam,
    QueryField,
)
from app.schemas.queries import PageQuery, Query

FIRST_YEAR, LAST_YEAR = 1970, 9000
_INTERVALS = "Figures of each interval of the period, the earliest first."

PREVIOUS = {"description": "The same figures for the period of equal length before."}


class OrderFigures(Base):
    """Figures of orders."""

    orders = fields.Number("Number of orders.")
    items = fields.Number("Units in the orders.")
    total = fields.Amount("Sum of the orders.")
    discount = fields.Amount("Sum of their discounts.")
    shipping = fields.Amount("Sum of their shipping, without taxes.")
    tax = fields.Amount("Sum of their taxes, with those of shipping.")
    fees = fields.Amount("Sum of their fees.")
    refunds = fields.Number("Number of refunds.")
    refunded = fields.Amount("Sum of the refunds.")
    net = fields.Amount("`total` without shipping, taxes and refunds.")
    average_order = fields.Amount("`total` divided by `orders`.")


class SalesFigures(OrderFigures):
    """Figures of sales."""

    customers = fields.Number("Number of different customers. A guest is an e-mail address.")
    new_customers = fields.Number("Number of accounts that were created.")
    uses = fields.Number("Number of confirmed uses of coupons.")


class CouponFigures(Base):
    """Figures of a coupon."""

    uses = fields.Number("Number of confirmed uses.")
    orders = fields.Number("Number of orders with a use.")
    customers = fields.Number("Number of different customers with a use.")
    discount = fields.Amount("Sum of the discounts of the uses.")
    revenue = fields.Amount("Sum of the orders with a use.")
    average_order = fields.Amount("`revenue` divided by `orders`.")
    new_customers = fields.Number("Number of customers whose first order has a use.")
    first_use = fields.OptionalTimestamp("Time of the first use in the period, or null.")
    last_use = fields.OptionalTimestamp("Time of the last use in the period, or null.")


ORDER_FIGURES = tuple(OrderFigures().fields)
SALES_FIGURES = tuple(SalesFigures().fields)
COUPON_FIGURES = tuple(CouponFigures().fields)


class DateParam(QueryField):
    """A date, ``YYYY-MM-DD``."""

    openapi = {"type": "string", "format": "date", "examples": ["2026-11-01"]}

    def read(self, value: str) -> date:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            try:
                found = date.fromisoformat(value)
            except ValueError:
                found = date.min
            if FIRST_YEAR <= found.year <= LAST_YEAR:
                return found
        raise invalid("must be a date YYYY-MM-DD of the years {0} to {1}.", FIRST_YEAR, LAST_YEAR)


class CurrencyParam(QueryField):
    """A currency code."""

    openapi = {"type": "string", "pattern": "^[A-Za-z]{3}$", "examples": ["USD"]}

    def read(self, value: str) -> str:
        if not re.fullmatch("[A-Za-z]{3}", value):
            raise ValueError("must be three letters.")
        return value.upper()


class FiguresParam(QueryField):
    """``fields``: names of figures, separated by commas. By default, all of them."""

    is_list = True

    def __init__(self, names: tuple[str, ...]) -> None:
        meaning = "Figures in the response, separated by commas. The others are not computed."
        self.names = names
        super().__init__("fields", meaning, load_default=lambda: names)
        name = f"({'|'.join(self.names)})"
        examples = ["orders,discount"]
        self.openapi = {"type": "string", "pattern": f"^{name}(,{name})*$", "examples": examples}

    def read(self, value: str) -> tuple[str, ...]:
        wanted = {*value.split(",")}
        if wanted - {*self.names}:
            raise invalid("must be of {0}.", ", ".join(self.names))
        return tuple(name for name in self.names if name in wanted)


class PeriodQuery(Query):
    """Period of a report, and the format of the response."""

    since = DateParam(
        "filter[from]",
        "First day in the time zone of the shop. By default, the 30 days until `filter[to]`.",
    )
    until = DateParam("filter[to]", "Last day, which is included. By default, today.")
    format = ChoiceParam(
        "format", "`csv` returns the same rows as a CSV file.", "json", "csv", default="json"
    )


class CurrencyQuery(PeriodQuery):
    """Query of a report of one currency."""

    currency = CurrencyParam(
        "filter[currency]",
        "Only orders in this currency. By default, the currency of the shop.",
    )


class IntervalReportQuery(CurrencyQuery):
    """Query of a report with intervals."""

    interval = ChoiceParam(
        "filter[interval]",
        "Length of the intervals. A week begins on Monday. At most 1,000 intervals.",
        *INTERVALS,
        default=DAY,
    )


class SalesReportQuery(IntervalReportQuery):
    """Query of the report of sales."""

    figures = FiguresParam(SALES_FIGURES)


class RefusalReportListQuery(PageQuery, PeriodQuery):
    """Query of the report of refused codes."""

    limit = LimitParam()


class CouponReportListQuery(PageQuery, CurrencyQuery):
    """Query of the report of coupons."""

    figures = FiguresParam(COUPON_FIGURES)
    campaign = IntegerParam(
        "filter[campaign]",
        "Only coupons that are in this campaign now, with all their uses.",
    )
    limit = LimitParam()
    order = DirectionParam(default="desc")
    orderby = ChoiceParam(
        "filter[orderby]",
        "Sort key.",
        "uses",
        "orders",
        "discount",
        "revenue",
        "code",
        default="discount",
    )


class CustomerReportListQuery(PageQuery, CurrencyQuery):
    """Query of the report of customers."""

    limit = LimitParam()
    order = DirectionParam(default="desc")
    orderby = ChoiceParam(
        "filter[orderby]", "Sort key.", "orders", "total", "refunded", default="total"
    )


class ReportInterval(Base):
    """Name and start of an interval."""

    start = fields.Timestamp("First instant of the whole interval, which can be before the period.")
    label = fields.String(
        "Interval in the time zone of the shop, such as `2026-11-01`, "
        "`2026-11-01T01:00-05:00`, `2026-W44`, `2026-11` or `2026`."
    )


# In CSV files and the documentation, the fields of the last base class are the first.
class SalesInterval(SalesFigures, ReportInterval):
    """Sales of an interval."""


class CouponInterval(CouponFigures, ReportInterval):
    """Figures of a coupon in an interval."""


class SalesTotals(SalesFigures):
    """Sales of a period."""

    previous = ma.fields.Nested(SalesFigures, required=True, metadata=PREVIOUS)


class CouponTotals(CouponFigures):
    """Figures of a coupon in a period."""

    previous = ma.fields.Nested(CouponFigures, required=True, metadata=PREVIOUS)


class SalesReportSchema(Base):
    """Sales of a period."""

    currency = fields.String("Currency of the figures.")
    currencies = fields.StringList("Other currencies of orders that count in the period.")
    interval = fields.String("Length of the intervals.")
    time_zone = fields.String("Time zone of the shop.")
    from_ = fields.String("First day of the period.", data_key="from")
    to = fields.String("Last day of the period.")
    totals = ma.fields.Nested(SalesTotals, required=True)
    intervals = fields.objects(SalesInterval, _INTERVALS)


class ReportedCoupon(Base):
    """Coupon of a report."""

    id = fields.OptionalIdentifier("Coupon ID, or null if it was permanently deleted.")
    code = fields.String("Coupon code.")
    type = fields.OptionalString("Coupon type, or null if the coupon was permanently deleted.")
    status = fields.OptionalString("`published`, `trash`, or null if it was permanently deleted.")


class OfCoupon(Base):
    """Coupon that figures are of."""

    coupon = ma.fields.Nested(ReportedCoupon, required=True)


class CouponSummarySchema(CouponFigures, OfCoupon):
    """Coupon with a figure in the period."""


class CouponReportSchema(OfCoupon):
    """Figures of a coupon in a period."""

    totals = ma.fields.Nested(CouponTotals, required=True)
    intervals = fields.objects(CouponInterval, _INTERVALS)


class ReportedCustomer(Base):
    """Customer of a report."""

    id = fields.Number("Customer ID, or 0 for a guest.")
    email = fields.String("E-mail address.")
    first_name = fields.String("First name. That of a guest is from the latest order.")
    last_name = fields.String("Last name. That of a guest is from the latest order.")


class OfCustomer(Base):
    """Customer that figures are of."""

    customer = ma.fields.Nested(ReportedCustomer, required=True)


class CustomerReportSchema(OrderFigures, OfCustomer):
    """Customer with an order or a refund in the period."""


class OrderReportSchema(Base):
    """Orders of a period in a status."""

    status = fields.String("Status of the orders.")
    label = fields.String("Label of the status.")
    orders = fields.Number("Number of orders.")
    total = fields.Amount("Sum of the orders.")


class RefusalReportSchema(Base):
    """Coupon code that was refused in the period, with the first reason."""

    code = fields.String("First 100 characters of the code. Empty for codes that are not kept.")
    coupon_id = fields.OptionalIdentifier("ID of the coupon with this code, or null.")
    reason = fields.String("Code of the reason, as in an evaluation.")
    count = fields.Number("How often the code was refused for this reason.")
    first_at = fields.Timestamp("Time of the first refusal in the period.")
    last_at = fields.Timestamp("Time of the last refusal in the period.")


SalesReportResponse = response(SalesReportSchema, "sales")
CouponReportResponse = response(CouponReportSchema, "coupon_report")
CouponReportList = list_response(CouponSummarySchema, "coupon_reports")
CustomerReportList = list_response(CustomerReportSchema, "customer_reports")
OrderReportList = list_response(OrderReportSchema, "order_reports")
RefusalReportList = list_response(RefusalReportSchema, "refusal_reports")
