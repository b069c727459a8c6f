"""``shop-api import``: the group of the commands that import records."""

import click
from flask.cli import AppGroup

RESTORE = "--restore"
KINDS = ("batches", "coupons", "customers", "orders", "refunds", "redemptions")


class ImportGroup(AppGroup):
    """The group, in which ``--restore FILE...`` is short for ``restore FILE...``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. With ``--restore``, a kind is not needed: each line has its own."""
        if RESTORE in args:
            files = [arg for arg in args if arg != RESTORE]
            args = ["restore", *(files[1:] if files and files[0] in KINDS else files)]
        return super().parse_args(ctx, args)


imports = ImportGroup(
    "import",
    help="Import records from another system or from files.\n\n`shop-api import restore FILE...` "
    "restores exports into an empty database.",
)
