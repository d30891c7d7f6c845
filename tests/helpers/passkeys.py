"""A software device with passkeys. It answers like a browser, or wrongly on request."""

import base64
import hashlib
import html
import json
import re
import secrets
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES256

PRESENT, VERIFIED, ATTESTED = 1, 4, 64


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def asked(page: str, what: str) -> dict[str, Any]:
    """The options that a page passes to a device: `create` or `get`."""
    found = re.search(f'data-{what}="([^"]*)"', page)
    assert found, page
    options: dict[str, Any] = json.loads(html.unescape(found[1]))
    return options


@dataclass
class Device:
    """A device with one passkey for pages of `origin`. It counts its signatures."""

    origin: str
    id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    count: int = 0

    def create(self, options: dict[str, Any], **wrong: Any) -> str:
        """The answer to `navigator.credentials.create`, as JSON."""
        public = cbor.encode(ES256.from_cryptography_key(self.key.public_key()))
        credential = bytes(16) + struct.pack(">H", len(self.id)) + self.id + public
        host, flags = options["rp"]["id"], PRESENT | VERIFIED | ATTESTED
        data = self._data(wrong.get("host", host), wrong.get("flags", flags)) + credential
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer(
            clientDataJSON=self._client("webauthn.create", options, wrong),
            attestationObject=attestation,
        )

    def get(self, options: dict[str, Any], **wrong: Any) -> str:
        """The answer to `navigator.credentials.get`, as JSON."""
        self.count += 1
        host, flags = options["rpId"], PRESENT | VERIFIED
        data = self._data(wrong.get("host", host), wrong.get("flags", flags))
        client = self._client("webauthn.get", options, wrong)
        signed = data + hashlib.sha256(client).digest()
        signature = self.key.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature)

    def _data(self, host: str, flags: int) -> bytes:
        return hashlib.sha256(host.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client(self, kind: str, options: dict[str, Any], wrong: dict[str, Any]) -> bytes:
        claims = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        sent = {key: wrong.get(key, value) for key, value in claims.items()}
        return json.dumps({**sent, "crossOrigin": False}).encode()

    def _answer(self, **response: bytes) -> str:
        parts = {key: encoded(value) for key, value in response.items()}
        own = {"id": encoded(self.id), "rawId": encoded(self.id), "type": "public-key"}
        return json.dumps({**own, "response": parts, "clientExtensionResults": {}})
