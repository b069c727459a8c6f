"""Used nonces of OAuth 1.0a signatures (decisions 12)."""

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Key

CLOCK_SKEW = 15 * 60
"""Maximum difference in seconds between the timestamp of a signature and the server time."""


class OAuthNonce(Model):
    """Nonce used by an API key. Deleted when its timestamp is too old to be accepted."""

    __tablename__ = "oauth_nonces"

    # Hash of the API key ID, the timestamp and the nonce, because nonces can be long.
    id: Mapped[str] = mapped_column(Key, primary_key=True)
    # Signed timestamp in Unix seconds.
    timestamp: Mapped[int] = mapped_column(BigInteger, index=True)


OAUTH_NONCES = OAuthNonce.__table__
