"""Reading of a dump of a MySQL or MariaDB database."""
