"""Schemas of the routes that need no API key."""

import marshmallow as ma

from app.schemas.base import Base
from app.schemas.fields import output as fields


class ApiRootSchema(Base):
    """Name, version and links of the service."""

    name = fields.String("Name of the shop's API.")
    version = fields.String("Version of the API.")
    links = fields.by_name("URLs of the lists and of the documentation, by name.")


class Health(Base):
    """State of the service."""

    status = fields.String("`ok`.")


class ReplicaStatus(Base):
    """State of a replica of the database."""

    replica = fields.Number("Position in `DATABASE_REPLICA_URLS`, starting with 1.")
    state = fields.String(
        "`ok`, or why it is not used: `unknown`, `lagging`, `unavailable`, `not_a_standby`, "
        "`other_timeline`, `old_schema`."
    )
    lag_seconds = fields.Output(
        "Upper limit of the replication lag in seconds, or null if it is unknown.",
        openapi={"type": ["number", "null"], "minimum": 0},
    )


class Readiness(Health):
    """State of the service and of the replicas of its database."""

    replicas = ma.fields.List(
        ma.fields.Nested(ReplicaStatus),
        metadata={"description": "Replicas of the database. Only with `DATABASE_REPLICA_URLS`."},
    )
