"""The gunicorn worker of the service (see ``gunicorn.conf.py``).

gunicorn's main process imports this package at the start and again at each reload. Import ``app``
only in functions that run in a worker, so that a reload of ``gunicorn wsgi:app`` runs new code.
"""
