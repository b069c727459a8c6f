"""Every error code of the API with its HTTP status and message (spec 7, decisions 1).

The comments name the source of the codes. Placeholders in messages are keyword arguments of
``ShopError``. docs/errors.md lists the codes for clients.
"""

ERRORS: dict[str, tuple[int, str]] = {
    # spec 7.1
    "shop_api_invalid_coupon_id": (404, "No published coupon has this ID."),
    "shop_api_invalid_coupon_code": (404, "No published coupon has this code."),
    "shop_api_missing_coupon_data": (400, "The request body has no 'coupon' object."),
    "shop_api_missing_coupon_code": (400, "The coupon code is required."),
    "shop_api_coupon_code_already_exists": (400, "Another published coupon already has this code."),
    "shop_api_invalid_coupon_type": (
        400,
        "Invalid coupon type - the coupon type must be any of these: {types}",
    ),
    "shop_api_cannot_create_coupon": (400, "The coupon cannot be created: {reason}"),
    "shop_api_cannot_update_coupon": (400, "The coupon cannot be updated: {reason}"),
    "shop_api_user_cannot_create_coupon": (401, "You do not have permission to create coupons."),
    "shop_api_user_cannot_read_coupons_count": (
        401,
        "You do not have permission to count coupons.",
    ),
    "shop_api_missing_coupons_data": (400, "The request body has no 'coupons' array."),
    "shop_api_coupons_request_entity_too_large": (
        413,
        "A request can contain at most {limit} coupons.",
    ),
    # migration 3: generated coupons
    "shop_api_missing_generate_data": (400, "The request body has no 'generate' object."),
    "shop_api_pattern_too_small": (
        400,
        "The pattern has {size} possible codes, but needs {minimum} for so many coupons. {remedy}",
    ),
    "shop_api_invalid_coupon_batch_id": (404, "No batch of coupons has this ID."),
    # people 3 to 5
    "shop_api_invalid_person": (404, "Nothing is stored of a person with this e-mail address."),
    # people 6
    "shop_api_missing_merge_data": (400, "The request body has no 'merge' object."),
    "shop_api_missing_claim_data": (400, "The request body has no 'claim' object."),
    "shop_api_cannot_merge_customers": (409, "The account cannot be merged into another one."),
    "shop_api_missing_person_data": (400, "The request body has no 'person' object."),
    "shop_api_user_cannot_read_person": (
        401,
        "You do not have permission to read the data of this person.",
    ),
    "shop_api_user_cannot_erase_person": (
        401,
        "You do not have permission to erase the data of this person.",
    ),
    "shop_api_cannot_erase_person": (409, "The data of this person cannot be erased."),
    # campaigns 2
    "shop_api_missing_campaign_data": (400, "The request body has no 'campaign' object."),
    "shop_api_missing_campaign_name": (400, "The name of the campaign is required."),
    "shop_api_invalid_campaign_id": (404, "No campaign has this ID."),
    "shop_api_cannot_delete_campaign": (
        400,
        "The campaign has coupons or uses. End or pause it instead.",
    ),
    "shop_api_user_cannot_create_campaign": (
        401,
        "You do not have permission to create campaigns.",
    ),
    "shop_api_user_cannot_read_campaign": (
        401,
        "You do not have permission to read this campaign.",
    ),
    "shop_api_user_cannot_read_campaigns_count": (
        401,
        "You do not have permission to count campaigns.",
    ),
    "shop_api_user_cannot_edit_campaign": (
        401,
        "You do not have permission to update this campaign.",
    ),
    "shop_api_user_cannot_delete_campaign": (
        401,
        "You do not have permission to delete this campaign.",
    ),
    # redemptions 1, 4 and 6
    "shop_api_missing_cart_data": (400, "The request body has no 'cart' object."),
    "shop_api_cart_request_entity_too_large": (413, "A cart can contain at most {limit} {what}."),
    "shop_api_user_cannot_read_coupons": (401, "You do not have permission to read coupons."),
    "shop_api_coupon_not_applicable": (400, "The coupon '{coupon}' cannot be applied: {reason}"),
    "shop_api_missing_redemption_data": (400, "The request body has no 'redemption' object."),
    "shop_api_invalid_redemption_id": (404, "No redemption has this ID."),
    "shop_api_invalid_redemption_status": (409, "The redemption cannot be changed: {reason}"),
    "shop_api_user_cannot_create_redemption": (
        401,
        "You do not have permission to create redemptions.",
    ),
    "shop_api_user_cannot_read_redemption": (
        401,
        "You do not have permission to read this redemption.",
    ),
    "shop_api_user_cannot_edit_redemption": (
        401,
        "You do not have permission to update this redemption.",
    ),
    "shop_api_user_cannot_read_redemptions_count": (
        401,
        "You do not have permission to count redemptions.",
    ),
    # decisions 1: capabilities checked for each coupon
    "shop_api_user_cannot_read_coupon": (401, "You do not have permission to read this coupon."),
    "shop_api_user_cannot_edit_coupon": (401, "You do not have permission to update this coupon."),
    "shop_api_user_cannot_delete_coupon": (
        401,
        "You do not have permission to delete this coupon.",
    ),
    # spec 7.2
    "shop_api_invalid_customer_id": (
        404,
        "The customer ID must be a positive integer that identifies an account.",
    ),
    "shop_api_invalid_customer": (404, "No user has this ID."),
    "shop_api_invalid_customer_email": (404, "No account has this e-mail address."),
    "shop_api_user_cannot_read_customer": (
        401,
        "You do not have permission to read this customer.",
    ),
    "shop_api_user_cannot_edit_customer": (
        401,
        "You do not have permission to update this customer.",
    ),
    "shop_api_user_cannot_delete_customer": (
        401,
        "You do not have permission to delete this customer.",
    ),
    "shop_api_user_cannot_read_customers_count": (
        401,
        "You do not have permission to count customers.",
    ),
    "shop_api_user_cannot_create_customer": (
        401,
        "You do not have permission to create customers.",
    ),
    "shop_api_missing_customer_data": (400, "The request body has no 'customer' object."),
    "shop_api_missing_customer_email": (400, "The customer e-mail address is required."),
    "shop_api_missing_customers_data": (400, "The request body has no 'customers' array."),
    "shop_api_customers_request_entity_too_large": (
        413,
        "A request can contain at most {limit} customers.",
    ),
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
    "shop_api_missing_order_data": (400, "The request body has no 'order' object."),
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
    "shop_api_orders_request_entity_too_large": (
        413,
        "A request can contain at most {limit} orders.",
    ),
    "shop_api_cannot_create_order": (400, "The order cannot be created: {reason}"),
    "shop_api_cannot_update_order": (400, "The order cannot be updated: {reason}"),
    "shop_api_user_cannot_create_order": (401, "You do not have permission to create orders."),
    "shop_api_user_cannot_edit_order": (401, "You do not have permission to update this order."),
    "shop_api_user_cannot_delete_order": (401, "You do not have permission to delete this order."),
    "shop_api_user_cannot_read_order": (401, "You do not have permission to read this order."),
    "shop_api_user_cannot_read_orders_count": (401, "You do not have permission to count orders."),
    # orders 7 and 9: order notes
    "shop_api_missing_order_note_data": (400, "The request body has no 'order_note' object."),
    "shop_api_invalid_order_note": (400, "The text of the note is required."),
    "shop_api_invalid_order_note_id": (404, "The order has no note with this ID."),
    "shop_api_user_cannot_read_order_notes": (
        401,
        "You do not have permission to read order notes.",
    ),
    "shop_api_user_cannot_create_order_note": (
        401,
        "You do not have permission to create order notes.",
    ),
    "shop_api_user_cannot_edit_order_note": (
        401,
        "You do not have permission to update this order note.",
    ),
    "shop_api_user_cannot_delete_order_note": (
        401,
        "You do not have permission to delete this order note.",
    ),
    # records 2: refunds
    "shop_api_missing_order_refund_data": (400, "The request body has no 'order_refund' object."),
    "shop_api_invalid_order_refund": (400, "{param}: {reason}"),
    "shop_api_invalid_order_refund_id": (404, "The order has no refund with this ID."),
    "shop_api_user_cannot_read_order_refunds": (
        401,
        "You do not have permission to read refunds.",
    ),
    "shop_api_user_cannot_read_order_refunds_count": (
        401,
        "You do not have permission to count refunds.",
    ),
    "shop_api_user_cannot_create_order_refund": (
        401,
        "You do not have permission to create refunds.",
    ),
    "shop_api_user_cannot_edit_order_refund": (
        401,
        "You do not have permission to update this refund.",
    ),
    "shop_api_user_cannot_delete_order_refund": (
        401,
        "You do not have permission to delete this refund.",
    ),
    # events 1
    "shop_api_user_cannot_read_events": (401, "You do not have permission to read events."),
    "shop_api_user_cannot_read_event": (401, "You do not have permission to read this event."),
    "shop_api_invalid_event_id": (404, "No event has this ID."),
    "shop_api_cannot_undo_event": (409, "The event cannot be undone."),
    "shop_api_events_expired": (
        410,
        "Events up to ID {removed_id} have been removed because of their age.",
    ),
    # events 2
    "shop_api_missing_webhook_data": (400, "The request body has no 'webhook' object."),
    "shop_api_invalid_webhook_topic": (400, "{reason}"),
    "shop_api_invalid_webhook_delivery_url": (
        400,
        "The delivery URL must be an http or https URL without user information.",
    ),
    "shop_api_invalid_webhook_id": (404, "No webhook has this ID."),
    "shop_api_invalid_webhook_delivery_id": (404, "The webhook has no delivery with this ID."),
    "shop_api_webhook_not_active": (409, "The webhook is {status}. Activate it first."),
    "shop_api_user_cannot_create_webhook": (401, "You do not have permission to create webhooks."),
    "shop_api_user_cannot_read_webhook": (401, "You do not have permission to read this webhook."),
    "shop_api_user_cannot_edit_webhook": (
        401,
        "You do not have permission to update this webhook.",
    ),
    "shop_api_user_cannot_delete_webhook": (
        401,
        "You do not have permission to delete this webhook.",
    ),
    "shop_api_user_cannot_read_webhooks_count": (
        401,
        "You do not have permission to count webhooks.",
    ),
    # people 7
    "shop_api_invalid_import": (400, "{reason}"),
    "shop_api_invalid_import_id": (404, "No import has this ID."),
    "shop_api_invalid_import_status": (409, "{reason}"),
    "shop_api_user_cannot_import": (
        401,
        "You do not have permission for imports of these records.",
    ),
    # reports
    "shop_api_user_cannot_view_reports": (401, "You do not have permission to view reports."),
    # API keys (decisions 2)
    "shop_api_missing_key_data": (400, "The request body has no 'key' object."),
    "shop_api_invalid_key_id": (404, "No API key has this ID."),
    # admin 1 and 5
    "shop_api_key_cannot_sign_in": (401, "A key without read permission cannot sign in."),
    "shop_api_sign_in_link_used": (
        410,
        "This link was already used, has expired or was withdrawn.",
    ),
    "shop_api_invalid_session_id": (404, "No session has this ID."),
    "shop_api_user_cannot_create_key": (401, "You do not have permission to create this API key."),
    "shop_api_user_cannot_read_key": (401, "You do not have permission to read this API key."),
    "shop_api_user_cannot_edit_key": (401, "You do not have permission to change this API key."),
    "shop_api_user_cannot_delete_key": (401, "You do not have permission to revoke API keys."),
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
