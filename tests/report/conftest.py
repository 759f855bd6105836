"""A browser for the tests of pages; a page that complains, or loads anything, fails its test."""

import pytest

from browser import Browser


@pytest.fixture(scope="session")
def browser():
    with Browser() as one:
        yield one


@pytest.fixture
def page(browser):
    one = browser.page()
    yield one
    one.settle()
    one.close()
    assert one.errors == []
    assert one.requests == []
