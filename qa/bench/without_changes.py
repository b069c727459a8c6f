"""The service without ``changes`` of events, to measure what they cost (people 8)."""

from __future__ import annotations

from unittest.mock import patch

from wsgi import app

__all__ = ["app"]

patch("app.services.events.hooks.changes_of", lambda _change, _undo_of: None).start()
