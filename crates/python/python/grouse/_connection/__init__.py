"""What the native class `Connection` has beside its own methods: methods written in Python, by what they do."""

from grouse._connection.cursor import Cursor
from grouse._connection.functions import Functions
from grouse._connection.reading import Reading
from grouse._connection.statements import Statements

PARTS = (Reading, Statements, Functions)

__all__ = ["PARTS", "Cursor"]
