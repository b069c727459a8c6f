"""Replays the recorded exchanges, and compares status, headers and bodies.

    python -m tests.plugins.woocommerce.rest.replay [CASE] [--show] [--group]

The table ``differences.toml`` has what differs from the recording and why. Differences that
occur everywhere are functions below, with their row.
"""

import argparse
import json
import re
import sys
import tempfile
import time
import tomllib
from base64 import b64encode
from collections import Counter, defaultdict
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from app.conversions.emails import lower_domain
from app.plugins.woocommerce import credentials
from tests.plugins.woocommerce.rest.recorded_shop import KEYS, SEED, VARIATION
from tests.plugins.woocommerce.rest.seed import reset

FOLDER = Path(__file__).parent
EXCHANGES = [
    json.loads(line) for line in (FOLDER / "exchanges.jsonl").read_bytes().split(b"\n") if line
]
DIFFERENCES = tomllib.loads((FOLDER / "differences.toml").read_text())

_NOW = re.compile(r"2026-11-2[234]T\d\d:\d\d:\d\d|Nov 2[23], 2026 @ \d\d:\d\d [AP]M")
_KEY = re.compile(r"wc_order_[A-Za-z0-9]{13}(?!\d)|order_[a-z2-7]{13}(?!\w)")
_FIRST_NEW = 76
_LISTS = {"line_items", "shipping_lines", "fee_lines", "coupon_lines", "tax_lines", "meta_data"}
_HEADERS = ("X-WP-Total", "X-WP-TotalPages", "Location", "Allow", "Link")


def cases():
    found = defaultdict(list)
    for each in EXCHANGES:
        if each.get("kind") != "delivery":
            found[each["case"]].append(each)
    return found


# --- sending ---


def _headers(request):
    headers = dict(request.get("headers") or {})
    auth = request.get("auth")
    if auth in KEYS:
        pair = f"{KEYS[auth]['consumer_key']}:{KEYS[auth]['consumer_secret']}"
        headers.setdefault("Authorization", f"Basic {b64encode(pair.encode()).decode()}")
    return headers


def _filled(template, answers):
    """A template with the values of earlier answers: {{0.meta_data.0.id}}."""

    def value(match):
        step, *path = match[1].split(".")
        found = answers[int(step)]
        for part in path:
            found = found[int(part)] if isinstance(found, list) else found[part]
        return str(found)

    if isinstance(template, dict):
        return {name: _filled(each, answers) for name, each in template.items()}
    if isinstance(template, list):
        return [_filled(each, answers) for each in template]
    if isinstance(template, str) and "{{" in template:
        text = re.sub(r"\{\{([^}]*)\}\}", value, template)
        return int(text) if template.startswith("{{") and text.isdigit() else text
    return template


_SOLD = [*SEED["products"], VARIATION]
PRODUCTS = {key: each for each in _SOLD for key in (each["id"], each["sku"])}


def completed(request):
    """A request whose lines have the name, price and SKU of their product, and if that is new.

    This service has no catalog, so a client sends what the recorded server looked up.
    """
    if not isinstance(request.get("json"), dict):
        return request, False
    new = [each for each in _lines_in(request["json"]) if _is_reference(each)]
    if not new:
        return request, False
    request = json.loads(json.dumps(request))
    for name in ("json", "json_template"):
        for line in _lines_in(request.get(name) or {}):
            if _is_reference(line):
                _complete(line)
    return request, True


def _lines_in(body):
    if not isinstance(body, dict):
        return
    for key in ("create", "update"):
        for each in body.get(key) or () if isinstance(body.get(key), list) else ():
            yield from _lines_in(each)
    lines = body.get("line_items")
    yield from (
        (each for each in lines or () if isinstance(each, dict)) if isinstance(lines, list) else ()
    )


def _is_reference(line):
    known = (
        PRODUCTS.get(_number(line.get("variation_id")))
        or PRODUCTS.get(_number(line.get("product_id")))
        or PRODUCTS.get(line.get("sku"))
    )
    return bool(known) and not line.get("id")


def _number(value):
    return int(value) if str(value).isdigit() else value


def _complete(line):
    product = (
        PRODUCTS.get(_number(line.get("variation_id")))
        or PRODUCTS.get(_number(line.get("product_id")))
        or PRODUCTS.get(line.get("sku"))
    )
    quantity = line.get("quantity", 1)
    line.setdefault("sku", product["sku"])
    line.setdefault("name", product["name"])
    if "parent_id" in product:
        line["product_id"] = product["parent_id"]
        size = {"key": "size", "value": product["size"]}
        line["meta_data"] = [size, *line.get("meta_data", [])]
    line.setdefault("product_id", product["id"])
    if "total" not in line and str(quantity).lstrip("-").isdigit():
        line["total"] = f"{float(product['price'] or 0) * int(quantity):.2f}"
        line.setdefault("subtotal", line["total"])


def send(client, request, answers):
    split = urlsplit(request["url"])
    path = split.path + (f"?{split.query}" if split.query or request["url"].endswith("?") else "")
    if template := request.get("path_template"):
        path = str(_filled(f" {template}", answers)).strip()
    options = {"method": request["method"], "headers": _headers(request)}
    if "json" in request:
        body = _filled(request.get("json_template", request["json"]), answers)
        options["data"] = json.dumps(body)
        kinds = {name.lower() for name in options["headers"]}
        if "content-type" not in kinds:
            options["headers"]["Content-Type"] = "application/json"
    elif "body" in request:
        latin = "\u00ff" in request["body"]  # a byte that is not UTF-8
        options["data"] = request["body"].encode("latin-1" if latin else "utf-8")
        if "Content-Type" not in options["headers"] and request["body"][:1] in '{["nx':
            options["headers"]["Content-Type"] = "application/json"
    return client.open(path, base_url=f"{split.scheme}://{split.netloc}", **options)


# --- comparing ---


class Ids:
    """IDs of new records are compared by their order, because there is no shared sequence."""

    def __init__(self):
        self.known = {}

    def __call__(self, side, value):
        return self.known.get((side, value), value)

    def learn(self, expected, found):
        number = f"new-{len(self.known)}"
        self.known[True, expected] = self.known[False, found] = number


def normalised(value, ids, *, is_recorded, name=""):
    """A body without what depends on the time and on the sequences."""
    if isinstance(value, dict):
        return {
            key: normalised(each, ids, is_recorded=is_recorded, name=key)
            for key, each in value.items()
        }
    if isinstance(value, list):
        if name in _LISTS:
            value = [_without_new_id(each, name) for each in value]
        return [normalised(each, ids, is_recorded=is_recorded, name=name) for each in value]
    if name == "number" and isinstance(value, str) and value.isdigit():
        return str(ids(is_recorded, int(value)))
    if isinstance(value, str):
        value = _KEY.sub("<key>", _without_time(value, is_recorded))
        return re.sub(r"/(\d+)(?=[/?]|$)", lambda m: f"/{ids(is_recorded, int(m[1]))}", value)
    if isinstance(value, int) and not isinstance(value, bool) and name in {"id", "number"}:
        return ids(is_recorded, value)
    return value


_SEEDED = set()


def _seeded(value):
    if isinstance(value, dict):
        if "key" in value and "id" in value:
            _SEEDED.add((value["id"], value["key"]))
        for each in value.values():
            _seeded(each)
    elif isinstance(value, list):
        for each in value:
            _seeded(each)


_seeded([SEED["coupons"], SEED["customers"], SEED["orders"], SEED["order_refunds"]])


def _without_new_id(entry, name):
    if not isinstance(entry, dict) or "id" not in entry:
        return entry
    if name == "meta_data":
        return entry if (entry["id"], entry.get("key")) in _SEEDED else {**entry, "id": "<new>"}
    is_new = (
        not isinstance(entry["id"], int) or entry["id"] >= SEED["about"]["next_ids"]["order line"]
    )
    return {**entry, "id": "<new>"} if is_new else entry


def _without_time(text, is_recorded):
    if is_recorded:
        return _NOW.sub("<now>", text)
    now = datetime.now(UTC)
    text = _NOW.sub("<now>", text)
    text = re.sub(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
        lambda m: "<now>" if abs((datetime.fromisoformat(m[0]).replace(tzinfo=UTC) - now).days) <= 1
        and abs((datetime.fromisoformat(m[0]).replace(tzinfo=UTC) - now).total_seconds()) < 90000 else m[0],
        text,
    )  # fmt: skip
    return re.sub(rf"{now:%b} \d\d?, {now:%Y} @ \d\d:\d\d [AP]M", "<now>", text)


# --- differences that occur everywhere ---


def _alike(body):
    """A body of either side without the differences of the rows ``everywhere``."""
    if isinstance(body, list):
        return [_alike(each) for each in body]
    if not isinstance(body, dict):
        return body
    result = {name: _alike(each) for name, each in body.items()}
    if "line_items" in result or "customer_ip_address" in result:
        result.pop("customer", None)
    for name in ("orders_count", "total_spent", "last_order"):
        result.pop(name, None)
    if "self" in result and "collection" in result:
        result.pop("email_templates", None)
    if "version" in result and "order_key" in result:
        result.pop("version")
    if "Link" in result and isinstance(result.get("Link"), str):
        result["Link"] = re.sub(r'(, )?<[^>]*>; rel="https://api.w.org/"', "", result["Link"])
        if not result["Link"]:
            del result["Link"]
    if result.get("headers") == []:
        result["headers"] = {}
    if "meta_data" in result:
        result["meta_data"] = [
            each
            for each in result["meta_data"]
            if not isinstance(each, dict)
            or not str(each.get("key")).startswith(("_wp_", "default_password", "_refund_type"))
        ]
    for name in ("reasons", "new_draft_order_id", "additional_errors"):
        result.pop(name, None)
    if result.get("status") == "private":
        result["status"] = "publish"
    for name in ("date_expires", "date_expires_gmt"):
        if isinstance(result.get(name), str):
            result[name] = f"{result[name][:10]}T00:00:00"
    if isinstance(result.get("message"), str):
        result["message"] = _plain(result["message"])
    if isinstance(result.get("code"), str) and "amount" in result:
        result["code"] = _plain(result["code"])
    if isinstance(result.get("email"), str):
        result["email"] = lower_domain(result["email"])
    return result


def _plain(text):
    text = re.sub(r"<[^>]*>", "", text)
    for entity, sign in (("&quot;", '"'), ("&amp;", "&"), ("&#36;", "$"), ("&#036;", "$")):
        text = text.replace(entity, sign)
    return text


def _expected_headers(headers):
    found = {name: headers[name] for name in _HEADERS if name in headers}
    if "(?P<" in found.get("Location", ""):  # a slip of the original
        del found["Location"]
    index = '<https://shop.example/wp-json/>; rel="https://api.w.org/"'
    link = found.get("Link", index).replace("http://", "https://")
    found["Link"] = link if "api.w.org" in link else f"{link}, {index}"
    return found


def _found_headers(response):
    found = {name: response.headers[name] for name in _HEADERS if name in response.headers}
    if "Link" in found:
        found["Link"] = found["Link"].replace("http://shop.example", "https://shop.example")
    return found


def compare(exchange, response, ids):
    """What differs between an exchange and our response; empty if nothing does."""
    recorded = with_status(exchange["response"])
    found = response.get_json(silent=True) if response.data else None
    expected = recorded.get("json")
    if response.status_code != recorded["status"]:
        return {"status": (recorded["status"], response.status_code), "body": (expected, found)}
    if response.status_code == 201 and "Location" in response.headers:
        location = recorded.get("headers", {}).get("Location", "")
        if location:
            ids.learn(
                *(int(each.rpartition("/")[2]) for each in (location, response.headers["Location"]))
            )
    problems = {}
    a, b = (_expected_headers(recorded.get("headers", {})), _found_headers(response))
    if "Location" not in a:
        b.pop("Location", None)
    a, b = (
        {n: normalised(v, ids, is_recorded=side) for n, v in each.items()}
        for side, each in ((True, a), (False, b))
    )
    bodies = None
    if "json" in recorded and not recorded.get("body_trimmed"):
        ours = normalised(_alike(found), ids, is_recorded=False)
        bodies = normalised(_alike(expected), ids, is_recorded=True), ours
    if _is_list_with_draft(exchange, a, b):
        a, bodies = _without_draft(exchange, a, b, bodies)
        problems["accepted"] = []
    if a != b:
        problems["headers"] = _differences(a, b, "headers")
    if bodies:
        theirs, ours = bodies
        accepted = _accept(theirs, ours)
        if ours != accepted:
            problems["body"] = _differences(accepted, ours)
        elif ours != theirs:
            problems["accepted"] = _differences(theirs, ours)
    return problems


_DRAFT = 69
"""The order that is a draft of the checkout, which this service does not have."""


def _is_list_with_draft(exchange, recorded, found):
    """Whether the number of a list of orders is one more only because of the draft."""
    path = urlsplit(exchange["request"]["url"]).path.rstrip("/")
    totals = [int(headers.get("X-WP-Total", -5)) for headers in (recorded, found)]
    return path.lower().endswith("/orders") and totals[0] == totals[1] + 1


def _without_draft(exchange, recorded, found, bodies):
    """The recorded headers and the bodies of a list of orders, without the draft."""
    query = dict(parse_qsl(urlsplit(exchange["request"]["url"]).query))
    size, page = int(query.get("per_page", 10)), int(query.get("page", 1))
    total = int(found["X-WP-Total"])
    pages = -(-total // size)
    headers = {**recorded, "X-WP-Total": str(total), "X-WP-TotalPages": str(pages)}
    if page >= pages:
        headers["Link"] = re.sub(r'<[^>]*>; rel="next", ', "", headers["Link"])
    if bodies is None:
        return headers, None
    theirs, ours = bodies
    kept = [each for each in theirs if each.get("id") != _DRAFT]
    for expected in (kept, theirs[1:]):  # the page begins one order later
        if _accept(expected, ours[: len(expected)]) == ours[: len(expected)]:
            return headers, (ours, ours)
    return headers, (kept, ours[: len(kept)])


def with_status(recorded):
    """A recorded response; errors of refunds say 500 and have the status as a bare number."""
    body = recorded.get("json")
    if (
        recorded["status"] != 500
        or not isinstance(body, dict)
        or not isinstance(body.get("data"), int)
    ):
        return recorded
    status = 400 if body["data"] == 500 else body["data"]
    return {**recorded, "status": status, "json": {**body, "data": {"status": status}}}


def _accept(theirs, ours):
    """A recorded body with our values where a row explains each difference of this kind."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if ours.keys() == {"id", "error"} and ours["error"]["code"] == "rest_invalid_param":
            return ours  # an item of a batch, which is checked like a single request
        result = {name: _accept(each, ours.get(name)) for name, each in theirs.items()}
        for name in ("date_modified", "date_modified_gmt"):
            # Every change moves it, and it is never null.
            if name in theirs and name in ours and (ours[name] == "<now>" or theirs[name] is None):
                result[name] = ours[name]
        if "needs_processing" in theirs and "needs_processing" in ours:
            result["needs_processing"] = ours["needs_processing"]
        if "parent_name" in theirs and "parent_name" in ours:
            result |= {name: ours[name] for name in ("parent_name", "image")}
        return result
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [_accept(a, b) for a, b in zip(theirs, ours, strict=True)]
    return theirs


def _differences(a, b, path="$"):
    if isinstance(a, dict) and isinstance(b, dict):
        found = []
        for name in [*a, *(each for each in b if each not in a)]:
            if a.get(name, "<absent>") != b.get(name, "<absent>"):
                inner = (a.get(name, "<absent>"), b.get(name, "<absent>"))
                found += _differences(*inner, f"{path}.{name}")
        return found
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        found = []
        for at, (x, y) in enumerate(zip(a, b, strict=True)):
            if x != y:
                found += _differences(x, y, f"{path}[{at}]")
        return found
    return [(path, a, b)]


def line_of(request):
    """A request as one line: method, path below the mount, body and key."""
    split = urlsplit(request["url"])
    path = f"{split.path.removeprefix('/wp-json/wc/v3')}{'?' * bool(split.query)}{split.query}"
    kind = " ".join(
        value for name, value in (request.get("headers") or {}).items()
        if name.lower() == "content-type"
    )  # fmt: skip
    body = json.dumps(request["json"]) if "json" in request else request.get("body") or ""
    scheme = "http:" if split.scheme == "http" else ""
    return f"{request['method']} {scheme}{path} {kind}{body} {request.get('auth')}"


def explains(row, exchange):
    """Whether a row is about an exchange."""
    if "exchange" in row:
        return bool(re.fullmatch(row["exchange"], f"{exchange['case']}#{exchange['step']}"))
    return bool(re.search(row["request"], line_of(exchange["request"]), re.DOTALL))


def unexplained(exchange, response, problems):
    """What the rows of the table for an exchange do not explain."""
    rows = [row for row in DIFFERENCES["difference"] if explains(row, exchange)]
    found = response.get_json(silent=True) if response.data else None
    code = found.get("code") if isinstance(found, dict) and "data" in found else None
    if "status" in problems:
        recorded, found = problems["status"]
        is_known = any(
            found in [row.get("status"), *row.get("statuses", ())]
            and row.get("code") == code
            and row.get("recorded", recorded) == recorded
            for row in rows
        )
        return {} if is_known else problems
    fields = re.compile("|".join(field for row in rows for field in row.get("fields", ())) or "-")
    left = {
        part: [each for each in problems.get(part, ()) if not fields.fullmatch(each[0])]
        for part in ("headers", "body")
    }
    return {part: each for part, each in left.items() if each}


@contextmanager
def circumstances(app, exchange):
    """The time of a signature, and the time zone of the shop."""
    zone = _zone(exchange.get("settings") or {})
    clock, credentials.time = credentials.time, _Clock(exchange)
    before, app.config["SHOP_TIMEZONE"] = app.config["SHOP_TIMEZONE"], zone
    try:
        yield
    finally:
        credentials.time, app.config["SHOP_TIMEZONE"] = clock, before


def _zone(settings):
    """The name of a time zone, also of an offset such as ``5.5`` or ``+05:30``."""
    name = settings.get("timezone_string", "UTC") or str(settings.get("gmt_offset") or "UTC")
    return {"5.5": "Asia/Kolkata", "+05:30": "Asia/Kolkata", "UTC+5.5": "Asia/Kolkata"}.get(
        name, name
    )


class _Clock:
    def __init__(self, exchange):
        self._is_signed = exchange["case"].startswith("auth/oauth")

    def time(self):
        return 1795426090.0 if self._is_signed else time.time()


def replay(app, wanted="", *, prepare=reset):
    """Yield each exchange with its result: equal, explained or different, and the problems.

    Args:
        app: the service.
        wanted: how the names of the cases begin.
        prepare: puts the recorded shop into the database, before the first case and after each one
            that changes it.
    """
    client, dirty = app.test_client(), True
    for case, exchanges in cases().items():
        if wanted and not case.startswith(wanted):
            continue
        has_downloads = case == "extra3/downloads"
        if dirty or has_downloads:
            prepare(app, **({"with_downloads": True} if has_downloads else {}))
        dirty = has_downloads or any(
            each["request"]["method"] not in {"GET", "HEAD", "OPTIONS"} for each in exchanges
        )
        dirty = dirty or any("_method" in each["request"]["url"] for each in exchanges)
        answers, ids = {}, Ids()
        for exchange in exchanges:
            try:
                request, is_completed = completed(exchange["request"])
                with circumstances(app, exchange):
                    response = send(client, request, answers)
                problems = compare(exchange, response, ids)
                answers[exchange["step"]] = (
                    response.get_json(silent=True) if response.data else None
                )
            except (KeyError, IndexError, TypeError) as error:
                yield exchange, "different", {"error": repr(error)}
                continue
            if not problems.keys() - {"accepted"}:
                is_equal = not problems and not is_completed
                yield exchange, "equal" if is_equal else "explained", problems
            elif left := unexplained(exchange, response, problems):
                yield exchange, "different", left
            else:
                yield exchange, "explained", problems


def score(results):
    """The numbers of results by their kind, as one line."""
    counts = Counter(result for _, result, _ in results)
    return ", ".join(f"{counts[name]} {name}" for name in ("equal", "explained", "different"))


def _say(text):
    sys.stdout.write(f"{text}\n")


def _main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", nargs="?", default="")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    from flask_migrate import upgrade  # noqa: PLC0415  # slow

    from app import create_app  # noqa: PLC0415  # slow

    with tempfile.TemporaryDirectory() as folder:
        app = create_app(
            {
                "DATABASE_URL": f"sqlite:///{folder}/shop.db",
                "SECRET_KEY": "x" * 32,
                "INSTANCE_PATH": folder,
                "SHOP_AUTH_FAILURES_PER_MINUTE": 0,
                "SHOP_SLOW_REQUEST_SECONDS": 0,
                "SHOP_PUBLIC_URL": "https://shop.example",
                "SHOP_WEBHOOK_ALLOWED_NETWORKS": "0.0.0.0/0",
            }
        )
        with app.app_context():
            upgrade()
        results = list(replay(app, arguments.case))
    groups = defaultdict(Counter)
    for exchange, result, problems in results:
        groups[re.sub(r"[-\d]+$", "", exchange["case"])][result] += 1
        if arguments.show and result == "different":
            request = exchange["request"]
            _say(
                f"## {exchange['case']}#{exchange['step']} {request['method']} {request['url'][20:]}"
            )
            _say(f"   {request.get('json', request.get('body'))} {request.get('auth')}")
            for name, each in problems.items():
                _say(f"   {name}: {str(each)[:1500]}")
    for name, counts in sorted(groups.items()):
        if counts["different"]:
            _say(f"{name:40} {dict(counts)}")
    _say(score(results))


if __name__ == "__main__":
    _main()
