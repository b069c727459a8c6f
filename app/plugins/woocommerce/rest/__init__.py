"""The REST API of WooCommerce, ``/wp-json/wc/v3``, on the services of this shop (wc-v3).

Nothing else imports this package. It imports services and ``app.api``.
"""
