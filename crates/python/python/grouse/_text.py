"""SQL text made of what callers give: names, values, expressions.

In: Python strings and values. Out: text that is a part of a statement.
Invariant: a name is quoted, a value is a literal, and an expression stays one: brackets and quotes close, a comment ends, and no
clause or statement follows.
Not here: what expressions mean, which the engine decides.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping

from grouse.errors import InvalidError, SyntaxError, TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

_TOKEN = r"""
    (?P<blank>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<quoted>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<word>\w+)
    | (?P<other>.)
    """
_CLOSES = {"(": ")", "[": "]", "{": "}"}
# Words that begin a clause or another query, if no bracket is around them.
_CLAUSES = {"FROM", "WHERE", "HAVING", "UNION", "EXCEPT", "INTERSECT", "INTO", "QUALIFY", "LIMIT", "OFFSET", "FETCH", "WINDOW"}
# Words that do so before BY.
_BEFORE_BY = {"ORDER", "GROUP"}


class Written:
    """SQL that is known to be one expression: grouse.Expression."""

    __slots__ = ()

    def fragment(self) -> str:
        """As an operand."""
        raise NotImplementedError

    def as_select(self) -> str:
        """In a list of columns."""
        return self.fragment()

    def as_order(self) -> str:
        """In ORDER BY."""
        return self.fragment()


def _tokens(text: str) -> Iterator[re.Match[str]]:
    import re

    return re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL)


def quoted(name: str) -> str:
    """A name as it stands in SQL, whatever its letters."""
    if not isinstance(name, str):
        raise TypeError(f"a name has to be a str, not {type(name).__name__}")
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A value as it stands in SQL."""
    import datetime
    import decimal
    import uuid

    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, decimal.Decimal):
        digits = value.as_tuple()
        scale = max(-digits.exponent, 0) if isinstance(digits.exponent, int) else 0
        return f"CAST('{value:f}' AS DECIMAL({max(len(digits.digits), scale + 1)}, {scale}))"
    if isinstance(value, (str, os.PathLike, uuid.UUID)):
        text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
        return "'" + text.replace("'", "''") + "'"
    if isinstance(value, datetime.datetime):
        return f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{value.isoformat(' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, datetime.time):
        return f"TIME '{value.isoformat()}'"
    if isinstance(value, datetime.timedelta):
        return f"INTERVAL '{value // datetime.timedelta(microseconds=1)} microseconds'"
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(str(name))}: {literal(part)}" for name, part in value.items()) + "}"
    raise TypeError(f"a {type(value).__name__} has no literal in SQL")


def parts(text: str | Written, asker: str, form: str = "fragment") -> list[str]:
    """The expressions of a list, `a, f(b, c)` being two. Raises grouse.SyntaxError where the text is not one list.

    form: what is asked of an expression that is an object, by the name of its method.
    """
    if isinstance(text, Written):
        return [getattr(text, form)()]
    if not isinstance(text, str):
        raise TypeError(f"{asker} takes SQL as a str, or an Expression, not {type(text).__name__}")
    found, start, open_brackets, words = [], 0, [], [""]
    for token in _tokens(text):
        letter = token["other"]
        if letter and letter in _CLOSES:
            open_brackets.append(_CLOSES[letter])
        elif letter and letter in ")]}":
            if not open_brackets or open_brackets.pop() != letter:
                raise _broken(asker, text, f"'{letter}' closes nothing")
        elif letter in ("'", '"') or letter == "/" and text.startswith("/*", token.start()):
            raise _broken(asker, text, f"what begins with {text[token.start():token.start() + 2]!r} does not end")
        elif letter == ";":
            raise _broken(asker, text, "';' ends a statement")
        elif letter == "," and not open_brackets:
            found.append(text[start : token.start()].strip())
            start = token.end()
        elif token["word"] and not open_brackets:
            _check_word(words[-1], token["word"].upper(), asker, text)
        elif token["blank"] and "/*" in token["blank"][2:]:
            raise _broken(asker, text, "a comment is in a comment")
        if not token["blank"]:
            words.append((token["word"] or letter or "").upper())
    if open_brackets:
        raise _broken(asker, text, f"'{open_brackets[-1]}' is missing")
    found.append(text[start:].strip())
    if not all(_has_content(part) for part in found):
        raise _broken(asker, text, "an expression is empty")
    return found


def _check_word(before: str, word: str, asker: str, text: str) -> None:
    is_clause = word in _CLAUSES or word == "SELECT" or word == "BY" and before in _BEFORE_BY
    # `a IS DISTINCT FROM b`, `t.from`, `* EXCEPT (a)`
    is_part = word == "FROM" and before == "DISTINCT" or word == "EXCEPT" and before == "*" or before == "."
    if is_clause and not is_part:
        raise _broken(asker, text, f"{word} belongs to a whole query; use sql() or query()")


def _has_content(text: str) -> bool:
    return any(not token["blank"] for token in _tokens(text))


def _broken(asker: str, text: str, why: str) -> SyntaxError:
    return SyntaxError(f"{asker} takes expressions of SQL, and {text!r} is none: {why}")


def alias_apart(text: str) -> tuple[str, str | None]:
    """One expression without the alias that it ends with, `AS name`, and that alias."""
    told = [token for token in _tokens(text) if not token["blank"]]
    if len(told) < 3 or (told[-2]["word"] or "").upper() != "AS":
        return text, None
    name, quote = told[-1]["word"], told[-1]["quoted"] or ""
    if quote.startswith('"'):
        name = quote[1:-1].replace('""', '"')
    return (text[: told[-2].start()], name) if name else (text, None)


def expressions(text: str | Written | Iterable[str | Written], asker: str, form: str = "fragment") -> str:
    """A list of expressions, or several of them, as text that any text may follow."""
    lists = [text] if isinstance(text, (str, Written)) else list(text)
    return ", ".join(f"{part}\n" for one in lists for part in parts(one, asker, form))


def expression(text: str | Written, asker: str) -> str:
    """One expression, as text that any text may follow."""
    if len(parts(text, asker)) > 1:
        raise _broken(asker, text, "there are several")
    return f"{text}\n"


def is_given(text: Any) -> bool:
    """Whether there is an expression, or a list of some: neither None nor empty."""
    return isinstance(text, Written) or bool(text)


def names(text: str | Written | Iterable[str | Written]) -> list[str]:
    """One name or several."""
    return [text] if isinstance(text, (str, Written)) else list(text)


def word(text: str, asker: str, known: Iterable[str]) -> str:
    """One of some words, in lower case. Raises grouse.InvalidError for others."""
    found = str(text).lower()
    if found not in known:
        raise InvalidError(f"{asker}: there is no '{text}'; there are {', '.join(known)}")
    return found


def natural(value: Any, asker: str) -> int:
    """A count of rows. Raises grouse.InvalidError for negative ones."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{asker} takes a number of rows, not {type(value).__name__}")
    if int(value) < 0:
        raise InvalidError(f"{asker} takes a number of rows, not {value}")
    return int(value)
