"""Types of settings: lists, URLs, networks and path prefixes."""

import re
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any
from zoneinfo import ZoneInfo

import marshmallow as ma
from sqlalchemy import URL

from app.config.urls import check_redis_url, parse_database_url

POSTGRESQL = frozenset({"postgresql", "postgresql+psycopg"})


class PathPrefix(ma.fields.String):
    """A path with a leading slash and without a trailing slash, or an empty string."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        path = text.strip("/ ")
        if not re.fullmatch(r"[A-Za-z0-9._~/-]*", path):
            raise ma.ValidationError("Must be a path of letters, digits and . _ ~ - /")
        return f"/{path}" if path else ""


class DelimitedList(ma.fields.String):
    """A comma-separated list of strings."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> Any:
        entries = value.split(",") if isinstance(value, str) else value
        if not isinstance(entries, list | tuple) or not all(isinstance(e, str) for e in entries):
            raise ma.ValidationError("Must be a comma-separated list.")
        return tuple(entry.strip() for entry in entries if entry.strip())


class OrderStatusNames(DelimitedList):
    """A list of order statuses. ``check_order_statuses`` validates it once plugins are loaded."""


_SEVERAL_HOSTS = re.compile(
    r"(?P<start>postgresql(?:\+psycopg)?://(?:[^@/?]*@)?)(?P<hosts>[^/?@]*,[^/?@]*)"
    r"(?P<path>/[^?@]*)?(?P<query>\?.*)?"
)
_EXAMPLE = "postgresql://USER:PASSWORD@localhost/shop or sqlite:///shop.db"
_HOST = re.compile(r"\[(?P<v6>[^]]*)\](?::(?P<v6_port>\d*))?|(?P<name>[^:]*)(?::(?P<port>\d*))?")


class DatabaseUrl(ma.fields.String):
    """A SQLAlchemy URL.

    Accepts ``postgres://``, which many hosting providers use, and several hosts as in URLs of
    libpq (``postgresql://a,b:5433/shop``), which SQLAlchemy expects in the query.
    """

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        text = re.sub(r"^postgres(?=(\+psycopg)?:)", "postgresql", text)
        several = _SEVERAL_HOSTS.fullmatch(text)
        url = text if several is None else _with_hosts_in_query(several.groupdict(""))
        self.check(_parsed(url))
        return url

    def check(self, url: URL) -> None:
        """Raise ValidationError if the service cannot use a database."""
        if url.drivername not in {"sqlite", *POSTGRESQL}:
            raise ma.ValidationError("Must be a sqlite: or postgresql: URL.")
        if url.drivername == "sqlite" and url.database in {None, "", ":memory:"}:
            raise ma.ValidationError("Must name a file, because workers cannot share memory.")


class ReplicaUrl(DatabaseUrl):
    """A SQLAlchemy URL of a PostgreSQL server."""

    def check(self, url: URL) -> None:
        """Raise ValidationError unless the database is PostgreSQL."""
        if url.drivername not in POSTGRESQL:
            raise ma.ValidationError("Must be postgresql: URLs.")


def _with_hosts_in_query(url: Mapping[str, str]) -> str:
    hosts = [_HOST.fullmatch(host) for host in url["hosts"].split(",")]
    if not all(hosts):
        raise ma.ValidationError(f"Not a valid database URL. Example: {_EXAMPLE}")
    parts = [host.groupdict("") for host in hosts if host]
    names = ",".join(part["v6"] or part["name"] for part in parts)
    ports = ",".join(part["v6_port"] or part["port"] or "5432" for part in parts)
    query = f"{url['query']}&" if url["query"] else "?"
    return f"{url['start']}{url['path'] or '/'}{query}host={names}&port={ports}"


class ReplicaUrlList(ma.fields.String):
    """SQLAlchemy URLs of PostgreSQL, separated by blanks, or by commas before ``postgres``."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> Any:
        texts = re.split(r"\s+|,(?=postgres)", value) if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(t, str) for t in texts):
            raise ma.ValidationError("Must be a list of URLs.")
        urls = [text.strip(", \t\n") for text in texts if text.strip(", \t\n")]
        return tuple(ReplicaUrl()._deserialize(url, attr, data, **kwargs) for url in urls)


class OriginList(DelimitedList):
    """A list of origins as browsers send them, or ``*``."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> Any:
        origins = super()._deserialize(value, attr, data, **kwargs)
        for origin in origins:
            if not re.fullmatch(r"\*|https?://[A-Za-z0-9.-]+(:[0-9]+)?", origin):
                raise ma.ValidationError(
                    f"{origin!r} is not an origin such as https://shop.example."
                )
        return origins


class NetworkList(DelimitedList):
    """A list of networks in CIDR notation, or single addresses."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> Any:
        networks = super()._deserialize(value, attr, data, **kwargs)
        for network in networks:
            try:
                ip_network(network)
            except ValueError as error:
                raise ma.ValidationError(f"{error}.") from None
        return networks


class TimeZone(ma.fields.String):
    """The IANA name of a time zone."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> str:
        name: str = super()._deserialize(value, attr, data, **kwargs)
        try:
            return ZoneInfo(name).key
        except (KeyError, ValueError, OSError):  # unknown, not a name, or a folder of names
            raise ma.ValidationError(
                "Not the IANA name of a time zone. Examples: UTC, America/New_York."
            ) from None


class Contact(ma.fields.String):
    """An e-mail address, an http or https URL, or an empty string."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs).strip()
        is_url = ma.validate.URL(schemes={"http", "https"}, require_tld=False)
        check = is_url if "://" in text else ma.validate.Email()
        try:
            return check(text) if text else ""
        except ma.ValidationError:
            raise ma.ValidationError(
                "Must be an e-mail address or a URL. Examples: ops@shop.example, "
                "https://shop.example/contact"
            ) from None


class RedisUrl(ma.fields.String):
    """A URL of a Redis server."""

    def _deserialize(self, value: object, attr: str | None, data: object, **kwargs: object) -> str:
        url: str = super()._deserialize(value, attr, data, **kwargs)
        try:
            check_redis_url(url)
        except ValueError as error:
            raise ma.ValidationError(str(error)) from None
        return url


def _parsed(url: str) -> URL:
    try:
        return parse_database_url(url, _EXAMPLE)
    except ValueError as error:
        raise ma.ValidationError(str(error)) from None
