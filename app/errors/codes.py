"""Every error code of the API with its HTTP status and message (spec 7, decisions 1).

The comments name the source of the codes. Placeholders in messages are keyword arguments of
``ShopError``. docs/errors.md lists the codes for clients.
"""

Entry = tuple[int, str]


def _cannot(act: str) -> Entry:
    return 401, f"You do not have permission to {act}."


def _no_object(key: str) -> Entry:
    return 400, f"The request body has no '{key}' object."


def _too_many(records: str) -> Entry:
    return 413, f"A request can contain at most {{limit}} {records}."


ERRORS: dict[str, Entry] = {
    # spec 7.1
    "shop_api_invalid_coupon_id": (404, "No published coupon has this ID."),
    "shop_api_invalid_coupon_code": (404, "No published coupon has this code."),
    "shop_api_missing_coupon_data": _no_object("coupon"),
    "shop_api_missing_coupon_code": (400, "The coupon code is required."),
    "shop_api_coupon_code_already_exists": (400, "Another published coupon already has this code."),
    "shop_api_invalid_coupon_type": (
        400,
        "Invalid coupon type - the coupon type must be any of these: {types}",
    ),
    "shop_api_cannot_create_coupon": (400, "The coupon cannot be created: {reason}"),
    "shop_api_cannot_update_coupon": (400, "The coupon cannot be updated: {reason}"),
    "shop_api_user_cannot_create_coupon": _cannot("create coupons"),
    "shop_api_user_cannot_read_coupons_count": _cannot("count coupons"),
    "shop_api_missing_coupons_data": (400, "The request body has no 'coupons' array."),
    "shop_api_coupons_request_entity_too_large": _too_many("coupons"),
    # migration 3: generated coupons
    "shop_api_missing_generate_data": _no_object("generate"),
    "shop_api_pattern_too_small": (
        400,
        "The pattern has {size} possible codes, but needs {minimum} for so many coupons. {remedy}",
    ),
    "shop_api_invalid_coupon_batch_id": (404, "No batch of coupons has this ID."),
    # people 3 to 5
    "shop_api_invalid_person": (404, "Nothing is stored of a person with this e-mail address."),
    # people 6
    "shop_api_missing_merge_data": _no_object("merge"),
    "shop_api_missing_claim_data": _no_object("claim"),
    "shop_api_cannot_merge_customers": (409, "The account cannot be merged into another one."),
    "shop_api_missing_person_data": _no_object("person"),
    "shop_api_user_cannot_read_person": _cannot("read the data of this person"),
    "shop_api_user_cannot_erase_person": _cannot("erase the data of this person"),
    "shop_api_cannot_erase_person": (409, "The data of this person cannot be erased."),
    # campaigns 2
    "shop_api_missing_campaign_data": _no_object("campaign"),
    "shop_api_missing_campaign_name": (400, "The name of the campaign is required."),
    "shop_api_invalid_campaign_id": (404, "No campaign has this ID."),
    "shop_api_cannot_delete_campaign": (
        400,
        "The campaign has coupons or uses. End or pause it instead.",
    ),
    "shop_api_user_cannot_create_campaign": _cannot("create campaigns"),
    "shop_api_user_cannot_read_campaign": _cannot("read this campaign"),
    "shop_api_user_cannot_read_campaigns_count": _cannot("count campaigns"),
    "shop_api_user_cannot_edit_campaign": _cannot("update this campaign"),
    "shop_api_user_cannot_delete_campaign": _cannot("delete this campaign"),
    # redemptions 1, 4 and 6
    "shop_api_missing_cart_data": _no_object("cart"),
    "shop_api_cart_request_entity_too_large": (413, "A cart can contain at most {limit} {what}."),
    "shop_api_user_cannot_read_coupons": _cannot("read coupons"),
    "shop_api_coupon_not_applicable": (400, "The coupon '{coupon}' cannot be applied: {reason}"),
    "shop_api_missing_redemption_data": _no_object("redemption"),
    "shop_api_invalid_redemption_id": (404, "No redemption has this ID."),
    "shop_api_invalid_redemption_status": (409, "The redemption cannot be changed: {reason}"),
    "shop_api_user_cannot_create_redemption": _cannot("create redemptions"),
    "shop_api_user_cannot_read_redemption": _cannot("read this redemption"),
    "shop_api_user_cannot_edit_redemption": _cannot("update this redemption"),
    "shop_api_user_cannot_read_redemptions_count": _cannot("count redemptions"),
    # decisions 1: capabilities checked for each coupon
    "shop_api_user_cannot_read_coupon": _cannot("read this coupon"),
    "shop_api_user_cannot_edit_coupon": _cannot("update this coupon"),
    "shop_api_user_cannot_delete_coupon": _cannot("delete this coupon"),
    # spec 7.2
    "shop_api_invalid_customer_id": (
        404,
        "The customer ID must be a positive integer that identifies an account.",
    ),
    "shop_api_invalid_customer": (404, "No user has this ID."),
    "shop_api_invalid_customer_email": (404, "No account has this e-mail address."),
    "shop_api_user_cannot_read_customer": _cannot("read this customer"),
    "shop_api_user_cannot_edit_customer": _cannot("update this customer"),
    "shop_api_user_cannot_delete_customer": _cannot("delete this customer"),
    "shop_api_user_cannot_read_customers_count": _cannot("count customers"),
    "shop_api_user_cannot_create_customer": _cannot("create customers"),
    "shop_api_missing_customer_data": _no_object("customer"),
    "shop_api_missing_customer_email": (400, "The customer e-mail address is required."),
    "shop_api_missing_customers_data": (400, "The request body has no 'customers' array."),
    "shop_api_customers_request_entity_too_large": _too_many("customers"),
    # decisions 5: account creation, without a prefix
    "registration-error-invalid-email": (400, "The e-mail address is not valid."),
    "registration-error-email-exists": (400, "Another account already has this e-mail address."),
    "registration-error-invalid-username": (
        400,
        "The username is not valid. Use 1 to 60 letters, digits, _ . - @ and single inner spaces.",
    ),
    "registration-error-username-exists": (400, "Another account already has this username."),
    "shop_api_cannot_delete_customer": (400, "You cannot delete your own account."),
    # decisions 1 and 7, orders 5
    "shop_api_invalid_order_id": (404, "No order has this ID."),
    "shop_api_missing_order_data": _no_object("order"),
    "shop_api_missing_orders_data": (400, "The request body has no 'orders' array."),
    "shop_api_invalid_order_status": (
        400,
        "Invalid order status - the order status must be any of these: {statuses}",
    ),
    "shop_api_invalid_order_currency": (400, "The currency must be three letters."),
    "shop_api_invalid_currency": (
        400,
        "{currency} has more than two decimal places, and amounts have two.",
    ),
    "shop_api_invalid_order_item": (400, "{param}: {reason}"),
    "shop_api_order_too_large": (413, "A list of an order can contain at most {limit} items."),
    "shop_api_orders_request_entity_too_large": _too_many("orders"),
    "shop_api_cannot_create_order": (400, "The order cannot be created: {reason}"),
    "shop_api_cannot_update_order": (400, "The order cannot be updated: {reason}"),
    "shop_api_user_cannot_create_order": _cannot("create orders"),
    "shop_api_user_cannot_edit_order": _cannot("update this order"),
    "shop_api_user_cannot_delete_order": _cannot("delete this order"),
    "shop_api_user_cannot_read_order": _cannot("read this order"),
    "shop_api_user_cannot_read_orders_count": _cannot("count orders"),
    # orders 7 and 9: order notes
    "shop_api_missing_order_note_data": _no_object("order_note"),
    "shop_api_invalid_order_note": (400, "The text of the note is required."),
    "shop_api_invalid_order_note_id": (404, "The order has no note with this ID."),
    "shop_api_user_cannot_read_order_notes": _cannot("read order notes"),
    "shop_api_user_cannot_create_order_note": _cannot("create order notes"),
    "shop_api_user_cannot_edit_order_note": _cannot("update this order note"),
    "shop_api_user_cannot_delete_order_note": _cannot("delete this order note"),
    # records 2: refunds
    "shop_api_missing_order_refund_data": _no_object("order_refund"),
    "shop_api_invalid_order_refund": (400, "{param}: {reason}"),
    "shop_api_invalid_order_refund_id": (404, "The order has no refund with this ID."),
    "shop_api_user_cannot_read_order_refunds": _cannot("read refunds"),
    "shop_api_user_cannot_read_order_refunds_count": _cannot("count refunds"),
    "shop_api_user_cannot_create_order_refund": _cannot("create refunds"),
    "shop_api_user_cannot_edit_order_refund": _cannot("update this refund"),
    "shop_api_user_cannot_delete_order_refund": _cannot("delete this refund"),
    # events 1
    "shop_api_user_cannot_read_events": _cannot("read events"),
    "shop_api_user_cannot_read_event": _cannot("read this event"),
    "shop_api_invalid_event_id": (404, "No event has this ID."),
    "shop_api_cannot_undo_event": (409, "The event cannot be undone."),
    "shop_api_events_expired": (
        410,
        "Events up to ID {removed_id} have been removed because of their age.",
    ),
    # events 2
    "shop_api_missing_webhook_data": _no_object("webhook"),
    "shop_api_invalid_webhook_topic": (400, "{reason}"),
    "shop_api_invalid_webhook_delivery_url": (
        400,
        "The delivery URL must be an http or https URL without user information.",
    ),
    "shop_api_invalid_webhook_id": (404, "No webhook has this ID."),
    "shop_api_invalid_webhook_delivery_id": (404, "The webhook has no delivery with this ID."),
    "shop_api_webhook_not_active": (409, "The webhook is {status}. Activate it first."),
    "shop_api_user_cannot_create_webhook": _cannot("create webhooks"),
    "shop_api_user_cannot_read_webhook": _cannot("read this webhook"),
    "shop_api_user_cannot_edit_webhook": _cannot("update this webhook"),
    "shop_api_user_cannot_delete_webhook": _cannot("delete this webhook"),
    "shop_api_user_cannot_read_webhooks_count": _cannot("count webhooks"),
    # people 7
    "shop_api_invalid_import": (400, "{reason}"),
    "shop_api_invalid_import_id": (404, "No import has this ID."),
    "shop_api_invalid_import_status": (409, "{reason}"),
    "shop_api_user_cannot_import": (
        401,
        "You do not have permission for imports of these records.",
    ),
    # reports
    "shop_api_user_cannot_view_reports": _cannot("view reports"),
    # API keys (decisions 2)
    "shop_api_missing_key_data": _no_object("key"),
    "shop_api_invalid_key_id": (404, "No API key has this ID."),
    # admin 1 and 5
    "shop_api_key_cannot_sign_in": (401, "A key without read permission cannot sign in."),
    "shop_api_sign_in_link_used": (
        410,
        "This link was already used, has expired or was withdrawn.",
    ),
    "shop_api_invalid_session_id": (404, "No session has this ID."),
    "shop_api_user_cannot_create_key": _cannot("create this API key"),
    "shop_api_user_cannot_read_key": _cannot("read this API key"),
    "shop_api_user_cannot_edit_key": _cannot("change this API key"),
    "shop_api_user_cannot_delete_key": _cannot("revoke API keys"),
    "shop_api_insufficient_key_rights": (
        401,
        "{param}: an API key cannot grant a right that it does not have itself.",
    ),
    # records 1: metadata of coupons, customers, orders and their items
    "shop_api_invalid_metadata": (400, "{param}: {reason}"),
    # decisions 1: any request
    "shop_api_authentication_error": (401, "{reason}"),
    "shop_api_no_route": (404, "No route matches this path."),
    "shop_api_method_not_allowed": (
        405,
        "Method {method} is not allowed. Allowed methods: {allowed}.",
    ),
    "shop_api_cross_site_request": (
        403,
        "Requests from pages of other sites are not allowed unless SHOP_CORS_ORIGINS lists them.",
    ),
    "shop_api_invalid_json": (400, "The request body is not valid JSON: {reason}"),
    "shop_api_invalid_param": (400, "{param}: {reason}"),
    "shop_api_request_entity_too_large": (413, "The request body is larger than {limit} bytes."),
    "shop_api_unsupported_media_type": (
        415,
        "The request body has the Content-Encoding '{coding}'. Send it without compression.",
    ),
    # RFC 9110
    "shop_api_precondition_failed": (
        412,
        "The resource has changed since you read it (ETag mismatch).",
    ),
    # draft-ietf-httpapi-idempotency-key-header
    "shop_api_idempotency_key_reused": (
        422,
        "This Idempotency-Key was already used with another request body. Use a new key.",
    ),
    "shop_api_response_too_large": (
        413,
        "The response exceeds {limit} bytes, the limit with an Idempotency-Key. Send fewer items.",
    ),
    "shop_api_too_many_requests": (429, "Too many failed attempts. Try again later."),
    "shop_api_internal_error": (500, "An internal error occurred."),
    "shop_api_unavailable": (503, "{reason} Try again shortly."),
    "shop_api_outcome_unknown": (
        504,
        "The change may be stored. Repeat with the same Idempotency-Key, or read the record first.",
    ),
}
