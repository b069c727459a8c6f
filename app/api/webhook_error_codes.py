"""Error codes of the operations on webhooks, which dialects share."""

_INPUT = (
    "shop_api_invalid_webhook_topic",
    "shop_api_insufficient_key_rights",
    "shop_api_invalid_webhook_delivery_url",
)

CREATE = ("shop_api_missing_webhook_data", "shop_api_user_cannot_create_webhook", *_INPUT)
COUNT = ("shop_api_user_cannot_read_webhooks_count",)
GET = ("shop_api_invalid_webhook_id", "shop_api_user_cannot_read_webhook")
EDIT = ("shop_api_invalid_webhook_id", "shop_api_user_cannot_edit_webhook")
UPDATE = ("shop_api_missing_webhook_data", *EDIT, *_INPUT)
DELETE = ("shop_api_invalid_webhook_id", "shop_api_user_cannot_delete_webhook")
GET_DELIVERY = (*GET, "shop_api_invalid_webhook_delivery_id")
RESEND = (*EDIT, "shop_api_webhook_not_active", "shop_api_events_expired")
