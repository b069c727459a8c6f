"""Privacy: what the shop knows of a person, and its erasure after a preview (people 8).

The address of a page contains an ID, never an e-mail address, which a proxy could log.
"""

from collections.abc import Mapping

from flask import Response, request
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.api.responses import streamed_response
from app.conversions.emails import comparable_email
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.import_export.person_data import person_data
from app.plugins.admin import html, texts
from app.plugins.admin.calls import ApiRequest, Record, api_request, call, can, form_headers
from app.plugins.admin.frame import AdminBlueprint, pressed_again, render
from app.plugins.admin.texts import gettext as _
from app.services.persons.lookup import NAMES

blp = AdminBlueprint("admin_privacy", "Privacy", "shield", 620)

KINDS = {
    "customers": "Account",
    "orders": "Orders",
    "order_notes": "Notes",
    "order_refunds": "Refunds",
    "downloads": "Downloads",
    "redemptions": "Coupon uses",
    "keys": "API keys",
    "sessions": "Sessions",
    "imports": "Uploaded files",
    "coupons": "Coupons that name the address",
}
"""The label of each number of an erasure. Those of plugins have none."""

MAX_REQUESTS = 50
"""Number of requests of an erasure in a row: 10,000 orders."""


@blp.page("/privacy", ("get_person_data", "get_person_erasure"))
def show() -> Response:
    """Show the person that the address names, or ask for an e-mail address."""
    return _page(_given(request.args))


@blp.page("/privacy/find", ("get_person_data", "get_person_erasure"), methods=("POST",))
def find() -> Response:
    """Show the person with an e-mail address."""
    return _page(_given(request.form))


@blp.page("/privacy/person-data", "get_person_data", methods=("GET", "POST"))
def download() -> Response:
    """Download what the shop knows of a person."""
    names = _given(request.values)
    pieces = person_data(current_principal(), {**names, **_ids(names)})
    response = streamed_response(pieces, "application/json")
    response.headers["Content-Disposition"] = 'attachment; filename="person-data.json"'
    return response


@blp.page("/privacy/erase", "erase_person", methods=("POST",))
def erase() -> Response | BaseResponse:
    """Erase a person whose e-mail address or order number was typed."""
    names, preview = _given(request.form), None
    with pressed_again():
        preview = _preview(names)
    typed = request.form.get("typed", "")
    if preview and any(preview["erased"].values()) and not _is_typed(typed, names, preview):
        return _page(names, error=_("This is not what was asked for. Nothing was erased."))
    erased: dict[str, int] = {}
    for number in range(MAX_REQUESTS):
        headers = form_headers("" if number else f'"{request.form.get("tag", "")}"')
        if form_id := headers.get("Idempotency-Key"):  # the same result for a second press
            headers["Idempotency-Key"] = f"{form_id}-{number}"
        sent = call("erase_person", body={"person": names | _ids(names)}, headers=headers)
        erasure = sent.content
        for name, count in erasure["erased"].items():
            erased[name] = erased.get(name, 0) + count
        if erasure["complete"]:
            return _erased_page(erased)
    return _page(names, error=_("Not everything is erased yet. Erase again to continue."))


def _given(values: Mapping[str, str]) -> dict[str, str]:
    """Return what names the person: one text, or none."""
    return {name: values[name].strip() for name in NAMES if values.get(name, "").strip()}


def _ids(names: Mapping[str, str]) -> dict[str, object]:
    """Return the IDs among the names. Another text is the ID of nothing."""
    return {name: whole_number(text) or 0 for name, text in names.items() if name != "email"}


def _preview(names: Mapping[str, str]) -> Record | None:
    if not names or not can("get_person_erasure"):
        return None
    reply = call("get_person_erasure", query=names)
    content: dict[str, object] = reply.content
    return content | {"tag": reply.headers.get("ETag", "").strip('"')}


def _order_number(names: Mapping[str, str]) -> str:
    """Return the number of the order that names a guest without an e-mail address."""
    if "order_id" not in names:
        return ""
    return str(call("get_order", order_id=_ids(names)["order_id"]).content["order_number"])


def _is_typed(typed: str, names: Mapping[str, str], preview: Record) -> bool:
    """Return whether the form has an address of the person, or the number of the order."""
    if preview["emails"]:
        return comparable_email(typed.strip()) in preview["emails"]
    return typed.strip() in {_order_number(names), names.get("customer_id", "")} - {""}


def _page(names: Mapping[str, str], error: str = "") -> Response:
    """Return the page of a person, or the search if no person is named."""
    preview, unknown = None, ""
    try:
        preview = _preview(names)
        if names and preview is None:  # without the right to erase
            next(person_data(current_principal(), {**names, **_ids(names)}))
    except ShopError as failure:
        if failure.code not in {"shop_api_invalid_person", "shop_api_invalid_param"}:
            raise
        unknown, names = texts.of_api(failure.sentence()), {}
    return render(
        "privacy.html",
        title=_("Privacy"),
        names=names,
        preview=preview,
        rows=_rows(preview["erased"]) if preview else [],
        error=error or unknown,
        requests=_requests(names),
        status=400 if error or unknown else 200,
        has_errors=bool(error or unknown),
    )


def _rows(numbers: Mapping[str, int]) -> list[tuple[str, str]]:
    return [
        (_(KINDS[name]) if name in KINDS else html.words(name), html.number(number))
        for name, number in numbers.items()
        if number
    ]


def _requests(names: Mapping[str, str]) -> list[tuple[str, ApiRequest]]:
    if not names:
        return []
    found = [("", api_request("get_person_erasure", query=names))]
    if can("erase_person"):
        body = {"person": {**names, **_ids(names)}}
        found.append((_("Erase personal data"), api_request("erase_person", body=body)))
    return found


def _erased_page(erased: Mapping[str, int]) -> Response:
    return render("privacy_erased.html", title=_("Personal data erased"), rows=_rows(erased))
