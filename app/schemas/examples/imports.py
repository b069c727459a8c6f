"""Examples of imports."""

IMPORT: dict[str, object] = {
    "id": 7,
    "source": "file",
    "kind": "coupons",
    "status": "waiting",
    "name": "codes.csv",
    "format": "csv",
    "on_conflict": "fail",
    "dry_run": False,
    "size": 1200,
    "position": 0,
    "created": 0,
    "updated": 0,
    "skipped": 0,
    "failed": 0,
    "reason": None,
    "user_id": 1,
    "created_at": "2026-11-20T09:38:00Z",
    "started_at": None,
    "finished_at": None,
}
CANCELLED = IMPORT | {
    "status": "cancelled",
    "position": 500,
    "created": 499,
    "failed": 1,
    "started_at": "2026-11-20T09:38:01Z",
    "finished_at": "2026-11-20T09:38:02Z",
}
IMPORT_ERROR: dict[str, object] = {
    "line": 17,
    "code": "shop_api_coupon_code_already_exists",
    "message": "Another published coupon already has this code.",
    "param": None,
}
