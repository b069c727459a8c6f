"""Examples of API keys."""

NEW_API_KEY: dict[str, object] = {
    "username": "erp",
    "role": "shop_manager",
    "description": "ERP",
    "permission": "read",
    "resources": ["orders", "customers"],
    "expires_at": "2030-12-31T00:00:00Z",
}
API_KEY: dict[str, object] = {
    "id": 2,
    "user_id": 2,
    "username": "erp",
    "description": "ERP",
    "permission": "read",
    "resources": ["customers", "orders"],
    "truncated_key": "3f1c9e2",
    "created_at": "2026-11-20T09:38:00Z",
    "expires_at": "2030-12-31T00:00:00Z",
    "last_used_at": None,
}
_SECRET = {
    "consumer_key": "ck_7d0c52e1b8a94f3e6c15d2097b8a41e0f3f1c9e2",
    "consumer_secret": "cs_0b61e8d2f7c34a95be10c7d8295fa3e64d7012ab",
}
CREATED_API_KEY = API_KEY | _SECRET
API_KEY_UPDATE: dict[str, object] = {"permission": "read_write"}
UPDATED_API_KEY = API_KEY | API_KEY_UPDATE
ROTATED_API_KEY = CREATED_API_KEY
