"""What an adapter does."""

import secrets
from abc import ABC, abstractmethod
from typing import Any

from connection import Connection


class Adapter(ABC):
    """Creates a coupon in a shop and redeems it. All clients share an adapter."""

    creates = "orders"  # by the clients
    keeps = ""  # what ``remove`` cannot remove
    campaigns = False  # whether several codes can have a common limit

    def __init__(self, key: str, secret: str, campaign: str = "") -> None:
        self.key, self.secret, self.campaign = key, secret, campaign
        self.code = f"race-{secrets.token_hex(6)}"
        self.email_domain = f"{self.code}.example.com"  # unique in the shop
        self.coupon: Any = None  # ID of the coupon, once it exists

    def log_in(self, connection: Connection) -> None:
        """Let a connection send requests of an administrator."""
        connection.authenticate(self.key, self.secret)

    @abstractmethod
    def create(self, connection: Connection, limit: int) -> None:
        """Create a coupon that can be used ``limit`` times, and what orders need."""

    def prepare(self, connection: Connection, email: str) -> Any:
        """Do what a customer does before the last step. The result is passed to ``redeem``."""
        self.log_in(connection)
        return email

    @abstractmethod
    def redeem(self, connection: Connection, prepared: Any) -> None:
        """Use the coupon once, in all clients at the same time.

        Raises:
            RaceError: the coupon was not granted.
        """

    @abstractmethod
    def uses(self, connection: Connection) -> int:
        """Return how many uses the shop has counted."""

    @abstractmethod
    def remove(self, connection: Connection) -> None:
        """Remove what was created, also by requests whose response was lost."""
