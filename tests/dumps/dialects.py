"""The dump formats of several programs."""

import gzip
import re
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tests.dumps.schemas import create_table

_BACKSLASH = str.maketrans(
    {"\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"}
)
_DOUBLED = str.maketrans({"\\": "\\\\", "'": "''", "\0": "\\0"})  # newlines stay as they are

DIALECTS = ("mysqldump", "mariadb-dump", "phpmyadmin", "wp-cli")
ROWS = {"mysqldump": 500, "mariadb-dump": 500, "phpmyadmin": 100, "wp-cli": 1}
"""Number of rows of one statement."""

HEADS = {
    "mysqldump": "-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)\n--\n"
    "-- Host: localhost    Database: shop's\n-- ----\n"
    "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n"
    "/*!50503 SET NAMES utf8mb4 */;\n",
    "mariadb-dump": "/*!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19\n"
    "/*!40101 SET NAMES utf8mb4 */;\n/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY */;\n",
    "phpmyadmin": "-- phpMyAdmin SQL Dump\n-- version 5.2.1\n# it's a comment\n"
    'SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";\nSTART TRANSACTION;\n'
    "/*!40101 SET NAMES utf8mb4 */;\n",
    "wp-cli": "-- MySQL dump 10.13\n/*!40101 SET NAMES utf8mb4 */;\n"
    "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `other`;\nUSE `other`;\n"
    "CREATE TABLE `wp_users` (\n  `ID` bigint(20),\n  `note` text\n);\n"
    "INSERT INTO `wp_users` VALUES (1,'not a shop; INSERT INTO `wp_users` VALUES (9,\\'x\\')');\n"
    "CREATE DATABASE `shop`;\nUSE `shop`;\n",
}


@contextmanager
def opened(path):
    """Open a file to write, compressed if its name ends in .gz."""
    compressed = str(path).endswith(".gz")
    with gzip.open(path, "wb", 1) if compressed else Path(path).open("wb") as file:
        yield file


def write_dump(path, shop, dialect="mysqldump", *, prefix="wp_", charset="utf8mb4"):
    """Write a shop as a dump. Its rows are generated while they are written.

    Args:
        shop: has ``tables``, the columns of each table, and ``rows(name)``.
        charset: the character set of the tables. latin1 tables contain UTF-8, which a dump in
            utf8mb4 encodes again.
    """
    with opened(path) as file:
        encode = _encoder(charset)
        file.write(HEADS[dialect].encode())
        for name, columns in sorted(shop.tables.items()):
            table = prefix + name
            file.write(f"\nDROP TABLE IF EXISTS `{table}`;\n".encode())
            if dialect == "phpmyadmin":  # without the keys, which follow in ALTER TABLE
                created = create_table(table, columns, charset=charset)
                created = re.sub(r",\n  PRIMARY KEY \([^)]*\)", "", created)
                created = created.replace(" AUTO_INCREMENT", "")
            else:
                created = create_table(table, columns, charset=charset)
            file.write(created.encode() + b";\n")
            _write_rows(file, table, columns, iter(shop.rows(name)), dialect, encode)
        file.write(b"\nDELIMITER ;;\nCREATE TRIGGER t AFTER INSERT ON x FOR EACH ROW BEGIN\n"
                   b"INSERT INTO `wp_users` VALUES (1,'it''s');\nEND ;;\nDELIMITER ;\n"
                   b"-- Dump completed")  # fmt: skip


def _write_rows(file, table, columns, rows, dialect, encode):
    names = ", ".join(f"`{column}`" for column in columns)
    head, between, within = {
        "mysqldump": (f"INSERT INTO `{table}` VALUES ", ",", ","),
        "mariadb-dump": (f"INSERT INTO `{table}` VALUES\n", ",\n", ","),
        "phpmyadmin": (f"INSERT INTO `{table}` ({names}) VALUES\n", ",\n", ", "),
        "wp-cli": (f"INSERT IGNORE INTO `{table}` ({names.replace(' ', '')}) VALUES ", ",", ","),
    }[dialect]
    if dialect in {"mysqldump", "mariadb-dump"}:
        file.write(f"LOCK TABLES `{table}` WRITE;\n"
                   f"/*!40000 ALTER TABLE `{table}` DISABLE KEYS */;\n".encode())  # fmt: skip
    while chunk := list(islice(rows, ROWS[dialect])):
        literals = (
            "(" + within.join(_literal(value, dialect, encode) for value in row) + ")"
            for row in chunk
        )
        file.write((head + between.join(literals) + ";\n").encode(errors="surrogateescape"))
    if dialect in {"mysqldump", "mariadb-dump"}:
        file.write(b"UNLOCK TABLES;\n")
    if dialect == "phpmyadmin":
        first = next(iter(columns))
        file.write(f"ALTER TABLE `{table}`\n  ADD PRIMARY KEY (`{first}`);\n".encode())


def _literal(value, dialect, encode):
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        if dialect in {"phpmyadmin", "wp-cli"}:
            return f"0x{value.hex()}" if value else "''"
        text = value.decode(errors="surrogateescape")
        return f"_binary '{text.translate(_BACKSLASH)}'"
    escapes = _DOUBLED if dialect == "phpmyadmin" else _BACKSLASH
    return f"'{encode(value).translate(escapes)}'"


def _encoder(charset):
    if charset != "latin1":
        return lambda text: text
    # latin1 of MySQL has a character for every byte.
    characters = [_latin1(byte) for byte in range(256)]
    return lambda text: "".join(characters[byte] for byte in text.encode())


def _latin1(byte):
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)
