"""Row types (``RedemptionRow``) have exactly the columns of their model, with the same types."""

from __future__ import annotations

import importlib
import pkgutil
from typing import get_type_hints, is_typeddict

import pytest
from sqlalchemy.orm import Mapped

from app import models

MODULES = [
    importlib.import_module(f"app.models.{module.name}")
    for module in pkgutil.iter_modules(models.__path__)
]
ROW_TYPES = {
    name.removesuffix("Row"): (module, row_type)
    for module in MODULES
    for name, row_type in vars(module).items()
    if is_typeddict(row_type) and name.endswith("Row") and hasattr(module, name.removesuffix("Row"))
}


@pytest.mark.parametrize("name", sorted(ROW_TYPES))
def test_row_type_has_the_columns_of_its_model(name):
    module, row_type = ROW_TYPES[name]
    model = getattr(module, name)
    columns = {
        column: hint.__args__[0]
        for column, hint in get_type_hints(model).items()
        if getattr(hint, "__origin__", None) is Mapped
        and model.__table__.c[column].computed is None
    }
    assert get_type_hints(row_type) == columns
