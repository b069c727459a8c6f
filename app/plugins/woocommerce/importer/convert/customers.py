"""Conversion of accounts from ``users`` and ``usermeta``."""

from collections.abc import Sequence
from datetime import UTC, datetime

from app.plugins.woocommerce.importer.convert.converted import Converted, LeftOut, Record
from app.plugins.woocommerce.importer.convert.metadata import MetadataConverter
from app.plugins.woocommerce.importer.convert.stored_values import Alterations
from app.plugins.woocommerce.importer.source.clock import ShopClock, from_unix
from app.plugins.woocommerce.importer.source.item_meta import MetaRows
from app.plugins.woocommerce.importer.source.php_values import UnreadableValue, keys_of
from app.plugins.woocommerce.importer.source.staging import meta_in
from app.plugins.woocommerce.importer.tables import ADDRESS_KEYS, USER_KEYS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def customer(
    user_id: int,
    row: Sequence[str | None],
    rows: MetaRows,
    clock: ShopClock,
    capabilities: str,
    *,
    metadata: MetadataConverter,
) -> Converted:
    """Return an account. Its password is not imported, because this service checks no passwords.

    Args:
        row: username, e-mail and registration.
        capabilities: the key of its roles in the metadata.

    Raises:
        LeftOut: it has no username.
    """
    altered = Alterations()
    meta = meta_in(rows)
    username, email, registered = row
    values: Record = {key: altered.text(meta.get(key)) for key in ADDRESS_KEYS}
    # WordPress stores registrations in UTC.
    created = clock.utc(registered)
    if created is None:
        created = EPOCH
        altered.append("the time of registration is missing")
    values |= {
        "username": altered.text(username).strip(),
        "email": altered.text(email).strip(),
        "password_hash": None,
        "first_name": altered.text(meta.get("first_name")),
        "last_name": altered.text(meta.get("last_name")),
        "created_at": created,
        "updated_at": from_unix(meta.get("last_update")) or created,
    }
    if not values["username"]:
        raise LeftOut("the account has no username")
    try:
        found = keys_of(meta.get(capabilities))
        roles = tuple(dict.fromkeys(altered.text(role) for role in found if role))
    except UnreadableValue:
        roles = ()
        altered.append("the roles cannot be read")
    fields = {*USER_KEYS, capabilities}
    entries = metadata.entries("usermeta", rows, fields, altered)
    return Converted(user_id, "users", values, altered, roles=roles, metadata=entries)
