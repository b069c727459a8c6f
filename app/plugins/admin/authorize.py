"""A service asks for a key, and a person approves it (wc-auth of WooCommerce).

The service sends the browser here, with its name, the permission that it wants and two addresses.
After *Approve*, its ``callback_url`` gets the key in a request of this service, and the browser
returns to its ``return_url``. The key is temporary until the callback has accepted it, so that none
remains if this process ends in between.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import orjson
from flask import Response, current_app, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.auth.principals import Permission
from app.conversions.webhooks import is_delivery_url
from app.db.session import now
from app.errors import ShopError
from app.outbound.client import (
    REFUSED,
    TIMEOUT,
    Outcome,
    ReceiverClient,
    ascii_host,
    has_valid_host,
)
from app.outbound.network import parse_networks
from app.plugins.admin import texts
from app.plugins.admin.calls import Record, api_request, call, form_headers
from app.plugins.admin.form_fields import PERMISSIONS
from app.plugins.admin.frame import POLICY, AdminBlueprint, render
from app.plugins.admin.texts import gettext as _
from app.services.webhooks.writes import require_url

blp = AdminBlueprint("admin_authorize")

RESOURCES = frozenset({"coupons", "customers", "orders", "reports", "webhooks"})
"""What WooCommerce lets such a service use. Others, such as ``keys``, are never given away."""

TEMPORARY = timedelta(days=1)
"""How long the key works that no callback has accepted, from when the page was shown."""

CALLBACK_SECONDS = 8
"""Less than the deadline of a request, so that a key that was not accepted can be revoked."""

MAX_TEXT = 200
"""Longest name of a service, and longest ID that it gives to its user."""

Key = Record


@dataclass(frozen=True, slots=True)
class Asked:
    """What a service asks for."""

    app_name: str
    scope: str
    user_id: str  # the service's ID of its user, which it gets back
    return_url: str
    callback_url: str

    @property
    def parameters(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}

    def back(self, success: int) -> str:
        """Return the address to which the browser returns."""
        parts = urlsplit(self.return_url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        query += [("success", str(success)), ("user_id", self.user_id)]
        return urlunsplit(parts._replace(query=urlencode(query)))


@blp.page("/authorize", "create_api_key", methods=("GET", "POST"))
def authorize() -> Response | BaseResponse:
    """Ask whether a service may have a key, and give it the key."""
    try:
        asked = _asked()
    except ShopError as error:
        return _page(None, error=texts.of_api(error.sentence()))
    if request.method == "GET" or "_show" in request.form:
        return _page(asked)
    try:
        sent = call("create_api_key", body=_body(asked), headers=form_headers())
    except ShopError as error:
        return _page(asked, error=texts.of_api(error.sentence()))
    key = sent.content
    if "Idempotent-Replayed" in sent.headers:  # the button was pressed twice
        reason = "" if _is_kept(key) else _("The service has not accepted the key.")
    else:
        reason = _hand_over(asked, key)
    return _page(asked, error=reason) if reason else redirect(asked.back(1), 303)


def _asked() -> Asked:
    """Return what the request asks for.

    Raises:
        ShopError: a parameter is missing or invalid, or the callback is not allowed.
    """
    found = {name: request.values.get(name, "").strip() for name in Asked.__slots__}
    for name, text in found.items():
        is_long = name in {"app_name", "user_id"} and len(text) > MAX_TEXT
        if not text or is_long or "\0" in text:
            raise _invalid(_("The address of this page has no valid %(name)s.", name=name))
    if found["scope"] not in PERMISSIONS:
        raise _invalid(_("The scope must be read, write or read_write."))
    for name in ("return_url", "callback_url"):
        url = found[name] if "://" in found[name] else unquote(found[name])
        url = url if "://" in url else f"https://{url}"
        if not is_delivery_url(url) or not has_valid_host(url):
            raise _invalid(_("The address of this page has no valid %(name)s.", name=name))
        found[name] = url
    if not found["callback_url"].startswith("https:"):
        raise _invalid(_("The callback_url must begin with https."))
    require_url(found["callback_url"])
    return Asked(**found)


def _invalid(reason: str) -> ShopError:
    return ShopError("shop_api_invalid_param", message="{reason}", reason=reason)


def _body(asked: Asked) -> Record:
    """Return the request that creates the temporary key."""
    resources = RESOURCES & (current_principal().resources or RESOURCES)
    key = {
        "description": asked.app_name,
        "permission": asked.scope,
        "resources": sorted(resources),
        "expires_at": request.form.get("until") or _until(),
    }
    return {"key": key}


def _until() -> str:
    """Return when a temporary key ends: not after the key of the session."""
    ends = current_principal().expires_at
    # Always before the end that the key gets at last, which says that it was accepted.
    return _utc(min(now() + TEMPORARY, ends - timedelta(minutes=1)) if ends else now() + TEMPORARY)


def _utc(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _hand_over(asked: Asked, key: Key) -> str:
    """Send a key to its service. Return "", or why it was not accepted and is revoked."""
    outcome = asyncio.run(_post(asked, key))
    status = outcome.status
    if status is not None and 200 <= status < 300:
        ends = current_principal().expires_at
        lasting = {"expires_at": _utc(ends) if ends else ""}
        call("update_api_key", body={"key": lasting}, key_id=key["id"])
        return ""
    call("delete_api_key", key_id=key["id"])
    host = urlsplit(asked.callback_url).hostname
    failures = {REFUSED: _("address not allowed"), TIMEOUT: _("no response in time")}
    what = failures.get(outcome.error or "", _("connection failed"))
    if status is not None:
        what = _("status %(status)s", status=status)
    return _(
        "%(host)s has not accepted the key (%(what)s), so it was revoked.", host=host, what=what
    )


async def _post(asked: Asked, key: Key) -> Outcome:
    body = {
        "key_id": key["id"],
        "user_id": asked.user_id,
        "consumer_key": key["consumer_key"],
        "consumer_secret": key["consumer_secret"],
        "key_permissions": asked.scope,
    }
    client = ReceiverClient(parse_networks(current_app.config["SHOP_WEBHOOK_ALLOWED_NETWORKS"]))
    headers = {"Content-Type": "application/json;charset=UTF-8"}
    try:
        async with asyncio.timeout(CALLBACK_SECONDS):
            return await client.post(asked.callback_url, headers, orjson.dumps(body))
    except TimeoutError:
        return Outcome(None, CALLBACK_SECONDS * 1000, TIMEOUT)


def _is_kept(key: Key) -> bool:
    """Wait until an earlier press of the button has sent a key, and return whether it is kept."""
    end = time.monotonic() + CALLBACK_SECONDS + 1
    while time.monotonic() < end:
        try:
            stored = call("get_api_key", key_id=key["id"]).content
        except ShopError:
            return False  # revoked
        if stored["expires_at"] != key["expires_at"]:
            return True
        time.sleep(0.2)
    return False


def _page(asked: Asked | None, error: str = "") -> Response:
    key, requests, policy = None, [], POLICY
    if asked is not None:
        back = urlsplit(asked.return_url)
        port = f":{back.port}" if back.port else ""
        origin = f"{back.scheme}://{ascii_host(back.hostname or '')}{port}"
        # Browsers compare the address of the redirect after the form, too.
        policy = POLICY.replace("form-action 'self'", f"form-action 'self' {origin}")
        key = _body(asked)["key"]
        requests = [("", api_request("create_api_key", body={"key": {**key, "expires_at": ""}}))]
    held = current_principal().permission
    is_beyond = asked and not Permission(asked.scope).parts <= held.parts
    if is_beyond and not error:
        error = _("Your key cannot give this permission, because it does not have it.")
    response = render(
        "authorize.html",
        title=_("Connect a service"),
        asked=asked,
        may_approve=asked and not is_beyond,
        key=key,
        permissions=PERMISSIONS,
        callback_host=asked and urlsplit(asked.callback_url).hostname,
        return_host=asked and urlsplit(asked.return_url).hostname,
        until=_until(),
        requests=requests,
        error=error,
        has_errors=bool(error),
        status=400 if error else 200,
    )
    response.headers["Content-Security-Policy"] = policy
    return response
