"""The shapes of the open routes."""

from __future__ import annotations

import marshmallow as ma

from app.schemas import fields
from app.schemas.envelope import Base


class Index(Base):
    """What this service is."""

    name = fields.Words("The name of the shop's API.", required=True)
    version = fields.Words("The version of the API.", required=True)
    links = ma.fields.Dict(keys=ma.fields.String(), values=ma.fields.String(), required=True)


class Health(Base):
    """That all is well."""

    status = fields.Words("`ok`.", required=True)
