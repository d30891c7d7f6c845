"""Small files made by hand for the demo's attachments."""

import struct
import zlib

SIDE = 4


def png(red: int, green: int, blue: int) -> bytes:
    """A valid PNG of 4 x 4 pixels in one colour."""
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    pixels = (b"\0" + bytes((red, green, blue)) * SIDE) * SIDE
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(pixels)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def pdf(text: str) -> bytes:
    """A PDF of one page with one line of text."""
    drawing = f"BT /F1 18 Tf 40 700 Td ({text}) Tj ET".encode("latin-1", "replace")
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(drawing), drawing),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    size = len(objects) + 1
    return data + b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table) + end % (size, len(data))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
