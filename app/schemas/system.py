"""The shapes of the open routes."""

from __future__ import annotations

import marshmallow as ma

from app.schemas import fields
from app.schemas.envelope import Base


class ApiRootSchema(Base):
    """What this service is."""

    name = fields.String("The name of the shop's API.", required=True)
    version = fields.String("The version of the API.", required=True)
    links = ma.fields.Dict(keys=ma.fields.String(), values=ma.fields.String(), required=True)


class Health(Base):
    """That all is well."""

    status = fields.String("`ok`.", required=True)
