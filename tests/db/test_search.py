"""The search text of a record contains each of its texts once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversions.text import comparable
from app.db.search import search_text

BETWEEN = "\uffff"


@pytest.mark.parametrize(
    ("texts", "searched"),
    [
        (["Ada@Example.com", "ada", "Ada Hopper"], f"ada@example.com{BETWEEN}ada hopper"),
        (["ada@example.com", "hopper", ""], f"ada@example.com{BETWEEN}hopper"),
        (["A", "a"], "a"),
        (["", ""], ""),
    ],
)
def test_text_that_is_part_of_another_one_is_left_out(texts, searched):
    assert search_text(*texts) == searched


few_letters = st.text("aAbßς ", max_size=6)


@given(st.lists(few_letters, min_size=1, max_size=4), few_letters)
def test_search_text_finds_exactly_the_parts_of_its_texts(texts, part):
    part = comparable(part)
    found = any(part in comparable(text) for text in texts)
    assert (part in search_text(*texts)) == found
