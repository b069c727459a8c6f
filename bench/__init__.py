"""How fast the service is, in ratios that mean the same on every machine (Linux).

``make bench`` measures everything and writes docs/performance.md; ``make bench-quick`` leaves out
the large shops and writes nothing; ``.venv/bin/python -m bench reads`` measures one part. With
``BENCH_DATA=folder`` the shops stay for the next time: a million customers take minutes to load.
The PostgreSQL server is one that comes with a package and has no pg_trgm; ``BENCH_POSTGRESQL=url``
takes another one on this machine, as a superuser.

- ``yardstick.py``: what the service is compared with, a bare view and a plain ORM view.
- ``shops.py``: databases with 1,000 to 1,000,000 customers, coupons and orders each.
- ``servers.py``: gunicorn, what it spends, and the clients that keep it busy.
- ``table.py``: the rows: what is compared with what, and what is to be reached.
- ``report.py``: how a row is printed.

Two works that are compared take turns, round by round, on one machine in one run, so that whatever
else the machine does meets both. The figure of a row is the median over the rounds.
"""
