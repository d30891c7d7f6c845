"""Converts arguments to and from command-line words.

Lists are given by repeating an option or with commas, filters as JSON or as `field>=value`.
Printed arguments are parsed back to the same value by bash and zsh.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from evidence.errors import InvalidRequest
from evidence.operators import OPERATORS
from evidence.text import escape, json_line
from service.ports.types import ExpandLimit, Flag, Names, Number, TypedFilter

OBJECTS = (TypedFilter, ExpandLimit)
BY_SIGN = {sign: operator for operator, sign in OPERATORS.items()}
#: Longer signs first, so that `>=` is not read as `>`.
SIGNS = "|".join(map(re.escape, sorted([*BY_SIGN, "==", "="], key=len, reverse=True)))

#: A value that begins with = or a field that ends with ! is a typing error here; JSON allows both.
_TERM = re.compile(rf"([^=<>]*[^=<>!])({SIGNS})(.*)", re.DOTALL)
_FORMS = {
    TypedFilter: "Also accepts field=value and 'field>=value'; repeat the option for more fields.",
    ExpandLimit: "Also accepts relation=number.",
    Names: "Separate names with commas, or repeat the option.",
}


def option_name(name: str) -> str:
    """`offset_chars` -> `--offset-chars`."""
    return f"--{name.replace('_', '-')}"


def click_type(field: Any) -> dict[str, Any]:
    """The click type of an argument; the operation validates the values."""
    if isinstance(field, Flag):
        return {"is_flag": True}
    if isinstance(field, (Names, *OBJECTS)):
        return {"multiple": True, "metavar": "NAME" if isinstance(field, Names) else "JSON"}
    return {"type": int if isinstance(field, Number) else str}


def described(field: Any, shape: Mapping[str, Any]) -> str:
    """The help text of an argument, with the words or numbers it accepts.

    `shape` is its JSON Schema.
    """
    sentences = [shape["description"]]
    sentences += [form for kind, form in _FORMS.items() if isinstance(field, kind)]
    enum = [str(word) for word in shape.get("enum", ())]
    if not all(f"`{word}`" in shape["description"] for word in enum):
        sentences.append(f"One of: {', '.join(enum)}.")
    if "minimum" in shape:
        least, most = shape["minimum"], shape.get("maximum")
        bounds = f"Minimum: {least:,}" if most is None else f"Range: {least:,} to {most:,}"
        sentences.append(f"{bounds}.")
    return " ".join(sentences)


def value(name: str, field: Any, option: Any) -> Any:
    """The value of an option; None if it was not given.

    Raises `InvalidRequest`.
    """
    if option is None or option is False or option == ():
        return None
    if isinstance(field, Names):
        return [element for text in option for element in _names(name, text)]
    if isinstance(field, OBJECTS):
        merged: dict[str, Any] = {}
        for text in option:
            _merge(name, merged, _object(name, field, text))
        return merged
    return option


def _names(name: str, text: str) -> list[Any]:
    """Parses `a,b`, or JSON if a name contains a comma."""
    if text.startswith("["):
        parsed = _json(name, text)
        return parsed if isinstance(parsed, list) else [parsed]
    return text.split(",")


def _object(name: str, field: Any, text: str) -> dict[str, Any]:
    if text.startswith("{"):
        parsed = _json(name, text)
        return parsed if isinstance(parsed, dict) else {}
    term = _TERM.fullmatch(text)
    if term is None or (isinstance(field, ExpandLimit) and term[2] != "="):
        raise InvalidRequest(
            f"{option_name(name)} is invalid: {escape(text)[0]!r}.",
            code=field.error_code,
            param=name,
            hint=f"{field.metadata['description']} {_FORMS[type(field)]}",
        )
    key, sign, operand = term[1].strip(), term[2], term[3].strip()
    if isinstance(field, ExpandLimit):
        return {key: int(operand) if operand.isascii() and operand.isdigit() else operand}
    return {key: {BY_SIGN[sign]: operand} if sign in BY_SIGN else operand}


def _merge(name: str, merged: dict[str, Any], terms: dict[str, Any]) -> None:
    """Adds a term; two ranges of the same field are merged."""
    for key, term in terms.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(term, dict) and not before.keys() & term.keys():
            merged[key] = {**before, **term}
        elif key not in merged:
            merged[key] = term
        else:
            raise InvalidRequest(
                f"{option_name(name)} has {escape(key)[0]!r} twice. Use it once.", param=name
            )


def _json(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(
            f"{option_name(name)} is not valid JSON: {error}. Put the JSON in single quotes.",
            param=name,
        ) from error


def option_words(name: str, argument: Any) -> list[str]:
    """The words that set an option to this value."""
    option = option_name(name)
    if argument is True:
        return [option]
    texts = [json_line(argument) if isinstance(argument, dict) else str(argument)]
    if isinstance(argument, (list, tuple)):
        plain = not any("," in element or element.startswith("[") for element in argument)
        texts = list(argument) if plain else [json_line(list(argument))]
    # Joined if the value looks like an option itself.
    pairs = ([f"{option}={text}"] if text.startswith("-") else [option, text] for text in texts)
    return [word for pair in pairs for word in pair]


def line(words: Sequence[str]) -> str:
    """Words as one line for a shell, with misleading characters escaped."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A shell-quoted word; invisible and control characters are written as bytes."""
    if word.isprintable() or not any(map(_is_hidden, word)):
        quoted = shlex.quote(word)
        return f"'{word}'" if quoted.startswith("=") else quoted  # zsh would look up a command
    return "$'" + "".join(map(_byte, word)) + "'"


def _is_hidden(char: str) -> bool:
    return char in "\n\t" or bool(escape(char)[1])


def _byte(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    if _is_hidden(char):
        return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    return char
