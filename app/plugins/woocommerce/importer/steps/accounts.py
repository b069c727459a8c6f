"""The import steps of accounts, their API keys and their webhooks."""

from collections.abc import Iterator, Sequence

from app.conversions.emails import comparable_email
from app.conversions.text import comparable
from app.plugins.woocommerce.importer.context import ImportContext
from app.plugins.woocommerce.importer.convert.accounts import (
    POSTS,
    WEBHOOK_TABLE,
    api_key,
    customer,
    present_hashes,
    read_webhooks,
    users_of,
    webhook,
)
from app.plugins.woocommerce.importer.convert.converted import Converted, LeftOut
from app.plugins.woocommerce.importer.convert.stored_values import whole
from app.plugins.woocommerce.importer.source.staging import Pages


def customers(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert accounts, with their roles and addresses."""
    metas = context.staging.meta_rows("usermeta", list(page))

    def convert(user_id: int) -> Converted:
        return customer(
            user_id,
            page[user_id][-1],
            metas.get(user_id, []),
            context.source.clock,
            f"{context.source.prefix}capabilities",
            metadata=context.metadata,
        )

    found = context.converted("customers", "users", page, convert)
    _make_unique(context, found)
    yield found


def _make_unique(context: ImportContext, accounts: Sequence[Converted]) -> None:
    """Empty e-mail addresses, and change usernames, that an earlier account of the source has."""
    owners = context.index.add_values(
        "email",
        [(key, a.source_id) for a in accounts if (key := comparable_email(a.values["email"]))],
    )
    names = context.index.add_values(
        "username", [(comparable(a.values["username"]), a.source_id) for a in accounts]
    )
    for account in accounts:
        email, username = account.values["email"], account.values["username"]
        if email and (owner := owners[comparable_email(email)]) != account.source_id:
            account.values["email"] = ""
            account.altered.append(
                f"account {owner} also has the e-mail {email!r}, so the "
                "e-mail of the later account was emptied"
            )
        number = 2
        name = username
        owner = names[comparable(name)]
        while owner != account.source_id:
            name = f"{username}-{number}"
            key = comparable(name)
            owner = context.index.add_values("username", [(key, account.source_id)])[key]
            number += 1
        if name != username:
            account.values["username"] = name
            account.altered.append(f"the username {username!r} is in use; the new one is {name!r}")


def api_keys(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert API keys. Clients can continue to use them."""
    users = [whole(rows[-1][0]) for rows in page.values()]
    accounts = context.writer.records.targets("customer", users)
    known = context.writer.records.targets("api_key", list(page))

    def convert(key_id: int) -> Converted:
        key = api_key(key_id, page[key_id][-1], accounts)
        key_hash = key.values["consumer_key_hash"]
        # The old server used the first of several keys with the same consumer key.
        owner = context.index.add_values("api_key", [(key_hash, key_id)])[key_hash]
        if owner != key_id:
            raise LeftOut(f"key {owner} has the same consumer key")
        present = present_hashes([key_hash])
        if key_id not in known and present:
            raise LeftOut("the key already exists in this shop")
        return key

    yield context.converted("API keys", "woocommerce_api_keys", page, convert)


def webhooks_table(context: ImportContext) -> str:
    """Return the name of the staged table with the webhooks. WooCommerce 3.3 introduced a table."""
    return WEBHOOK_TABLE if context.staging.count(WEBHOOK_TABLE) else POSTS


def webhooks(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert webhooks with the payload of the legacy API, paused."""
    name = webhooks_table(context)
    metas = context.staging.meta_of("postmeta", list(page) if name == POSTS else [])
    sources = {each.id: each for each in read_webhooks(name, page, metas)}
    accounts = context.writer.records.targets("customer", users_of([*sources.values()]))

    def convert(webhook_id: int) -> Converted:
        return webhook(sources[webhook_id], context.source.clock, accounts)

    yield context.converted("webhooks", name.partition(":")[0], page, convert)
