"""DataWarning: the category of warnings about a table."""

from __future__ import annotations


class DataWarning(UserWarning):
    """A property of the data that limits what a fit can say, such as few rows or equal columns."""
