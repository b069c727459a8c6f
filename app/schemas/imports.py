"""Import schemas, and the parameters of their requests (people 7)."""

from typing import Any

from app.schemas.base import Base, list_response, response
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.query import (
    ChoiceParam,
    IntegerParam,
    LimitParam,
    OffsetParam,
    QueryField,
    TextParam,
)
from app.schemas.queries import PageQuery, Query, ReadQuery

KINDS = ("coupons", "customers")
ON_CONFLICT = ("fail", "skip", "update")
STATUSES = ("waiting", "running", "ready", "finished", "cancelled", "failed")

_STATUS = (
    "`waiting` for a worker, `running`, `ready` to be started after a dry run, `finished`, "
    "`cancelled`, or `failed`."
)


class ImportStatusField(fields.Output):
    """State of an import."""

    openapi = {
        json_schema.COMPONENT: "ImportStatus",
        "type": "string",
        "enum": list(STATUSES),
        "description": f"State of an import: {_STATUS}",
    }


class ImportSchema(Base):
    """Import of a file, or of a command."""

    id = fields.Identifier("Import ID.")
    source = fields.String("`file`, `restore`, `demo`, or the name of a shop.")
    kind = fields.OptionalString("Kind of the records. Null for a command that imports several.")
    status = ImportStatusField(_STATUS)
    name = fields.String("Name of the file. Empty if it has none.")
    format = fields.OptionalString("`csv`, `ndjson`, or null.")
    on_conflict = fields.OptionalString(
        "What happens to a record whose code or e-mail address exists: `fail`, `skip`, `update`, "
        "or null."
    )
    dry_run = fields.Boolean("Whether the numbers are those of a dry run.")
    size = fields.Number("Number of records in the file.")
    position = fields.Number("Number of records that were read.")
    created = fields.Number("Number of created records.")
    updated = fields.Number("Number of updated records.")
    skipped = fields.Number("Number of skipped records.")
    failed = fields.Number("Number of lines that failed.")
    reason = fields.OptionalString("Why the import failed or was cancelled, or null.")
    user_id = fields.OptionalIdentifier("ID of the user who created it. Null for a command.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    started_at = fields.OptionalTimestamp("When a worker began, in UTC, or null.")
    finished_at = fields.OptionalTimestamp("When it ended, in UTC, or null.")


class ImportErrorSchema(Base):
    """Line of a file that failed."""

    line = fields.Number("Number of the line, from 1.")
    code = fields.String("Error code, as in a bulk request.")
    message = fields.String("Error message.")
    param = fields.OptionalString("Name of the field, or null.")


ImportResponse = response(ImportSchema, "import")
ImportList = list_response(ImportSchema, "imports")
ImportErrorList = list_response(ImportErrorSchema, "import_errors")


class RequiredChoice(ChoiceParam):
    """One of several values, which must be supplied."""

    rejects_absence = True

    def convert(self, value: Any) -> str:
        return self.read(value)


class Flag(QueryField):
    """``true`` or ``false``. Blank text is neither, because the request would then write."""

    openapi = {"type": "boolean"}

    def convert(self, value: object) -> str:
        if value not in {"true", "false"}:
            raise ValueError("must be true or false.")
        return str(value)


class ImportCreateQuery(Query):
    """Parameters of a new import."""

    kind = RequiredChoice("kind", "Kind of the records in the file.", *KINDS)
    on_conflict = ChoiceParam(
        "on_conflict",
        "What happens to a record whose code or e-mail address exists: the line is an error, it is "
        "skipped, or the record is updated.",
        *ON_CONFLICT,
        default="fail",
    )
    dry_run = Flag(
        "dry_run",
        "`true` checks the file and writes nothing until it is started. `false` by default.",
        load_default=lambda: "false",
    )
    name = TextParam("name", "Name of the file.", openapi={"type": "string", "maxLength": 200})


class ImportListQuery(PageQuery, ReadQuery):
    """Query of the list of imports."""

    limit = LimitParam()
    offset = OffsetParam()
    status = ChoiceParam("filter[status]", "Only imports in this state.", *STATUSES)


class ImportErrorsQuery(ReadQuery):
    """Query of the lines that failed."""

    after = IntegerParam(
        "filter[after]", "Only lines after this one: the last line that you have read."
    )
    limit = IntegerParam(
        "filter[limit]",
        "Number of lines per page, up to 1,000. 0 means the page size of the shop.",
        maximum=1000,
    )
