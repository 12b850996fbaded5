"""What the native class `Relation` has beside its own methods: methods written in Python, by what they do."""

from grouse._relation.aggregates import Aggregates
from grouse._relation.awaited import Awaited
from grouse._relation.compose import Compose, Grouped
from grouse._relation.pictures import Pictures
from grouse._relation.results import Results
from grouse._relation.windows import Windows
from grouse._relation.writing import Writing

PARTS = (Compose, Aggregates, Windows, Results, Writing, Pictures, Awaited)

__all__ = ["PARTS", "Grouped"]
