"""Write a dump of a generated shop: ``python -m tests.dumps --orders 1000000 shop.sql.gz``."""

import argparse

from tests.dumps.dialects import DIALECTS, write_dump
from tests.dumps.schemas import LAYOUTS
from tests.dumps.shop import PLUGIN_KEYS, Shop

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file", help="a name that ends in .gz is compressed")
parser.add_argument("--customers", type=int, default=1000)
parser.add_argument("--coupons", type=int, default=100)
parser.add_argument("--orders", type=int, default=3000)
parser.add_argument("--plugin-keys", type=int, default=PLUGIN_KEYS)
parser.add_argument("--layout", choices=LAYOUTS, default="3.5")
parser.add_argument("--dialect", choices=DIALECTS, default="mysqldump")
given = parser.parse_args()
shop = Shop(
    given.customers, given.coupons, given.orders, given.layout, plugin_keys=given.plugin_keys
)
write_dump(given.file, shop, given.dialect)
