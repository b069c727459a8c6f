"""Examples of campaigns."""

NEW_CAMPAIGN: dict[str, object] = {
    "name": "Spring mailing",
    "ends_at": "2031-01-01T00:00:00Z",
    "usage_limit": 1000,
    "usage_limit_per_user": 1,
    "budget": "5000.00",
    "tags": ["mailing-7"],
    "combines_with": ["-mailing-7"],
}
CAMPAIGN: dict[str, object] = {
    "id": 1,
    "name": "Spring mailing",
    "created_at": "2026-11-20T09:38:00Z",
    "updated_at": "2026-11-20T09:38:00Z",
    "active": True,
    "starts_at": None,
    "ends_at": "2031-01-01T00:00:00Z",
    "usage_limit": 1000,
    "usage_limit_per_user": 1,
    "budget": "5000.00",
    "tags": ["mailing-7"],
    "combines_with": ["-mailing-7"],
    "state": "active",
    "uses": 0,
    "discount": "0.00",
}
CAMPAIGN_UPDATE: dict[str, object] = {"active": False}
UPDATED_CAMPAIGN = CAMPAIGN | {"active": False, "state": "paused"}
CAMPAIGN_IN_EVENT = {
    name: value for name, value in CAMPAIGN.items() if name not in {"state", "uses", "discount"}
}
