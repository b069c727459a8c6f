"""Import of shops from other systems: reading a source, converting its records, writing them."""
