"""An OpenAPI document that checks whether answers match it."""

import re
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.helpers.api import Answer

DOCUMENT = "urn:openapi"
METHODS = ("get", "post")


class Described:
    """A parsed document. `check` fails on an answer the document does not allow."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        resource = Resource.from_contents(document, default_specification=DRAFT202012)
        self._registry: Any = Registry().with_resource(DOCUMENT, resource)
        # Fixed parts of a path come before parameters.
        self.paths = sorted(document["paths"], key=lambda path: (path.count("{"), path))

    def operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Yields (method, path, operation) for everything described."""
        return [
            (method, path, item[method])
            for path, item in self.document["paths"].items()
            for method in METHODS
            if method in item
        ]

    def path_of(self, target: str) -> str:
        """The described path that an address matches."""
        asked = target.partition("?")[0]
        for path in self.paths:
            if re.fullmatch(re.sub(r"\{[a-z_]+\}", "[^/]+", path), asked):
                return path
        raise AssertionError(f"{target} is not described")

    def resolve(self, found: dict[str, Any]) -> dict[str, Any]:
        """The target of a reference; any other value unchanged."""
        if "$ref" not in found:
            return found
        value: Any = self.document
        for name in found["$ref"].removeprefix("#/").split("/"):
            value = value[name]
        return dict(value)

    def check(self, method: str, target: str, answer: Answer) -> None:
        """Checks the status, the media type, the required headers and the body of an answer."""
        responses = self.document["paths"][self.path_of(target)][method]["responses"]
        assert str(answer.status) in responses, f"{target}: {answer.status} is not described"
        response = self.resolve(responses[str(answer.status)])
        for name, header in response.get("headers", {}).items():
            assert name in answer.headers or not self.resolve(header).get("required"), name
        media_type = answer.headers["Content-Type"].partition(";")[0]
        kinds = response["content"]
        assert media_type in kinds or "*/*" in kinds, f"{target}: {media_type}"
        if media_type == "application/json":
            self.validate(kinds[media_type]["schema"], answer.body)

    def validate(self, schema: dict[str, Any], value: Any) -> None:
        """Fails if a value does not match a schema of the document."""
        absolute = _absolute(schema)
        Draft202012Validator(absolute, registry=self._registry).validate(value)


def _absolute(value: Any) -> Any:
    """A part of the document with references that resolve in the whole document."""
    if isinstance(value, dict):
        return {
            name: f"{DOCUMENT}{inner}" if name == "$ref" else _absolute(inner)
            for name, inner in value.items()
        }
    return [_absolute(inner) for inner in value] if isinstance(value, list) else value
