"""What the clients do: few records, much contention, every operation of the API on them."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from datetime import datetime
from random import Random
from typing import Any

from qa.histories.history import Operation

CODES = ("spring", "summer", "autumn", "winter", "vip")
CONDITIONS = {
    "expired": {"expiry_date": "2020-01-01"},
    "minimum": {"minimum_amount": "25.00"},
    "maximum": {"maximum_amount": "25.00"},
    "product-1": {"product_ids": [1]},
    "single": {"individual_use": True},
    "members": {"customer_emails": ["member@example.com"]},
}
"""Coupons without limits that no operation changes, and their conditions."""
CAMPAIGNS = (
    {"name": "limits", "usage_limit": 12, "usage_limit_per_user": 2},
    {"name": "budget", "budget": "6.00"},
)
"""Campaigns, which most codes join, leave or change."""
STATUSES = ("pending", "processing", "on-hold", "completed", "cancelled", "failed", "refunded")
MEMBER = "member@example.com"
"""Address that no account gets and nobody erases, because that would change a condition."""
GUESTS = ("Guest1@example.com", "guest1@EXAMPLE.com", "guest2@example.com", "")
LEAST_COUPONS = 4
CUSTOMERS = 8
LEAST_CUSTOMERS = 4  # before a merge or an erasure
NOT_ERASED = frozenset({"change"})
"""Metadata of orders that an erasure keeps."""
LIFE = 5  # seconds; reservations that live shorter are left alone until they expire
USES_OF_KEY = 4  # before and after a change of the key
NO_COUPON = 10**12  # an ID without a coupon
MAX_ORDERS = 40
MAX_PER_COUPON = 60  # operations in two seconds
RECORDED = "0.77"  # amount of the coupon lines that clients of the legacy API compute
LEGACY = ("/wc-api/v2", "/wc-api/v3")

CURRENCY = "EUR"  # of a few orders; the shop has another one
FEE = {"title": "Gift wrapping", "total": "2.50", "total_tax": "0.50"}
OTHER_PATH = ("reserve", "create_order", "create_coupon")
"""Kinds of operations that use the Idempotency-Key of another path."""
OTHER_BODY = {
    "reserve": ("redemption", "expires_in", 901),
    "create_order": ("order", "note", "another"),
    "refund": ("order_refund", "reason", "another"),
    "create_coupon": ("coupon", "description", "another"),
}
"""Wrapper, field and value that make another request of the same kind."""

WEIGHTS = {
    "reserve": 22, "confirm": 11, "release": 22, "evaluate": 6,
    "create_order": 14, "set_status": 8, "change_items": 2, "change_coupons": 4,
    "change_customer": 6, "trash_order": 5, "restore_order": 4, "delete_order": 4,
    "bulk_orders": 3, "refund": 6, "delete_refund": 1, "change_limit": 4, "set_usage_count": 3,
    "rename": 1.5, "trash_coupon": 1, "restore_coupon": 2, "delete_coupon": 1.2,
    "create_coupon": 2, "conditional_update": 2, "generate": 0.5, "trash_batch": 0.5,
    "change_email": 3, "create_customer": 3, "delete_customer": 0.5, "read_only": 0.7,
    "merge": 1.5, "claim": 1.5, "erase": 0.8,
    "conditional_order": 1.5, "conditional_customer": 1.5, "conditional_trash": 1, "create_key": 0.5, "restrict_key": 0.4, "revoke_key": 0.4,
    "use_key": 2,
    "read_coupon": 6, "read_code": 2, "read_redemption": 5, "read_order": 4,
    "change_campaign": 3, "pause_campaign": 1.5, "move_coupon": 2, "change_amount": 7,
    "read_customer": 3, "list_orders": 3, "list_coupons": 1, "list_redemptions": 2,
    "count": 2, "count_orders": 3, "read_feed": 1,
}  # fmt: skip
"""How often each kind of operation is chosen."""
OF_ACCOUNTS = dict.fromkeys(WEIGHTS, 0.1) | {
    "reserve": 30, "release": 14, "confirm": 6, "create_order": 10, "change_customer": 6,
    "trash_order": 4, "restore_order": 4, "delete_order": 4, "set_status": 3, "evaluate": 3,
    "change_email": 14, "create_customer": 14, "create_coupon": 2,
    "merge": 5, "claim": 3, "erase": 2,
}  # fmt: skip
"""The same if most operations are about accounts, and guests who have their addresses."""


class World:
    """What all clients know, from responses and from the pauses. It can be out of date."""

    def __init__(
        self, seed: int, max_per_coupon: int = MAX_PER_COUPON, *, is_about_accounts: bool = False
    ) -> None:
        self.max_per_coupon = max_per_coupon
        self.is_about_accounts = is_about_accounts
        self.weights = OF_ACCOUNTS if is_about_accounts else WEIGHTS
        self.lock = threading.Lock()
        self.seed = seed
        self.number = 0
        self.coupons: dict[int, dict[str, Any]] = {}
        self.trashed_coupons: list[int] = []
        self.codes: list[str] = list(CODES)
        self.campaigns: dict[int, dict[str, Any]] = {}
        self.customers: dict[int, str] = {}
        self.orders: dict[int, dict[str, Any]] = {}
        self.trashed_orders: list[int] = []
        self.redemptions: deque[dict[str, Any]] = deque(maxlen=12)
        self.expiring: deque[dict[str, Any]] = deque(maxlen=20)
        self.held: list[dict[str, Any]] = []  # live uses of the last pause, without those of orders
        self.references: deque[tuple[str, str]] = deque(maxlen=6)
        self.reserved: list[tuple[str, str]] = []  # codes and references of the last pause
        self.refunds: deque[tuple[int, int]] = deque(maxlen=12)  # IDs of orders and refunds
        self.batches: deque[int] = deque(maxlen=4)
        self.keys: deque[dict[str, Any]] = deque(maxlen=3)  # API keys, also revoked ones
        self.twins: deque[Operation] = deque()  # to be sent by another client at the same time
        self.done: Counter[str] = Counter()
        self.per_code: Counter[str] = Counter()
        self.hot: str = CODES[0]  # what half of the operations use
        self.hot_customer = 0

    def next_number(self) -> int:
        """Return a number that is unique in the run."""
        with self.lock:
            self.number += 1
            return self.number

    def refresh(self, state: dict[str, Any]) -> None:
        """Take over the state at a pause."""
        self.coupons = dict(state["coupons"])
        self.campaigns = dict(state["campaigns"])
        trashed = state["trashed_coupons"].values()
        self.trashed_coupons = [each["id"] for each in trashed if not each["code"].startswith("g-")]
        self.customers = {
            id_: each["email"]
            for id_, each in state["customers"].items()
            if each["role"] == "customer"
        }
        self.orders = dict(state["orders"])
        self.trashed_orders = list(state["trashed_orders"])
        other = {each["code"] for each in self.coupons.values()} - {*CODES, *CONDITIONS}
        self.codes = [*CODES, *sorted(code for code in other if not code.startswith("g-"))]
        self.hot_customer = min(self.customers, default=0)
        self.held = [
            each
            for each in state["redemptions"].values()
            if each["status"] in {"reserved", "confirmed"} and not each["order_id"]
        ]
        self.reserved = [
            (each["code"], each["reference"]) for each in self.held if each["status"] == "reserved"
        ]
        self.per_code.clear()


class Generator:
    """Chooses the operations of one client.

    Args:
        client: number of the client.
        needed: how often each kind of operation must occur in the run.
    """

    def __init__(self, client: int, world: World, seed: int, needed: int) -> None:
        self.client, self.world, self.needed = client, world, needed
        self.random = Random(f"{seed}-{client}")
        self.position = ""  # of the last response of the client
        self._floor = 0.0  # what was committed before this time is included in the position
        self._prefix = f"h{seed}-{client}"
        self._own: tuple[str, int] | None = None  # the record that the client has just written
        self._next: deque[Operation] = deque()  # what the client does after a read

    def next(self) -> Operation:
        """Return the next operation. Most reads have the position of the client's last response."""
        operation = self._chosen()
        if operation.method == "GET" and self.position and self.random.random() < 0.7:
            operation.position = self.position
            operation.args["floor"] = self._floor
        return operation

    def _chosen(self) -> Operation:
        """Return a repetition with the same key, or a new operation."""
        with self.world.lock:
            twin = self.world.twins.popleft() if self.world.twins else None
        if twin:
            return self._again(twin)
        if self._next:
            return self._next.popleft()
        own, self._own = self._own, None
        if own and self.random.random() < 0.5:
            return self._prepared(self._read_own(*own))
        for _ in range(20):
            kind = self._kind()
            try:
                operation = getattr(self, f"_{kind}")()
            except KeyError as error:
                if isinstance(error.args[0], str):
                    raise  # not the ID of a record
                continue  # another client has just deleted the record that this one had chosen
            if operation:
                code = operation.args.get("code")
                if code and self.world.per_code[code] >= self.world.max_per_coupon:
                    continue
                return self._read_before(self._prepared(operation))
        return self._prepared(self._read_feed())

    def _read_before(self, operation: Operation) -> Operation:
        """Return an operation, or a read of what it changes, which comes before it.

        What the read leaves in a cache must not be read after the operation.
        """
        if operation.kind == "reserve" and self.random.random() < 0.2:
            first, again = (self._evaluation(operation) for _ in range(2))
            self._next.extend([operation, again])
            return first
        if operation.kind == "create_order" and self.random.random() < 0.2:
            first, again = (self._prepared(self._count_of_orders()) for _ in range(2))
            self._next.extend([operation, again])
            return first
        for kind in ("order", "coupon", "customer"):
            if operation.method == "PUT" and kind in operation.args and self.random.random() < 0.5:
                self._next.append(operation)
                return self._prepared(self._read_own(kind, operation.args[kind]))
        return operation

    def _kind(self) -> str:
        done = self.world.done
        if self.random.random() < 0.15:
            rarest = min(WEIGHTS, key=lambda kind: (done[kind], self.random.random()))
            if done[rarest] < self.needed:
                return rarest
        weights = self.world.weights
        return self.random.choices(list(weights), list(weights.values()))[0]

    def _prepared(self, operation: Operation) -> Operation:
        random, world = self.random, self.world
        world.done[operation.kind] += 1
        for code in operation.args.get("codes", [operation.args.get("code")]):
            if code:
                world.per_code[code] += 1
        is_idempotent = operation.args.pop("is_idempotent", False)
        if is_idempotent and random.random() < 0.6:
            operation.key = f"key-{operation.request_id}"
            if random.random() < 0.4:
                world.twins.append(operation)
        return operation

    def _again(self, operation: Operation) -> Operation:
        """Return the same request with an ID of its own."""
        self.world.done["repeat"] += 1
        args = dict(operation.args) | {"is_repeat": True}
        return self._operation(
            operation.kind,
            operation.method,
            operation.path,
            operation.body,
            key=operation.key,
            **args,
        )

    def repeat(self, operation: Operation) -> Operation | None:
        """Return a repetition of an operation with a key that has ended, or None.

        A few have the same key and another body, and must be rejected.
        """
        if not operation.key or operation.args.get("is_repeat"):
            return None
        is_lost = operation.status is None
        if not is_lost and operation.kind in OTHER_BODY and self.random.random() < 0.08:
            return self._altered(operation)
        if not is_lost and self.random.random() < 0.06:
            return self._of_other_path(operation)
        return self._again(operation) if self.random.random() < (0.9 if is_lost else 0.4) else None

    def _altered(self, operation: Operation) -> Operation:
        """Return a request with the same key and another body."""
        other = self._again(operation)
        wrapper, name, value = OTHER_BODY[operation.kind]
        other.body = {wrapper: operation.body[wrapper] | {name: value}}
        if name in other.args:
            other.args[name] = value
        return other

    def _of_other_path(self, operation: Operation) -> Operation | None:
        """Return a request with the same key and another path, which is processed."""
        kind = self.random.choice([each for each in OTHER_PATH if each != operation.kind])
        other: Operation | None = getattr(self, f"_{kind}")()
        if other is None or other.path == operation.path or other.kind != kind:
            return None
        other.args.pop("is_idempotent", None)
        other.key = operation.key
        other.args["is_repeat"] = True
        return other

    def _operation(
        self, kind: str, method: str, path: str, body: Any = None, *, key: str = "", **args: Any
    ) -> Operation:
        request_id = f"{self._prefix}-{self.world.next_number()}"
        return Operation(self.client, kind, method, path, body, args, request_id, key)

    # --- choices ---

    def _code(self) -> str:
        random, world = self.random, self.world
        code = world.hot if random.random() < 0.5 else random.choice(world.codes)
        live = [each for each in world.codes if each in self._live_codes()]
        if code not in live and live and random.random() < 0.8:
            code = random.choice(live)  # otherwise most requests would find no coupon
        return code.upper() if random.random() < 0.1 else code

    def _live_codes(self) -> set[str]:
        return {each["code"] for each in list(self.world.coupons.values())}

    def _has_few_coupons(self) -> bool:
        """Return whether so few of CODES are left that one is created instead of removed."""
        return len(self._live_codes().intersection(CODES)) < LEAST_COUPONS

    def _codes(self, numbers: tuple[int, ...]) -> list[str]:
        """Return codes for a cart or an order. A few have conditions instead of limits."""
        random = self.random
        codes = {self._code().lower() for _ in range(random.choice(numbers))}
        if random.random() < 0.1:
            codes.add(random.choice(list(CONDITIONS)))
        return sorted(codes)

    def _person(self) -> dict[str, Any]:
        """Return a customer by ID, by e-mail, by both, by both of different people, or a guest."""
        random, customers = self.random, self.world.customers
        if not customers or random.random() < 0.3:
            return {"customer_id": 0, "email": random.choice((*GUESTS, MEMBER))}
        first, other = random.choice(list(customers)), random.choice(list(customers.values()))
        if self.world.hot_customer in customers and random.random() < 0.5:
            first = self.world.hot_customer
        email = customers.get(first, "")
        email = email.swapcase() if random.random() < 0.3 else email
        return random.choice(
            [
                {"customer_id": first, "email": ""},
                {"customer_id": 0, "email": email},
                {"customer_id": first, "email": email},
                {"customer_id": first, "email": other},
            ]
        )

    def _coupon_id(self) -> int | None:
        of_hot = [
            id_ for id_, each in list(self.world.coupons.items()) if each["code"] == self.world.hot
        ]
        if of_hot and self.random.random() < 0.5:
            return of_hot[0]
        found = [
            id_
            for id_, each in list(self.world.coupons.items())
            if each["code"] in self.world.codes
        ]
        return self.random.choice(found) if found else None

    def _order_id(self) -> int | None:
        found = list(self.world.orders)
        return self.random.choice(found[-10:]) if found else None

    def _redemption(self, *, expiring: float = 0.2) -> dict[str, Any] | None:
        """Return a recent redemption, or one whose reservation expires now or has expired.

        Args:
            expiring: how often it is one that expires.
        """
        due = self._due(-0.3)
        if due and self.random.random() < expiring:
            return self.random.choice(due)
        found = list(self.world.redemptions)
        return self.random.choice(found) if found else None

    def _due(self, since: float) -> list[dict[str, Any]]:
        """Return the reservations that have expired some seconds ago, up to six."""
        at = time.time()
        return [each for each in list(self.world.expiring) if since < at - each["expires"] < 6]

    # --- redemptions ---

    def _reserve(self, wanted: str = "") -> Operation:
        """Reserve a use of a code, or of a certain one with a new reference.

        Args:
            wanted: the certain code.
        """
        random, world = self.random, self.world
        code, person = wanted or self._code(), self._person()
        if not wanted and random.random() < 0.05:
            code = random.choice(("expired", "members"))
        reference = f"cart-{self._prefix}-{world.next_number()}"
        if not wanted and random.random() < 0.1 and (due := self._due(0.0)):
            # Often before the shop has stored that it has expired.
            expired = random.choice(due)
            code, reference = expired["code"], expired["reference"]
        elif not wanted and world.references and random.random() < 0.25:
            earlier = world.reserved if random.random() < 0.4 else None
            code, reference = random.choice(earlier or world.references)
        else:
            world.references.append((code, reference))
        expires_in = random.randint(1, 3) if random.random() < 0.25 else 900
        amount = random.choice(("0.00", "0.50", "1.00", "2.00"))
        new = {"code": code, "reference": reference, "expires_in": expires_in, **person}
        return self._operation(
            "reserve", "POST", "/redemptions", {"redemption": new | {"amount": amount}},
            is_idempotent=True, code=code.lower(), reference=reference, expires_in=expires_in,
            amount=amount, **person,
        )  # fmt: skip

    def _move(self, kind: str, found: dict[str, Any] | None) -> Operation | None:
        if found is None:
            return None
        path = f"/redemptions/{found['id']}/{kind}"
        return self._operation(kind, "POST", path, redemption=found["id"], code=found["code"])

    def _confirm(self) -> Operation | None:
        """Confirm a use. Often the reservation has expired, and others take its slot before."""
        found = self._redemption(expiring=0.6)
        confirm = self._move("confirm", found)
        has_expired = found and found["expires"] and found["expires"] < time.time()
        if not (found and confirm and has_expired and self.random.random() < 0.5):
            return confirm
        second = self._prepared(self._reserve(found["code"]))
        self._next.extend([second, self._prepared(confirm)])
        return self._reserve(found["code"])

    def _release(self) -> Operation | None:
        """Release a recent use, or one that nobody would release otherwise."""
        held = None
        if self.random.random() < 0.4:
            with self.world.lock:
                held = self.world.held.pop(0) if self.world.held else None
        return self._move("release", held or self._redemption(expiring=0.1))

    def _evaluate(self) -> Operation:
        person = self._person()
        codes = self._codes((1, 2, 3))
        if self.random.random() < 0.5:  # it costs nobody a use
            codes = sorted({*codes, *self.random.sample(list(CONDITIONS), 2)})
        cart = {**person, "coupons": codes, "items": [self._line()]}
        return self._operation(
            "evaluate", "POST", "/coupons/evaluate", {"cart": cart}, codes=codes, **person
        )

    def _evaluation(self, reserve: Operation) -> Operation:
        """Return the evaluation of a cart with the coupon and the person of a reservation."""
        args = reserve.args
        person = {name: args[name] for name in ("customer_id", "email")}
        codes, line = [args["code"]], {"name": "Product 4", "quantity": 1, "price": "31.95"}
        cart = {**person, "coupons": codes, "items": [line | {"product_id": 4}]}
        return self._prepared(
            self._operation(
                "evaluate", "POST", "/coupons/evaluate", {"cart": cart}, codes=codes, **person
            )
        )

    # --- orders ---

    def _line(self) -> dict[str, Any]:
        number = self.random.randint(1, 4)
        return {
            "product_id": number,
            "name": f"Product {number}",
            "quantity": self.random.randint(1, 3),
            "price": f"{number * 7}.95",
        }

    def _order(self, *, legacy: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        random, person = self.random, self._person()
        codes = self._codes((1, 1, 1, 2, 3))
        amount = {"amount": RECORDED} if legacy else {}
        lines = [{"code": code} | amount for code in codes]
        line = self._line()
        if legacy:
            line = {
                "product_id": line["product_id"],
                "name": line["name"],
                "quantity": 2,
                "total": "20.00",
            }
        key = f"order-{self._prefix}-{self.world.next_number()}"
        order = {
            "status": random.choice(STATUSES[:4] if random.random() < 0.8 else STATUSES),
            "customer_id": person["customer_id"],
            "billing_address": {"email": person["email"], "first_name": "A"},
            "line_items": [line],
            "coupon_lines": lines,
            "order_key": key,
        }
        if not legacy and random.random() < 0.3:
            order["metadata"] = {"key": key}
        if random.random() < 0.3:
            order["shipping_lines"] = [
                {"method_id": "flat_rate", "method_title": "Flat", "total": "4.00"}
            ]
        if random.random() < 0.2:
            order["fee_lines"] = [FEE]
        if random.random() < 0.1:
            order["currency"] = CURRENCY
        return order, {"codes": codes, "order_key": key, **person}

    def _create_order(self) -> Operation | None:
        if len(self.world.orders) >= MAX_ORDERS:
            return self._delete_order()
        legacy = self.random.choice(LEGACY) if self.random.random() < 0.25 else ""
        order, args = self._order(legacy=bool(legacy))
        args["is_idempotent"] = not legacy or self.random.random() < 0.5
        return self._operation("create_order", "POST", f"{legacy}/orders", {"order": order}, **args)

    def _update_order(
        self, kind: str, change: dict[str, Any], order_id: int, **args: Any
    ) -> Operation:
        mount = self.random.choice(LEGACY) if self.random.random() < 0.2 else ""
        codes = [line["code"] for line in self.world.orders[order_id]["coupon_lines"]]
        change = change | {"metadata": {"change": str(self.world.next_number())}}
        return self._operation(
            kind, "PUT", f"{mount}/orders/{order_id}", {"order": change},
            order=order_id, **{"codes": codes} | args,
        )  # fmt: skip

    def _conditional_order(self) -> Operation | None:
        """Update an order only if it is the one that was read before."""
        order_id = self._order_id()
        change = {"note": f"note-{self.world.next_number()}"}
        return order_id and self._operation(
            "conditional_order", "PUT", f"/orders/{order_id}", {"order": change},
            order=order_id, codes=[], needs_etag=True,
        )  # fmt: skip

    def _conditional_customer(self) -> Operation | None:
        """Update an account only if it is the one that was read before. Two clients do it at once."""
        if not self.world.customers:
            return None
        customer_id = self.world.hot_customer or self.random.choice(list(self.world.customers))
        change = {"first_name": f"name-{self.world.next_number()}"}
        operation = self._operation(
            "conditional_customer", "PUT", f"/customers/{customer_id}", {"customer": change},
            customer=customer_id, needs_etag=True,
        )  # fmt: skip
        self.world.twins.append(operation)
        return operation

    def _conditional_trash(self) -> Operation | None:
        """Move an order or a coupon to the trash only if it is the one that was read before.

        Another client changes it meanwhile.
        """
        write = self._change_limit() if self.random.random() < 0.5 else self._set_status()
        if write is None:
            return None
        self.world.twins.append(write)
        kind = "coupon" if "coupon" in write.args else "order"
        more = {"code": write.args["code"]} if kind == "coupon" else {"codes": []}
        id_ = {kind: write.args[kind]}
        path = f"/{kind}s/{write.args[kind]}"
        return self._operation("conditional_trash", "DELETE", path, needs_etag=True, **id_, **more)

    def _set_status(self) -> Operation | None:
        order_id = self._order_id()
        if order_id is None:
            return None
        return self._update_order("set_status", {"status": self.random.choice(STATUSES)}, order_id)

    def _change_items(self) -> Operation | None:
        order_id = self._order_id()
        if order_id is None:
            return None
        lines = self.world.orders[order_id]["line_items"]
        change = self._line()
        if lines and self.random.random() < 0.6:
            change = {"id": self.random.choice(lines)["id"], "quantity": self.random.randint(1, 3)}
        return self._update_order("change_items", {"line_items": [change]}, order_id)

    def _change_amount(self) -> Operation | None:
        """Record another amount of a coupon line, which changes the budget of its campaign."""
        order_id = self._order_id()
        lines = self.world.orders[order_id]["coupon_lines"] if order_id is not None else ()
        known = [line["id"] for line in lines if line["amount"] != RECORDED]
        if order_id is None or not known:
            return None
        amount = self.random.choice(("0.50", "1.00", "3.00", "6.00"))
        change = {"coupon_lines": [{"id": self.random.choice(known), "amount": amount}]}
        return self._update_order("change_amount", change, order_id)

    def _change_coupons(self) -> Operation | None:
        order_id = self._order_id()
        if order_id is None:
            return None
        lines = self.world.orders[order_id]["coupon_lines"]
        changes: list[dict[str, Any]] = []
        if lines and self.random.random() < 0.6:
            changes.append({"id": self.random.choice(lines)["id"], "remove": True})
        if not changes or self.random.random() < 0.5:
            changes.append({"code": self._code().lower()})
        codes = [line["code"] for line in lines] + [
            each["code"] for each in changes if "code" in each
        ]
        change = {"coupon_lines": changes}
        return self._update_order(
            "change_coupons", change, order_id, codes=list(dict.fromkeys(codes))
        )

    def _change_customer(self) -> Operation | None:
        order_id = self._order_id()
        if order_id is None:
            return None
        person = self._person()
        # Often one who has used the same coupon, so that the limit per customer is reached.
        used, rivals = self._redemption(expiring=0.0), self._rivals()
        same = [
            id_
            for id_, order in list(self.world.orders.items())
            if used and used["code"] in {line["code"] for line in order["coupon_lines"]}
        ]
        if rivals and self.random.random() < 0.6:
            order_id, person = rivals
        elif used and same and self.random.random() < 0.6:
            order_id = self.random.choice(same)
            person = {"customer_id": used["customer_id"] or 0, "email": used["email"]}
        change = {
            "customer_id": person["customer_id"],
            "billing_address": {"email": person["email"]},
        }
        return self._update_order("change_customer", change, order_id, **person)

    def _rivals(self) -> tuple[int, dict[str, Any]] | None:
        """Return an order, and the customer of another one with the same coupon.

        The customer has used up the coupon, unless the limit per user is higher.
        """
        limited = {
            each["code"]
            for each in list(self.world.coupons.values())
            if each["usage_limit_per_user"]
        }
        holders: dict[str, list[Any]] = {}
        for id_, order in list(self.world.orders.items()):
            if order["status"] not in {"cancelled", "failed", "refunded"}:
                person = {
                    "customer_id": order["customer_id"],
                    "email": order["billing_address"]["email"],
                }
                for line in order["coupon_lines"]:
                    if line["code"] in limited and any(person.values()):
                        holders.setdefault(line["code"], []).append((id_, person))
        several = [found for found in holders.values() if len(found) > 1]
        if not several:
            return None
        one, other = self.random.sample(self.random.choice(several), 2)
        return one[0], other[1]

    def _trash_order(self) -> Operation | None:
        order_id = self._order_id()
        return order_id and self._operation(
            "trash_order", "DELETE", f"/orders/{order_id}", order=order_id
        )

    def _restore_order(self) -> Operation | None:
        if not self.world.trashed_orders:
            return None
        order_id = self.random.choice(self.world.trashed_orders[-6:])
        return self._operation(
            "restore_order", "POST", f"/orders/{order_id}/restore", order=order_id
        )

    def _delete_order(self) -> Operation | None:
        oldest = list(self.world.orders)[:10]
        if not oldest:
            return None
        order_id = self.random.choice(oldest)
        path = f"/orders/{order_id}?force=true"
        return self._operation("delete_order", "DELETE", path, order=order_id)

    def _bulk_orders(self) -> Operation | None:
        if len(self.world.orders) >= MAX_ORDERS:
            return None
        orders = [self._order(legacy=False) for _ in range(2)]
        items: list[dict[str, Any]] = [order for order, _ in orders]
        if (order_id := self._order_id()) is not None:
            items.append({"id": order_id, "status": self.random.choice(STATUSES)})
        # If one of several coupons cannot be used again, the item uses none of them.
        items += [
            {"id": id_, "status": "processing"}
            for id_, order in list(self.world.orders.items())
            if order["status"] in {"cancelled", "failed"}
            and len(order["coupon_lines"]) > 1
            and id_ != order_id
            and self.random.random() < 0.5
        ][:3]
        codes = sorted({code for _, args in orders for code in args["codes"]})
        return self._operation(
            "bulk_orders",
            "POST",
            "/orders/bulk",
            {"orders": items},
            is_idempotent=True,
            codes=codes,
        )

    def _refund(self) -> Operation | None:
        """Refund an order, often one that has a refund, so that little is left."""
        order_id = self._order_id()
        again = [id_ for id_, _ in list(self.world.refunds)[-3:] if id_ in self.world.orders]
        if again and self.random.random() < 0.5:
            order_id = self.random.choice(again)
        if order_id is None:
            return None
        random = self.random
        mount = random.choice(LEGACY) if random.random() < 0.2 else ""
        new: dict[str, Any] = {"reason": f"note-{self.world.next_number()}"}
        lines = self.world.orders[order_id]["line_items"]
        if lines and not mount and random.random() < 0.7:
            items = [
                {"id": line["id"], "quantity": random.randint(0, 2), "total": "6.00"}
                for line in random.sample(lines, random.randint(1, len(lines)))
            ]
            new |= {"line_items": items}
        if "line_items" not in new or random.random() < 0.3:
            new["amount"] = random.choice(("3.00", "8.00", "25.00"))
        return self._operation(
            "refund", "POST", f"{mount}/orders/{order_id}/refunds", {"order_refund": new},
            is_idempotent=not mount, order=order_id,
        )  # fmt: skip

    def _delete_refund(self) -> Operation | None:
        if not self.world.refunds:
            return None
        order_id, refund_id = self.random.choice(list(self.world.refunds))
        path = f"/orders/{order_id}/refunds/{refund_id}"
        return self._operation("delete_refund", "DELETE", path, order=order_id)

    # --- coupons ---

    def _update_coupon(self, kind: str, change: dict[str, Any], **args: Any) -> Operation | None:
        coupon_id = self._coupon_id()
        if coupon_id is None:
            return None
        code = self.world.coupons[coupon_id]["code"]
        return self._operation(
            kind, "PUT", f"/coupons/{coupon_id}", {"coupon": change},
            coupon=coupon_id, code=code, change=change, **args,
        )  # fmt: skip

    def _change_limit(self) -> Operation | None:
        change: dict[str, Any] = {"usage_limit": self.random.choice((1, 2, 3, 4, 5, 5, 0, 0))}
        if self.random.random() < 0.4:
            change = {"usage_limit_per_user": self.random.choice((0, 0, 1, 2))}
        return self._update_coupon("change_limit", change)

    def _move_coupon(self) -> Operation | None:
        campaign_id = self.random.choice([0, *self.world.campaigns])
        return self._update_coupon("move_coupon", {"campaign_id": campaign_id})

    def _update_campaign(self, kind: str, change: dict[str, Any]) -> Operation:
        campaign_id = self.random.choice(list(self.world.campaigns))
        return self._operation(
            kind, "PUT", f"/campaigns/{campaign_id}", {"campaign": change}, campaign=campaign_id
        )

    def _change_campaign(self) -> Operation:
        name, values = self.random.choice(
            (
                ("usage_limit", (0, 0, 6, 12, 16)),
                ("usage_limit_per_user", (0, 0, 1, 2)),
                ("budget", ("", "4.00", "6.00", "9.00")),
            )
        )
        return self._update_campaign("change_campaign", {name: self.random.choice(values)})

    def _pause_campaign(self) -> Operation:
        return self._update_campaign("pause_campaign", {"active": self.random.random() < 0.9})

    def _set_usage_count(self) -> Operation | None:
        return self._update_coupon(
            "set_usage_count", {"usage_count": self.random.choice((0, 0, 1, 3))}
        )

    def _rename(self) -> Operation | None:
        coupon_id = self._coupon_id()
        if coupon_id is None:
            return None
        code = self.world.coupons[coupon_id]["code"]
        if not code.endswith("-new") and self._has_few_coupons():
            return self._create_coupon()
        new = code.removesuffix("-new") if code.endswith("-new") else f"{code}-new"
        return self._operation(
            "rename", "PUT", f"/coupons/{coupon_id}", {"coupon": {"code": new}},
            coupon=coupon_id, code=code, change={"code": new},
        )  # fmt: skip

    def _trash_coupon(self) -> Operation | None:
        if self._has_few_coupons():
            return self._create_coupon()
        coupon_id = self._coupon_id()
        return coupon_id and self._operation(
            "trash_coupon", "DELETE", f"/coupons/{coupon_id}", coupon=coupon_id
        )

    def _restore_coupon(self) -> Operation | None:
        if not self.world.trashed_coupons:
            return None
        coupon_id = self.random.choice(self.world.trashed_coupons[-4:])
        return self._operation(
            "restore_coupon", "POST", f"/coupons/{coupon_id}/restore", coupon=coupon_id
        )

    def _delete_coupon(self) -> Operation | None:
        if self._has_few_coupons():
            return self._create_coupon()
        coupon_id = self._coupon_id()
        path = f"/coupons/{coupon_id}?force=true"
        return coupon_id and self._operation("delete_coupon", "DELETE", path, coupon=coupon_id)

    def new_coupon(self, code: str) -> dict[str, Any]:
        """Return the fields of a coupon with small limits."""
        per_user = 1 if self.world.is_about_accounts else self.random.choice((0, 0, 1, 2))
        return {
            "code": code,
            "type": "fixed_cart",
            "amount": "1.00",
            "usage_limit": 5 if per_user else self.random.randint(1, 5),
            "usage_limit_per_user": per_user,
            "metadata": {"code": code},
            "campaign_id": self.random.choice([0, *self.world.campaigns]),
        }

    def _create_coupon(self) -> Operation:
        taken = self._live_codes()
        free = [code for code in CODES if code not in taken]
        code = self.random.choice(free or list(CODES))
        return self._operation(
            "create_coupon", "POST", "/coupons", {"coupon": self.new_coupon(code)},
            is_idempotent=True, code=code,
        )  # fmt: skip

    def _conditional_update(self) -> Operation | None:
        operation = self._change_limit()
        if operation:
            operation.kind = "conditional_update"
            operation.args["needs_etag"] = True
        return operation

    def _generate(self) -> Operation:
        coupon = {"type": "percent", "amount": "10", "usage_limit": 1}
        wanted = {"count": 3, "prefix": "G-", "pattern": "####-####", "coupon": coupon}
        return self._operation(
            "generate", "POST", "/coupons/generate", {"generate": wanted}, is_idempotent=True
        )

    def _trash_batch(self) -> Operation | None:
        if not self.world.batches:
            return None
        batch = self.random.choice(self.world.batches)
        return self._operation("trash_batch", "DELETE", f"/coupons/batches/{batch}", batch=batch)

    # --- customers ---

    def _change_email(self) -> Operation | None:
        if not self.world.customers:
            return None
        customer_id = self.random.choice(list(self.world.customers))
        email = self.random.choice(
            [f"c{customer_id}@example.com", f"C{customer_id}-b@example.com", *self._guests()]
        )
        return self._operation(
            "change_email", "PUT", f"/customers/{customer_id}", {"customer": {"email": email}},
            customer=customer_id,
        )  # fmt: skip

    def _guests(self) -> tuple[str, ...]:
        """Return addresses of guests that an account can have."""
        return (
            self.random.choice((GUESTS[:2], GUESTS[1:3]))
            if self.world.is_about_accounts
            else (GUESTS[2],)
        )

    def _create_customer(self) -> Operation | None:
        """Create an account, sometimes of a guest."""
        if len(self.world.customers) >= CUSTOMERS:
            return self._delete_customer()
        email = f"a{self._prefix}-{self.world.next_number()}@example.com"
        if self.random.random() < (0.7 if self.world.is_about_accounts else 0.3):
            email = self._guests()[0] if self.world.is_about_accounts else GUESTS[0]
        return self._operation(
            "create_customer", "POST", "/customers", {"customer": {"email": email, "first_name": "A"}},
            is_idempotent=True,
        )  # fmt: skip

    def _delete_customer(self) -> Operation | None:
        if len(self.world.customers) < CUSTOMERS:
            return self._create_customer()
        customer_id = self.random.choice(list(self.world.customers))
        return self._operation(
            "delete_customer", "DELETE", f"/customers/{customer_id}", customer=customer_id
        )

    def _merge(self) -> Operation | None:
        """Merge two accounts, often the one that most orders have."""
        customers, hot = list(self.world.customers), self.world.hot_customer
        if len(customers) < LEAST_CUSTOMERS:
            return self._create_customer()
        kept, removed = self.random.sample(customers, 2)
        if hot in customers and self.random.random() < 0.7:
            other = self.random.choice([each for each in customers if each != hot])
            kept, removed = (hot, other) if self.random.random() < 0.4 else (other, hot)
        return self._operation(
            "merge", "POST", f"/customers/{kept}/merge", {"merge": {"customer_id": removed}},
            is_idempotent=True, customer=kept, removed=removed,
        )  # fmt: skip

    def _claim(self) -> Operation | None:
        """Claim the orders of guests with the address of an account, all or some of them."""
        customers = dict(self.world.customers)
        if not customers:
            return None
        claimable: dict[int, list[int]] = {id_: [] for id_ in customers}
        owners = {email.lower(): id_ for id_, email in customers.items()}
        for order_id, order in list(self.world.orders.items()):
            email = order["billing_address"]["email"].lower()
            if not order["customer_id"] and email in owners:
                claimable[owners[email]].append(order_id)
        several = [id_ for id_, theirs in claimable.items() if theirs]
        chosen = several if several and self.random.random() < 0.9 else list(customers)
        customer_id = self.random.choice(chosen)
        theirs = claimable[customer_id]
        wanted = {"order_ids": theirs[:2]} if theirs and self.random.random() < 0.4 else {}
        return self._operation(
            "claim", "POST", f"/customers/{customer_id}/claim", {"claim": wanted},
            is_idempotent=True, customer=customer_id,
        )  # fmt: skip

    def _erase(self) -> Operation | None:
        """Erase a person: an account, or the owner of an address."""
        customers = dict(self.world.customers)
        if len(customers) < LEAST_CUSTOMERS:
            return self._create_customer()
        customer_id = self.random.choice(list(customers))
        email = self.random.choice((*GUESTS[:3], customers[customer_id]))
        by_id = {"customer_id": customer_id}
        person = by_id if self.random.random() < 0.4 else {"email": email}
        return self._operation(
            "erase", "POST", "/persons/erase", {"person": person}, is_idempotent=True
        )

    def _read_only(self) -> Operation | None:
        """Send a write of another kind with a key that may only read."""
        kinds = ("reserve", "create_order", "set_status", "change_limit", "trash_order", "refund")
        write: Operation | None = getattr(self, f"_{self.random.choice(kinds)}")()
        if write is None:
            return None
        return self._operation("read_only", write.method, write.path, write.body)

    # --- API keys ---

    def _create_key(self) -> Operation:
        new = {"permission": "read_write", "description": f"key-{self.world.next_number()}"}
        return self._operation("create_key", "POST", "/keys", {"key": new})

    def _api_key(self) -> dict[str, Any] | None:
        found = list(self.world.keys)
        return self.random.choice(found) if found else None

    def _change_key(self, kind: str, method: str, change: Any) -> Operation | None:
        """Change a key that several clients use before and after it."""
        key = self._api_key()
        if key is None:
            return None
        self.world.twins.extend(self._use_of(key) for _ in range(USES_OF_KEY))
        path = f"/keys/{key['id']}"
        return self._operation(kind, method, path, change, changes=key["id"], key_used=key)

    def _restrict_key(self) -> Operation | None:
        return self._change_key("restrict_key", "PUT", {"key": {"permission": "read"}})

    def _revoke_key(self) -> Operation | None:
        return self._change_key("revoke_key", "DELETE", None)

    def _use_key(self) -> Operation | None:
        key = self._api_key()
        return key and self._use_of(key)

    def _use_of(self, key: dict[str, Any]) -> Operation:
        """Return a write without an effect with a key: 404 if the key may write."""
        return self._operation(
            "use_key", "DELETE", f"/coupons/{NO_COUPON}",
            uses=key["id"], credentials=key["credentials"],
        )  # fmt: skip

    # --- reads ---

    def _read_coupon(self) -> Operation | None:
        coupon_id = self._coupon_id()
        if coupon_id is None:
            return None
        code = self.world.coupons[coupon_id]["code"]
        return self._operation(
            "read_coupon", "GET", f"/coupons/{coupon_id}", record=["coupon", coupon_id], code=code
        )

    def _read_code(self) -> Operation:
        code = self._code().lower()
        return self._operation("read_code", "GET", f"/coupons/code/{code}", code=code)

    def _read_redemption(self) -> Operation | None:
        found = self._redemption()
        return found and self._operation(
            "read_redemption", "GET", f"/redemptions/{found['id']}",
            redemption=found["id"], code=found["code"],
        )  # fmt: skip

    def _read_order(self) -> Operation | None:
        order_id = self._order_id()
        return order_id and self._operation(
            "read_order", "GET", f"/orders/{order_id}", record=["order", order_id]
        )

    def _read_customer(self) -> Operation | None:
        if not self.world.customers:
            return None
        customer_id = self.random.choice(list(self.world.customers))
        path = f"/customers/{customer_id}"
        return self._operation("read_customer", "GET", path, record=["customer", customer_id])

    def _read_own(self, kind: str, id_: int) -> Operation:
        """Read what the client writes or has just written, from a replica if there is one.

        Sometimes in a list, or in a count.
        """
        if self.random.random() < 0.3:
            if kind == "coupon":
                return self._list_coupons()
            if kind == "order" and (order := self.world.orders.get(id_)):
                status = order["status"]
                is_count = self.random.random() < 0.3
                return self._count_of_orders() if is_count else self._orders_with(status)
        code = self.world.coupons.get(id_, {}).get("code") if kind == "coupon" else None
        if code and self.random.random() < 0.5:
            return self._operation("read_code", "GET", f"/coupons/code/{code}", code=code)
        return self._operation(f"read_{kind}", "GET", f"/{kind}s/{id_}", record=[kind, id_])

    def _count_orders(self) -> Operation:
        if self.random.random() < 0.5:
            return self._count_of_orders()
        status = self.random.choice(STATUSES)
        path = f"/orders/count?filter[status]={status}"
        return self._operation("count_orders", "GET", path, where={"status": status})

    def _count_of_orders(self) -> Operation:
        return self._operation("count_orders", "GET", "/orders/count", where={})

    def _list_orders(self) -> Operation:
        return self._orders_with(self.random.choice(STATUSES))

    def _orders_with(self, status: str) -> Operation:
        """List the orders with a status, or all, which shows any change that is missing."""
        if self.random.random() < 0.4:
            return self._operation("list_orders", "GET", "/orders", records="order", where={})
        path = f"/orders?filter[status]={status}"
        where = {"status": status}
        if self.random.random() < 0.5 and self.world.customers:
            where["customer_id"] = self.random.choice([0, *self.world.customers])
            path += f"&filter[customer_id]={where['customer_id']}"
        return self._operation("list_orders", "GET", path, records="order", where=where)

    def _list_coupons(self) -> Operation:
        return self._operation("list_coupons", "GET", "/coupons", records="coupon", where={})

    def _list_redemptions(self) -> Operation | None:
        coupon_id, status = self._coupon_id(), self.random.choice(("reserved", "confirmed"))
        path = f"/redemptions?filter[coupon_id]={coupon_id}&filter[status]={status}"
        return coupon_id and self._operation(
            "list_redemptions", "GET", path, coupon=coupon_id, status=status,
            code=self.world.coupons[coupon_id]["code"],
        )  # fmt: skip

    def _count(self) -> Operation | None:
        coupon_id, status = self._coupon_id(), self.random.choice(("reserved", "confirmed"))
        path = f"/redemptions/count?filter[coupon_id]={coupon_id}&filter[status]={status}"
        return coupon_id and self._operation("count", "GET", path, coupon=coupon_id, status=status)

    def _read_feed(self) -> Operation:
        return self._operation("read_feed", "GET", "/events?filter[limit]=10")

    # --- results ---

    def learn(self, operation: Operation, headers: dict[str, str]) -> None:
        """Tell the other clients what a response has shown."""
        if position := headers.get("x-shop-position"):
            self.position = position
            if operation.method != "GET":
                self._floor = operation.invoked
        if not operation.is_done or not isinstance(operation.response, dict):
            return
        world, body = self.world, operation.response
        for kind in ("order", "coupon", "customer"):
            if operation.method != "GET" and isinstance(body.get(kind), dict):
                self._own = kind, body[kind]["id"]
        if redemption := body.get("redemption"):
            self._learn_redemption(redemption)
        for order in [body.get("order"), *body.get("orders", ())]:
            if order and "error" not in order and operation.kind != "list_orders":
                world.orders[order["id"]] = order
        is_trash = operation.kind == "conditional_trash"
        if operation.kind == "trash_order" or (is_trash and "order" in operation.args):
            world.orders.pop(operation.args["order"], None)
            world.trashed_orders.append(operation.args["order"])
        elif operation.kind == "delete_order":
            world.orders.pop(operation.args["order"], None)
        elif operation.kind in {"trash_coupon", "delete_coupon"} or is_trash:
            world.coupons.pop(operation.args["coupon"], None)
            if operation.kind != "delete_coupon":
                world.trashed_coupons.append(operation.args["coupon"])
        elif (coupon := body.get("coupon")) and operation.method != "GET":
            world.coupons[coupon["id"]] = coupon
        elif operation.kind == "delete_customer":
            world.customers.pop(operation.args["customer"], None)
        elif operation.kind == "erase":
            world.customers.pop(body["erasure"]["customer_id"], None)
        elif campaign := body.get("campaign"):
            world.campaigns[campaign["id"]] = campaign
        elif (customer := body.get("customer")) and operation.method != "GET":
            world.customers[customer["id"]] = customer["email"]
            world.customers.pop(operation.args.get("removed"), None)
        elif operation.kind == "generate":
            world.batches.append(body["batch"]["id"])
        elif operation.kind in {"restrict_key", "revoke_key"}:
            uses = [self._use_of(operation.args["key_used"]) for _ in range(USES_OF_KEY)]
            world.twins.extend(uses)
        elif operation.kind == "create_key":
            key = body["key"]
            pair = key["consumer_key"], key["consumer_secret"]
            world.keys.append({"id": key["id"], "credentials": pair})
        elif operation.kind == "refund":
            world.refunds.append((operation.args["order"], body["order_refund"]["id"]))

    def _learn_redemption(self, redemption: dict[str, Any]) -> None:
        expires = redemption["expires_at"]
        at = None if expires is None else datetime.fromisoformat(expires).timestamp()
        shown = {
            name: redemption[name] for name in ("id", "code", "reference", "customer_id", "email")
        }
        shown["expires"] = at
        if redemption["status"] == "released":
            return  # otherwise most releases would find no use
        if at is None or at - time.time() > LIFE:
            self.world.redemptions.append(shown)
        elif all(each["id"] != shown["id"] for each in list(self.world.expiring)):
            self.world.expiring.append(shown)
