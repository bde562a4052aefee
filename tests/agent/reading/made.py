"""Files for the tests, made here: a PDF, a Word file, and what goes wrong in them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"


def pdf(*pages: str, packed: bytes | None = None, times: int = 1) -> bytes:
    """A PDF whose pages hold these lines of text, named so many times; or one page with a stream
    packed already."""
    streams = [_drawn(page) for page in pages] if packed is None else [packed]
    filter_ = b"" if packed is None else b" /Filter /FlateDecode"
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(streams)) for _ in range(times))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, stream in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {5 + 2 * n} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(
            b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(stream), filter_, stream)
        )
    return _with_table(objects)


def _drawn(page: str) -> bytes:
    lines = page.encode("latin-1").split(b"\n")
    return b"BT /F1 12 Tf 50 700 Td 14 TL " + b" ".join(b"(%s) Tj T*" % x for x in lines) + b" ET"


def _with_table(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        start,
    )
    return bytes(out)


def pdf_bomb(*, bytes_unpacked: int) -> bytes:
    return pdf(packed=zlib.compress(b" " * bytes_unpacked, 9))


def locked_pdf(text: str, *, password: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(BytesIO(pdf(text))))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def paragraph(*texts: str, style: str = "", listed: bool = False) -> str:
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    properties += "<w:numPr><w:ilvl/></w:numPr>" if listed else ""
    runs = "".join(f"<w:r><w:t>{text}</w:t></w:r>" for text in texts)
    return f"<w:p><w:pPr>{properties}</w:pPr>{runs}</w:p>"


def document(body: str, *, before: str = "") -> str:
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return (
        f'{head}{before}<w:document xmlns:w="{W}" xmlns:mc="{MC}"><w:body>{body}</w:body>'
        "</w:document>"
    )


def docx(body: str, *, before: str = "", **more: str) -> bytes:
    return archive({"word/document.xml": document(body, before=before), **more})


def archive(files: dict[str, str] | dict[str, bytes]) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return out.getvalue()


def unpacks_to(body: str, *, bytes_unpacked: int) -> bytes:
    """A small Word file with a huge, well-formed text of blanks where `|` stands in its body."""
    out = BytesIO()
    head, tail = document(body).encode().split(b"|")
    packed = ZipFile(out, "w", ZIP_DEFLATED, compresslevel=1)
    with packed as made, made.open("word/document.xml", "w") as part:
        part.write(head)
        for _ in range(bytes_unpacked // 1_000_000):
            part.write(b" " * 1_000_000)
        part.write(tail)
    return out.getvalue()
