"""The WooCommerce legacy REST API at ``/wc-api/v2`` and ``/wc-api/v3`` (decisions 12)."""
