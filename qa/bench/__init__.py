"""Measure the performance of the service in ratios that are comparable across machines (Linux).

``make bench`` measures everything and writes docs/performance.md. ``make bench-quick`` omits the
large shops and writes nothing. ``.venv/bin/python -m qa.bench reads`` measures one part.

Set ``BENCH_DATA=folder`` to reuse the databases in later runs, because loading a million customers
takes minutes. By default, the bench starts a PostgreSQL server from a Python package without
pg_trgm. ``BENCH_POSTGRESQL=url`` uses another server on this machine, as a superuser.

- ``yardstick.py``: the views to compare the service with, a bare view and a plain ORM view.
- ``shops.py``: databases with 1,000 to 1,000,000 customers, coupons and orders each.
- ``servers.py``: gunicorn, its resource usage, and the clients that send requests.
- ``workloads.py``: requests that create and update records.
- ``measuring.py``: measuring workloads, and the rows with their targets.
- ``reads.py``, ``writes.py``, ``redemptions.py``, ``campaigns.py``, ``persons.py``,
  ``large_shops.py``, ``process.py``, ``imports.py`` and ``files.py``: the rows.
- ``report.py``: the output format of the rows.

Two workloads that are compared alternate round by round, on one machine and in one run, so that
other load on the machine affects both. The figure of a row is the median over the rounds.
"""
