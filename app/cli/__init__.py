"""The commands of the service. This module imports none of them, so that ``--help`` is fast."""

from collections.abc import Mapping

SCRIPT = "shop-api"
"""Name of the console script."""

COMMANDS: Mapping[str, tuple[str, str, str]] = {
    name: (f"app.cli.{module}", attribute, summary)
    for name, module, attribute, summary in (
        ("backup", "backup", "backup",
         "Write the database and the secret key to FILE, while the service runs."),
        ("coupons", "coupons", "coupons", "Coupons: generate batches of codes."),
        ("db", "db", "db", "Upgrade the database schema, show its version, and copy a shop."),
        ("demo", "demo", "demo",
         "Load a demo shop into the database and print an API key for it."),
        ("doctor", "doctor", "doctor",
         "Check the settings, secret key, database, schema and clocks, and suggest fixes."),
        ("export", "export", "export",
         "Write records to FILE, or to standard output if FILE is -."),
        ("import", "import_files", "imports",
         "Import records from another system or from files."),
        ("keys", "keys", "keys",
         "API keys: create, list, update, rotate, revoke, and links to sign in."),
        ("restore-backup", "backup", "restore_backup",
         "Fill the empty database of DATABASE_URL from FILE, and restore the secret key."),
        ("serve", "serve", "serve",
         "Upgrade the database schema, create a first API key if needed, and run gunicorn."),
        ("webhooks", "webhooks", "webhooks",
         "Webhooks: receive deliveries locally, send examples."),
        ("worker", "serve", "worker",
         "Deliver webhooks, import files and remove expired records."),
    )
}  # fmt: skip
"""The module and the name of each command, and the first sentence of its description."""
