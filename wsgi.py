"""The WSGI entry point: ``gunicorn wsgi:app``, ``flask --app wsgi``."""

import sys

from app import create_app
from app.cli.failures import explain
from app.config import SettingsError
from app.plugins import PluginError

try:
    app = create_app()
except (SettingsError, PluginError, OSError) as error:
    # A setting, a plugin or a folder, not a bug: the message says what to do. Exit status 3 tells
    # gunicorn to stop instead of starting the next worker.
    reason = explain(error) if isinstance(error, OSError) else error
    sys.stderr.write(f"The service cannot start: {reason}\n")
    raise SystemExit(3) from None
