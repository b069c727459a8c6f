"""The WSGI application for ``gunicorn wsgi:app`` and ``flask --app wsgi``."""

from app.main import load_app

app = load_app()
