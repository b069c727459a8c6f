"""SQL that differs between SQLite and PostgreSQL, as a template for each."""

import re
from typing import TypeVar

from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

T = TypeVar("T")

_PLACE = re.compile(r"\{(\d+|all)\}")


class Templated(FunctionElement[T]):
    """A function of SQL with a template for each database.

    A subclass has no type if it is a condition, because SQLAlchemy would add ``= 1`` on SQLite.

    Attributes:
        sqlite: the SQL with ``{0}`` for the first argument and so on, or ``{all}`` for all of them.
        postgresql: the same for PostgreSQL.
    """

    inherit_cache = True
    sqlite: str
    postgresql: str

    def __init_subclass__(cls) -> None:
        """Let SQLAlchemy cache statements, which it asks of each class on its own."""
        cls.inherit_cache = True
        super().__init_subclass__()


@compiles(Templated)
def _render(element: Templated[object], compiler: SQLCompiler, **kwargs: object) -> str:
    clauses = [*element.clauses]

    def rendered(place: re.Match[str]) -> str:
        clause = element.clauses if place[1] == "all" else clauses[int(place[1])]
        return str(compiler.process(clause, **kwargs))

    return _PLACE.sub(rendered, getattr(element, compiler.dialect.name))
