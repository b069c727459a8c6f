"""Import of a WooCommerce database: reading a source, converting its records, writing them."""
