"""Conversion and validation of e-mail addresses."""

import re
import unicodedata

import idna

from app.conversions.text import comparable, is_word, visible

EMAIL_MAX_LENGTH = 254
"""Longest e-mail address, without the angle brackets (RFC 5321 4.5.3.1.3)."""

ERASED_DOMAIN = "erased.invalid"
ERASED_EMAIL = f"erased@{ERASED_DOMAIN}"
"""What replaces an address in the conditions of a coupon. Addresses of the domain never match."""

# In ASCII: white space, control characters and the specials of RFC 5322. Beyond ASCII, addresses
# may contain everything except blanks and control characters (RFC 6531).
_IMPOSSIBLE_IN_LOCAL = re.compile(r"[\s\x00-\x20\"(),:;<>@\[\\\]\x7f-\x9f]")
_IMPOSSIBLE_IN_DOMAIN = re.compile(r"[\s\x00-,/:-@\[-`{-\x9f]")
_DOTS = "[.\u3002\uff0e\uff61]"  # separators of domain labels (RFC 3490, 3.1)
# Most addresses match this pattern. The library takes twenty times as long to validate them.
_PLAIN_EMAIL = re.compile(
    r"[a-z0-9_+]{1,30}(?:[.-][a-z0-9_+]{1,30})?@(?:[a-z0-9]{1,60}\.){1,3}[a-z]{2,20}", re.ASCII
)


def is_email(address: str) -> bool:
    """Return whether an address is valid (RFC 5321 and 6531) and its domain contains a dot."""
    if len(address) > EMAIL_MAX_LENGTH or visible(address) != address:
        return False
    if _PLAIN_EMAIL.fullmatch(address):
        return True
    import email_validator  # noqa: PLC0415  # compiles long patterns, which few processes need

    # Shops have customers with .test and .local addresses (decisions 13). The library rejects these
    # domains based on a process-wide list, so check the address with an accepted domain instead.
    top = re.split(_DOTS, address)[-1]
    if unicodedata.normalize("NFKC", top).lower() in email_validator.SPECIAL_USE_DOMAIN_NAMES:
        address = address.removesuffix(top) + "com"
    try:
        email_validator.validate_email(address, check_deliverability=False, strict=True)
    except email_validator.EmailNotValidError:
        return False
    return True


def comparable_email(address: str) -> str:
    """Return what is equal for all forms of an e-mail address.

    The address is in lower case and NFC. Its domain is in Unicode (IDNA 2008 with UTS 46), because
    ``max@münchen.example`` and ``max@xn--mnchen-3ya.example`` are one mailbox. Text that is not an
    address is converted to lower case and NFC, like a domain that IDNA does not allow.
    """
    local, at, domain = address.rpartition("@")
    if not at:
        return comparable(address)
    return comparable(local) + at + _comparable_domain(domain)


def _comparable_domain(domain: str) -> str:
    if domain.isascii() and "xn--" not in domain.lower():
        return domain.lower()
    if len(domain) > EMAIL_MAX_LENGTH:
        return comparable(domain)
    mapped = comparable(re.sub(_DOTS, ".", unicodedata.normalize("NFKC", domain)))
    try:
        return comparable(idna.decode(mapped, uts46=True))
    except UnicodeError:  # also the base class of errors of IDNA
        return mapped


def lower_domain(value: str) -> str:
    """Return an address with its domain in lower case and its local part unchanged."""
    local, at, domain = value.strip().rpartition("@")
    return local + at + domain.lower()


def sanitize_email(value: str) -> str:
    """Remove the characters that an address cannot contain.

    Returns an empty string if the result is not a valid address (decisions 13).
    """
    local, _, domain = value.strip().partition("@")
    # Truncate first, so that very long input does not take long. It is invalid anyway.
    local = _IMPOSSIBLE_IN_LOCAL.sub("", local[: 4 * EMAIL_MAX_LENGTH])
    domain = _IMPOSSIBLE_IN_DOMAIN.sub("", domain[: 4 * EMAIL_MAX_LENGTH]).strip(".")
    address = lower_domain(f"{local}@{domain}")
    return address if is_email(address) else ""


def username_from_email(address: str) -> str:
    """Return a username based on the local part of an address, or an empty string."""
    local = address.partition("@")[0]
    return "".join(char for char in local if is_word(char) or char in ".-")
