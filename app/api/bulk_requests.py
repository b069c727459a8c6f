"""Bulk requests of coupons, customers and orders (spec 4.3)."""

from collections.abc import Callable, Mapping, Sequence

import marshmallow as ma
from flask import Response, current_app
from marshmallow import ValidationError

from app.api.authentication import current_principal
from app.api.dialect import current_dialect
from app.api.request_parser import is_strict
from app.api.responses import json_response
from app.api.view_docs import current_view, documented
from app.auth.principals import Principal
from app.schemas.fields.given import defaults_of, load_given
from app.schemas.loading import instance_of, invalid_params
from app.schemas.strict import UnknownName
from app.services.common import bulk
from app.services.common.bulk import BulkItem, WriteResult


def bulk_response(
    record: str,
    items: Sequence[object],
    *,
    create: type[ma.Schema],
    update: type[ma.Schema],
    save: Callable[[Principal, Sequence[BulkItem]], Sequence[WriteResult]],
    dump: Callable[[Sequence[Mapping[str, object]]], Sequence[object]],
) -> Response:
    """Write the items of a bulk request and return the response with their results.

    Args:
        record: the name of the records, such as ``coupon``. Its plural is the wrapper key.
        items: the items as the client sent them.
        save: writes the loaded items in one transaction and returns one result per item, in order.

    Raises:
        ShopError: there are more than ``SHOP_BULK_LIMIT`` items. Nothing was written.
    """
    principal, dialect, strict = current_principal(), current_dialect(), is_strict()
    bulk.require_size(record, items, current_app.config["SHOP_BULK_LIMIT"])
    # Has all fields of an update, too.
    item_schema = instance_of(dialect.schema(create))
    # To create and to update. Items without the right are checked, but not written.
    allowed = list(map(principal.has_right, documented(current_view(), "rights")))
    schemas = [
        instance_of(dialect.schema(schema), strict=strict, names_only=not may, cleans=may)
        for schema, may in zip((create, update), allowed, strict=True)
    ]
    defaults = list(map(defaults_of, schemas))
    unknown_names: list[UnknownName] = []

    def load(item: BulkItem) -> BulkItem:
        is_update = item.id is not None
        try:
            data = load_given(schemas[is_update], item.data, defaults[is_update])
        except ValidationError as error:
            raise invalid_params(error, reported=unknown_names) from None
        return BulkItem(item.id, data if allowed[is_update] else {})

    results = bulk.run(
        record,
        [dialect.native_object(item_schema, item) for item in items],
        load=load,
        save=lambda loaded: save(principal, loaded),
        dump=dump,
        name=dialect.translate,
    )
    status = dialect.status("bulk_created") if results.created else 200
    return json_response({f"{record}s": results.items}, status)
