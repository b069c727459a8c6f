"""Measure whether a shop keeps the usage limit of a coupon when many customers use it at once.

    python3 qa/coupon_race URL --adapter shop-api --clients 50 --limit 20

The exit status is 0 if the shop granted exactly the limit, 1 if it granted more, and 2 if the
measurement failed. README.md describes the adapters.
"""

import argparse
import ipaddress
import os
import re
import sys
from urllib.parse import urlsplit

from adapters.base import Adapter
from adapters.medusa import Medusa
from adapters.shop_api import LegacyOrders, Orders, Redemptions
from adapters.vendure import Vendure
from adapters.woocommerce import WooCommerce
from connection import Connection, RaceError
from race import LOST, Result, run

ADAPTERS: dict[str, type[Adapter]] = {
    "shop-api": Redemptions,
    "shop-api-orders": Orders,
    "shop-api-legacy": LegacyOrders,
    "woocommerce": WooCommerce,
    "medusa": Medusa,
    "vendure": Vendure,
}
EXCEEDED, FAILED = 1, 2


def parse_arguments() -> argparse.Namespace:
    """Return the arguments, or exit with status 2."""
    parser = argparse.ArgumentParser("coupon_race", description=__doc__.splitlines()[0])
    parser.add_argument("url", help="address of the shop, such as http://127.0.0.1:8000")
    parser.add_argument("--adapter", choices=ADAPTERS, required=True)
    parser.add_argument("--clients", type=int, default=50, help="default: 50")
    parser.add_argument("--limit", type=int, default=20, help="usage limit (default: 20)")
    for name in ("key", "secret"):
        variable = f"COUPON_RACE_{name.upper()}"
        default = os.environ.get(variable, "")
        parser.add_argument(f"--{name}", default=default, help=f"default: ${variable}")
    parser.add_argument(
        "--campaign",
        choices=("limit", "budget"),
        default="",
        help="use several codes, which have the limit together, or a budget for as many uses",
    )
    parser.add_argument("--clean", action="store_true", help="remove what was created")
    parser.add_argument("--yes", action="store_true", help="test a shop on another machine")
    arguments = parser.parse_args()
    parts = re.fullmatch(r"https?://(\[[0-9a-f:]+\]|[\w.-]+)(:\d+)?(/[^\s?#]*)?", arguments.url)
    if not parts or int((parts[2] or ":0")[1:]) > 65535:
        parser.error("URL must be an http or https URL without credentials and query")
    if not 0 < arguments.limit < arguments.clients <= 500:
        parser.error("--limit must be at least 1, and --clients greater than that, at most 500")
    if arguments.campaign and not ADAPTERS[arguments.adapter].campaigns:
        parser.error(f"{arguments.adapter} has no campaigns")
    if not arguments.key:
        parser.error("set COUPON_RACE_KEY and COUPON_RACE_SECRET, or --key and --secret")
    return arguments


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def report(result: Result, uses: int, limit: int) -> int:
    """Print the result and return the exit status."""
    rejected, unknown = result.failures(rejected=True), result.failures(rejected=False)
    outcomes = f"{rejected.total()} rejected, {unknown.total()} without a result"
    print(f"{len(result.outcomes)} clients, at most {result.overlap()} requests at the same time")
    print(f"{result.acknowledged} acknowledged, {outcomes}; the shop counts {uses} uses")
    granted = max(uses, result.acknowledged)
    if granted >= limit:
        verdict = f"{granted - limit} too many" if granted > limit else "exact"
        print(f"limit {limit}, granted {granted}: {verdict}")
        return EXCEEDED if granted > limit else 0
    print(f"limit {limit}, granted {granted}: {limit - granted} too few")
    for reason, number in (rejected + unknown).most_common(3):
        print(f"  {number} times: {reason}")
    return FAILED


def main() -> int:
    """Run the program and return its exit status."""
    options = parse_arguments()
    adapter = ADAPTERS[options.adapter](options.key, options.secret, options.campaign)
    record = "campaign" if options.campaign else "coupon"
    creates = f"the {record} {adapter.code} with {options.limit} uses and up to {options.clients}"
    then = "removes" if options.clean else "keeps"
    print(
        f"{options.url}: creates {creates} {adapter.creates} at once, and {then} them", flush=True
    )
    if not options.yes and not is_loopback(options.url):
        print("This is not a loopback address. Repeat the command with --yes.", file=sys.stderr)
        return FAILED
    connection = Connection(options.url)
    status = FAILED
    try:
        try:
            adapter.log_in(connection)
            adapter.create(connection, options.limit)
            result = run(adapter, options.url, options.clients)
            connection.reconnect()
            status = report(result, adapter.uses(connection), options.limit)
        finally:
            if options.clean and adapter.coupon:
                connection.reconnect()
                adapter.remove(connection)
                print(f"Removed. {adapter.keeps}".rstrip())
        return status
    except LOST as error:
        message = f"no connection to {options.url}: {error or type(error).__name__}"
    except RaceError as error:
        message = str(error)
    except (LookupError, TypeError) as error:
        message = f"the shop lacks what the adapter needs (README.md): {error!r}"
    for value in filter(None, (options.secret, options.key)):
        message = message.replace(value, "***")
    print(f"coupon_race: {message}", file=sys.stderr)
    return EXCEEDED if status == EXCEEDED else FAILED


sys.exit(main())
