"""The public surface for plugins: everything that a plugin may import (docs/plugins.md).

Other modules of this package can change in any release. The names here follow the version policy.
"""

from app.api import plugin_pages as admin
from app.api.authentication import current_principal
from app.api.blueprint import Blueprint
from app.api.dialect import Dialect
from app.api.etags import with_etag
from app.api.idempotency import idempotent
from app.api.routing import MountedRequests
from app.auth.principals import Capability
from app.catalog import (
    Change,
    ChangeHook,
    DuplicateNameError,
    ErasedPerson,
    OrderExtension,
    PersonHook,
)
from app.catalog import current_catalog as registry
from app.db.read_pool import fetch
from app.db.session import db, run_in_transaction
from app.errors import InvalidParams, ShopError
from app.models import Coupon, Order, OrderNote, OrderRefund, Redemption, User
from app.schemas.base import Base
from app.schemas.fields import output as fields
from app.schemas.orders.order import OrderSchema
from app.services.events.hooks import publish_events
from app.services.events.outbox import NewEvent

__all__ = [
    "Base",
    "Blueprint",
    "Capability",
    "Change",
    "ChangeHook",
    "Coupon",
    "Dialect",
    "DuplicateNameError",
    "ErasedPerson",
    "InvalidParams",
    "MountedRequests",
    "NewEvent",
    "Order",
    "OrderExtension",
    "OrderNote",
    "OrderRefund",
    "OrderSchema",
    "PersonHook",
    "Redemption",
    "ShopError",
    "User",
    "admin",
    "current_principal",
    "db",
    "fetch",
    "fields",
    "idempotent",
    "publish_events",
    "registry",
    "run_in_transaction",
    "with_etag",
]
