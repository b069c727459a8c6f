"""The fixtures of this folder."""

from tests.webhooks.deliveries import receiver, receivers, shop

__all__ = ["receiver", "receivers", "shop"]
