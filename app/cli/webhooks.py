"""``shop-api webhooks``: receive deliveries on this machine, and send examples."""

import asyncio
import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click
from flask import current_app
from flask.cli import AppGroup

from app.cli.keys import reporting_errors, require_schema
from app.outbound.client import REFUSED, ReceiverClient
from app.outbound.network import REMEDY, parse_networks
from app.outbound.signatures import is_signed
from app.schemas.examples.events import event_data
from app.services.webhooks.deliveries.requests import Sender
from app.services.webhooks.pings import example_request, new_sender, require_event_type, senders_of

webhooks = AppGroup("webhooks", help="Webhooks: receive deliveries locally, send examples.")

MAX_BODY = 64 * 1024 * 1024
"""Maximum size of a delivery in bytes. No event is as long."""


@webhooks.command("listen")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=5000, show_default=True)
@click.option(
    "--secret",
    envvar="WEBHOOK_SECRET",
    help="Secret of the webhook, to verify signatures. Default: the variable WEBHOOK_SECRET.",
)
def listen(host: str, port: int, secret: str | None) -> None:
    """Print deliveries that arrive on a local port, until Ctrl-C.

    With a secret, each signature is verified. A delivery with a wrong signature gets status 400.
    """
    try:
        server = ThreadingHTTPServer((host, port), _handler(secret))
    except OSError as error:
        raise click.ClickException(f"Cannot listen on {host}:{port}: {error.strerror}.") from None
    server.daemon_threads = True
    click.echo(f"Listening on http://{host}:{server.server_port}/ (Ctrl-C stops)", err=True)
    if not secret:
        click.echo("Signatures are not verified. Add --secret.", err=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def _handler(secret: str | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 15

        def do_POST(self) -> None:
            try:
                length = int(self.headers.get("Content-Length", ""))
            except ValueError:
                length = -1
            if not 0 <= length <= MAX_BODY:
                self.send_error(411 if length < 0 else 413)
                return
            body = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            signed = is_signed(secret, headers, body) if secret else None
            result = {None: "not verified", True: "valid", False: "WRONG"}[signed]
            click.echo(f"{_title(headers, body)}  signature {result}\n{_shown(body)}\n")
            self.send_response(400 if signed is False else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print no line of the server."""

    return Handler


def _title(headers: Mapping[str, str], body: bytes) -> str:
    own = {name.removeprefix("x-wc-webhook-"): value for name, value in headers.items()}
    name = headers.get("webhook-id", own.get("delivery-id", "-"))
    topic = own.get("topic")
    if topic is None:
        try:
            topic = json.loads(body)["type"]
        except (ValueError, KeyError, TypeError):
            topic = "unknown"
    return _printable(f"{topic}  {name}")


def _shown(body: bytes) -> str:
    """Return a body as indented JSON, or as it is."""
    try:
        return json.dumps(json.loads(body), indent=2)
    except (ValueError, RecursionError):
        return _printable(body.decode("utf-8", "replace"))


def _printable(text: str) -> str:
    """Return a text without characters that control a terminal."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


@webhooks.command("trigger")
@click.argument("topic")
@click.option("--url", help="Receiver. Default: every active webhook with this topic.")
@click.option(
    "--secret",
    envvar="WEBHOOK_SECRET",
    help="Secret that signs the request to --url. Default: generated and shown.",
)
def trigger(topic: str, url: str | None, secret: str | None) -> None:
    """Send an example of an event of this topic, such as order.created.

    The data is an example of the OpenAPI document. No event is stored, and nothing is retried.
    """
    require_schema()
    with reporting_errors():
        require_event_type(topic)
        senders = [new_sender(url, secret)] if url else senders_of(topic)
    if not senders:
        raise click.ClickException(f"No active webhook has the topic {topic!r}. Add --url.")
    if url and not secret:
        click.echo(f"secret: {senders[0].secrets[0]}", err=True)
    if not asyncio.run(_send(senders, topic)):
        raise SystemExit(1)


async def _send(senders: list[Sender], topic: str) -> bool:
    """Send an example to each receiver, print the results, and return whether all succeeded."""
    client = ReceiverClient(parse_networks(current_app.config["SHOP_WEBHOOK_ALLOWED_NETWORKS"]))
    succeeded = True
    for sender in senders:
        request = example_request(sender, topic, event_data(topic))
        outcome = await client.post(sender.url, request.headers, request.body)
        succeeded = succeeded and sender.is_success(outcome.status)
        result = outcome.status or outcome.error
        click.echo(f"{topic} to {sender.url}: {result} in {outcome.duration_ms} ms")
        if outcome.error == REFUSED:
            click.echo(REMEDY, err=True)
        elif outcome.detail:
            click.echo(outcome.detail, err=True)
    return succeeded
