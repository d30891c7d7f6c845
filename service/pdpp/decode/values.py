"""Values in the `data` of a PDPP record -> plain JSON values, previews, base64 texts and blobs."""

from typing import Any

from evidence.text import looks_binary
from evidence.values import BASE64, Base64, BlobRef, Preview, base64_of, is_reference
from service.pdpp.decode import number_of, text_of

#: Members of a reference to a blob that are not facts of the blob.
_DROPPED = ("data_base64", "fetch_url", "available")


def decode(value: Any, *, whole: bool = False) -> Any:
    """The typed value. `whole` leaves base64 text as it is; otherwise it is described."""
    if isinstance(value, str):
        return value if whole or not looks_binary(value) else base64_of(value)
    if isinstance(value, list):
        if not any(map(is_reference, value)):
            return value
        return [decode(one) if isinstance(one, list) or is_reference(one) else one for one in value]
    if is_reference(value):
        return reference(value)
    kind = value.get("object") if isinstance(value, dict) else None
    if kind == "binary_field":
        return described(value)
    size = number_of(value, "size_chars")
    if kind == "field_preview" and size is not None:
        text, type = text_of(value, "preview_text") or "", text_of(value, "type")
        return Preview(text, size, type, number_of(value, "size_bytes"))
    return value


def reference(value: dict[str, Any]) -> BlobRef:
    """The reference to a blob, without its bytes or an address."""
    members = {name: one for name, one in value.items() if name not in _DROPPED}
    return BlobRef(members, value.get("available") is not False)


def described(value: dict[str, Any]) -> Base64:
    """The metadata of base64 text."""
    return Base64(
        text_of(value, "mime_type", "media_type"),
        number_of(value, "size_bytes"),
        number_of(value, "size_chars"),
        text_of(value, "sha256"),
        text_of(value, "encoding") or BASE64,
    )
