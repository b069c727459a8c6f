"""Names, places and products of the demo shop."""

FIRST_NAMES = (  # noqa: SIM905  # readable as text
    "Ada Alan Amélie Anna Barbara Carlos Chloé Dennis Edsger Elena Émile Fatima Frances Grace "
    "Hedy Hiro Ida Ivan Jana Jean Jürgen Katherine Ken Lea Linus Łukasz Margaret Mary Mei "
    "Niklaus Olga Omar Priya Radia Rózsa Søren Sophie Tim Yuki Zoë"
).split()
LAST_NAMES = (  # noqa: SIM905  # readable as text
    "Allen Bartik Bauer Berners Cerf Díaz Dijkstra Easley Fischer García Hamilton Hopper "
    "Ivanova Jensen Johnson Kaya Knuth Kowalski Lamarr Lamport Lovelace Martin Müller Nakamura "
    "Nowak O'Neil Péter Perlman Ritchie Rossi Sato Silva Smith Svensson Tanaka Thompson "
    "Torvalds Turing Vaughan Wirth"
).split()
PLACES = (
    ("Berlin", "BE", "10115", "DE"),
    ("Köln", "NW", "50667", "DE"),
    ("Wien", "", "1010", "AT"),
    ("Zürich", "ZH", "8001", "CH"),
    ("Paris", "", "75001", "FR"),
    ("Lyon", "", "69001", "FR"),
    ("Milano", "MI", "20121", "IT"),
    ("Madrid", "M", "28001", "ES"),
    ("Kraków", "", "30-001", "PL"),
    ("Aarhus", "", "8000", "DK"),
    ("London", "", "EC1A 1BB", "GB"),
    ("Austin", "TX", "73301", "US"),
    ("Portland", "OR", "97201", "US"),
    ("Toronto", "ON", "M5H 2N2", "CA"),
)
PHONES = {
    "DE": "+49 30 23125 ###",
    "AT": "+43 1 5550 ###",
    "CH": "+41 44 555 ## ##",
    "FR": "+33 1 99 00 ## ##",
    "IT": "+39 02 5550 ####",
    "ES": "+34 915 55 ## ##",
    "PL": "+48 12 555 ## ##",
    "DK": "+45 55 55 ## ##",
    "GB": "+44 20 7946 0###",
    "US": "+1 512 555 01##",
    "CA": "+1 416 555 01##",
}
"""Telephone numbers of the countries, with # for a digit. Where a country has numbers for fiction,
they are used."""
STREETS = (
    "Main Street",
    "Hauptstraße",
    "Rue de la Paix",
    "Via Roma",
    "Station Road",
    "Calle Mayor",
)
COMPANIES = ("", "", "", "Analytical Engines Ltd", "Nordwind GmbH", "Café Zola")
PRODUCTS = tuple(
    (number, name, f"SKU-{number:03}", cents, digital)
    for number, (name, cents, digital) in enumerate(
        (
            ("Teapot", 3450, False), ("Tea, Darjeeling, 250 g", 1290, False),
            ("Tea, Sencha, 100 g", 990, False), ("Mug, blue", 850, False),
            ("Mug, white", 850, False), ("Kettle", 5900, False), ("Honey", 640, False),
            ("Biscuits", 375, False), ("Tray, oak", 4200, False), ("Strainer", 560, False),
            ("E-book: The Way of Tea", 1199, True), ("Recipe collection (PDF)", 499, True),
        ),
        start=1,
    )
)  # fmt: skip
STATUSES = (
    ("completed",) * 6
    + ("processing",) * 2
    + ("pending", "on-hold", "cancelled", "refunded", "failed")
)
SHIPPING = (("flat_rate", "Flat rate", 490), ("free_shipping", "Free shipping", 0))
PAYMENT = (("bacs", "Bank transfer"), ("card", "Credit card"), ("cod", "Cash on delivery"))
