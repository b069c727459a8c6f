"""Examples of webhooks and deliveries."""

NEW_WEBHOOK: dict[str, object] = {
    "name": "Accounting",
    "topics": ["order.*"],
    "delivery_url": "https://receiver.example/hooks",
}
WEBHOOK: dict[str, object] = {
    "id": 1,
    "name": "Accounting",
    "topics": ["order.*"],
    "delivery_url": "https://receiver.example/hooks",
    "status": "active",
    "disabled_reason": None,
    "user_id": 1,
    "created_at": "2026-11-20T09:38:00Z",
    "updated_at": "2026-11-20T09:38:00Z",
    "last_delivery_at": None,
    "failing_since": None,
}
WEBHOOK_WITH_SECRET = WEBHOOK | {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}
WEBHOOK_UPDATE: dict[str, object] = {"status": "paused"}
UPDATED_WEBHOOK = WEBHOOK | WEBHOOK_UPDATE
PING: dict[str, object] = {
    "status": None,
    "duration_ms": 12,
    "error": "connection failed",
    "message": None,
}
DELIVERY: dict[str, object] = {
    "id": 1,
    "event_id": 1,
    "state": "pending",
    "attempts": [
        {
            "at": "2026-11-20T09:38:01Z",
            "status": 503,
            "duration_ms": 41,
            "error": "unexpected status",
        }
    ],
    "next_attempt_at": "2026-11-20T09:38:06Z",
    "response_body": "Service Unavailable",
    "created_at": "2026-11-20T09:38:00Z",
}
