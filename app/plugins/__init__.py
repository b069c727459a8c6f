"""The built-in plugins: the pages, and what WooCommerce shops and their programs need."""
