"""Decimal places of currencies (ISO 4217). Amounts have two at most (spec 2.1)."""

_NONE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE = "BHD IQD JOD KWD LYD OMR TND"
_PLACES = {
    **dict.fromkeys(_NONE.split(), 0),
    **dict.fromkeys(_THREE.split(), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}

MOST_PLACES = 2
"""Decimal places of an amount."""


def decimal_places(currency: str) -> int:
    """Return the decimal places of a currency, in any letter case: 2 unless ISO 4217 differs."""
    return _PLACES.get(currency.upper(), 2)


def smallest_amount(currency: str) -> int:
    """Return the smallest amount of a currency in cents: 100 for yen, otherwise 1."""
    return 1 if decimal_places(currency) else 100


def in_smallest_amounts(cents: int, currency: str) -> int:
    """Return an amount in cents, rounded half up to the smallest amount of its currency."""
    smallest = smallest_amount(currency)
    return (2 * cents + smallest) // (2 * smallest) * smallest
