"""The WSGI entry point: ``gunicorn wsgi:app``, ``flask --app wsgi``."""

import sys

from app import create_app
from app.cli.failures import explain
from app.config import SettingsError
from app.plugins import PluginError

try:
    app = create_app()
except (SettingsError, PluginError, OSError) as error:
    # These errors are not bugs, and their messages describe the remedy. Exit status 3 stops
    # gunicorn. Otherwise it would start the next worker.
    reason = explain(error) if isinstance(error, OSError) else error
    sys.stderr.write(f"The service cannot start: {reason}\n")
    raise SystemExit(3) from None
