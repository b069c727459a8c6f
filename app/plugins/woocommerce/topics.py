"""Topics of WooCommerce webhooks, and the hooks that they name (events 3)."""

import re
from collections.abc import Mapping

ACTION = "action"
HOOKS: Mapping[str, list[str]] = {
    "customer.created": [
        "user_register",
        "woocommerce_created_customer",
        "woocommerce_new_customer",
    ],
    "customer.updated": ["profile_update", "woocommerce_update_customer"],
    "customer.deleted": ["delete_user"],
    "customer.restored": [],
} | {
    f"{resource}.{event}": hooks
    for resource in ("coupon", "order")
    for event, hooks in {
        "created": [f"woocommerce_process_shop_{resource}_meta", f"woocommerce_new_{resource}"],
        "updated": [f"woocommerce_process_shop_{resource}_meta", f"woocommerce_update_{resource}"],
        "deleted": ["wp_trash_post"],
        "restored": ["untrashed_post"],
    }.items()
}
"""The names that the legacy server listed as ``hooks``, by topic."""

_TOPIC = re.compile(
    r"(coupon|customer|order|product)\.(created|updated|deleted|restored)"
    r"|action\.[A-Za-z0-9_./:-]{1,190}"
)


def stored_topic(text: str) -> str:
    """Return a topic as it is stored: in lower case, except for the name of a hook.

    The legacy server accepted any letter case.
    """
    topic = text.strip()
    return topic if topic.startswith(f"{ACTION}.") else topic.lower()


def is_topic(topic: str) -> bool:
    """Return whether the legacy API accepts a topic.

    Topics of events that do not exist here are accepted, but never delivered (events 3).
    """
    return _TOPIC.fullmatch(topic) is not None


def hooks_of(topic: str) -> list[str]:
    """Return the ``hooks`` of a topic as the legacy server listed them."""
    resource, _, event = topic.partition(".")
    return [event] if resource == ACTION else HOOKS.get(topic, [])
