"""API key schemas (decisions 2)."""

from app.errors import invalid
from app.schemas.base import Base, StrictBase, list_response, request, response, update_schema
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.query import ChoiceParam, IntegerParam
from app.schemas.queries import LimitQuery, PageQuery, Query, ReadQuery

PERMISSIONS = ("read", "write", "read_write")
"""The values of ``app.auth.principals.Permission``, which schemas cannot import."""

MAX_RESOURCES = 100

_DESCRIPTION = "What the key is used for."
_PERMISSION = "HTTP methods that the key allows: reads, writes or both."
_RESOURCES = (
    "Resources that the key can be used for, such as `coupons`, `customers`, `orders`, "
    "`redemptions` and `keys`. `all` includes resources that are added later."
)
_EXPIRES = "Time when the key expires, in UTC."
_RESOURCE = {"type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[^,\\u0000]*$"}


class PermissionInput(inputs.Choice):
    """The permission of a key."""

    openapi = {
        json_schema.COMPONENT: "ApiKeyPermission",
        "type": "string",
        "enum": list(PERMISSIONS),
        "description": "Permission of an API key.",
    }


class ExpiryInput(inputs.TimestampInput):
    """When a key expires."""

    openapi = {**json_schema.TIMESTAMP_IN, "examples": ["2030-12-31T00:00:00Z"]}


class ResourceList(inputs.Input):
    """Names of resources, without duplicates. The service checks whether they exist."""

    openapi = {
        "type": "array",
        "items": {**_RESOURCE, json_schema.COMPONENT: "ApiKeyResource"},
        "minItems": 1,
        "maxItems": MAX_RESOURCES,
        "examples": [["coupons", "redemptions"]],
    }

    def convert(self, value: object) -> list[str]:
        if not isinstance(value, list):
            raise ValueError("must be an array.")
        if len(value) > MAX_RESOURCES:
            raise invalid("has more than {0:,} entries.", MAX_RESOURCES)
        if not all(isinstance(name, str) and name for name in value):
            raise ValueError("must contain only names of resources.")
        return list(dict.fromkeys(value))


class ApiKeySchema(Base):
    """API key in a response, without its secret."""

    id = fields.Identifier("Key ID.")
    user_id = fields.Identifier("ID of the user, whose capabilities the key has.")
    username = fields.String("Username of the user.")
    description = fields.String(_DESCRIPTION)
    permission = fields.Output(_PERMISSION, openapi=PermissionInput.openapi)
    resources = fields.StringList(_RESOURCES, wire=lambda text: text.split(","))
    truncated_key = fields.String("Last characters of the consumer key.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    expires_at = fields.OptionalTimestamp(f"{_EXPIRES} Null if it never expires.")
    last_used_at = fields.OptionalTimestamp(
        "Minute in which the key was last used, in UTC. Null if it was never used."
    )


class ApiKeyWithSecretSchema(ApiKeySchema):
    """API key with its consumer key and secret, which are shown only once."""

    consumer_key = fields.String("Consumer key: the username in HTTP Basic authentication.")
    consumer_secret = fields.String("Consumer secret: the password. It cannot be read again.")


class _Limits(StrictBase):
    description = inputs.Text(_DESCRIPTION, load_default="")
    permission = PermissionInput(_PERMISSION, load_default="read")
    resources = ResourceList(_RESOURCES, load_default=lambda: ["all"])
    expires_at = ExpiryInput(
        f"{_EXPIRES} Must be in the future. An empty string means never.", load_default=None
    )


class ApiKeyCreate(_Limits):
    """Fields of a new API key. Without a user, the key belongs to the caller."""

    user_id = inputs.ExactInteger("ID of the user.", load_default=None)
    username = inputs.Text(
        "Username of the user. A user that does not exist is created with `role`.",
        openapi=json_schema.USERNAME_IN,
        load_default="",
    )
    role = inputs.Text(
        "Role of a new user: `administrator`, `shop_manager`, `shop_assistant`, `customer` or "
        "`subscriber`. If the user exists, it must have this role.",
        load_default="",
    )


RIGHTS = {
    "permission": FormField(values="permissions", help=""),
    "resources": FormField(kind="checks", values="resources", help=""),
    "expires_at": FormField(
        "Key expires on",
        kind="date",
        help="Empty means never. The key ends at midnight UTC at the beginning of this day.",
    ),
}
"""How a form shows the rights of a key."""

set_form(
    ApiKeyCreate,
    {
        "Key": {
            "description": FormField(help="What the key is used for, for example: ERP sync."),
            **RIGHTS,
        },
        "User": {
            "username": FormField(help="Empty means you. A user that does not exist is created."),
            "role": FormField("Role of a new user", values="roles", help=""),
        },
    },
    hidden=("user_id",),
)

ApiKeyUpdate = update_schema(_Limits, "ApiKeyUpdate")


class ApiKeyFilter(Query):
    """Filter of keys."""

    user_id = IntegerParam("filter[user_id]", "Only keys of this user.")


class ApiKeyOrder(LimitQuery, ApiKeyFilter):
    """Filter and order of keys."""

    orderby = ChoiceParam(
        "filter[orderby]", "Sort key. `date` is the creation time.", "date", "id", default="date"
    )


class ApiKeyListQuery(PageQuery, ApiKeyOrder, ReadQuery):
    """Query of a list of keys."""


ApiKeyCreateRequest = request(ApiKeyCreate, "key")
ApiKeyUpdateRequest = request(ApiKeyUpdate, "key")

ApiKeyResponse = response(ApiKeySchema, "key")
ApiKeyWithSecretResponse = response(ApiKeyWithSecretSchema, "key")

ApiKeyList = list_response(ApiKeySchema, "keys")
