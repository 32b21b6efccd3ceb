"""How files are damaged for the readers: bytes, words, trees, archives, chunks."""

from __future__ import annotations

import copy
import importlib
import io
import json
import random
import re
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

MOST = 200_000  # [bytes] of a mutated text


def there(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


# what hostile hands put in: lengths without measure, signs that mean something to a parser, escapes, absurd numbers
MORSELS = [
    b"\x00", b"\xff" * 8, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"[" * 300, b"{" * 300, b"a." * 200 + b"a = 1\n", b"1e308",
    b"-1e308", b"nan", b"inf", b"1e-320", b"9" * 400, b"\x1b[2J", b"\xe2\x80\xae", b"../../", b"&a;", b"<!DOCTYPE a>", b"*a",
    b"!!python/object/apply:os.system [id]", b"\n", b"\r", b",", b'"', b"'", b"=", b"<", b">", b"/>", b"\xed\xa0\x80", b"99999999999",
]  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The bytes with up to six faults: flips, cuts, repeats, morsels; half of them at the beginning, where headers are."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        if not out:
            break
        at = rng.randrange(min(len(out), 600)) if rng.random() < 0.5 else rng.randrange(len(out))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.randrange(256)
        elif kind == 2:
            del out[at : at + rng.choice((1, 4, 64, len(out)))]
        elif kind == 3:
            out[at:at] = out[at : at + rng.choice((8, 200))] * rng.choice((1, 3, 50))
        elif kind == 4:
            out[at:at] = rng.choice(MORSELS)
        else:
            morsel = rng.choice(MORSELS)
            out[at : at + len(morsel)] = morsel
    return bytes(out)


WORDS = re.compile(rb"-?\d[\d.eE+-]*|\"[^\"\n]*\"|[A-Za-z_][\w.:-]*")
# what stands in the place of a word where the grammar must stay whole: a parser lets it through to what is behind it
VALUES = [
    b"0", b"-1", b"1e308", b"-1e308", b"1e-320", b"nan", b"inf", b"9" * 400, b"99999999999", b"0.5", b"", b'""', b"true", b"[]",
    b"{}", b"null", b"1 2 3", b"a" * 5000, b"\xc2\x9b2J", b"\xe2\x80\xae", b"../../etc/passwd", b"%s%n{0}", b"1,5", b"1_0", b"0x10",
]  # fmt: skip


def reworded(data: bytes, rng: random.Random) -> bytes:
    """Text with up to six words exchanged for hostile or for each other, or lines left out, doubled or moved."""
    for _ in range(rng.randint(1, 6)):
        found = list(WORDS.finditer(data))
        rows = data.splitlines(keepends=True)
        if not found or not rows:
            break
        kind, at = rng.randrange(8), rng.randrange(len(rows))
        if kind == 0:
            del rows[at]
        elif kind == 1:
            rows[at:at] = [rows[at]] * rng.choice((1, 300))
        elif kind == 2:
            rows.insert(rng.randrange(len(rows)), rows.pop(at))
        else:
            word, new = rng.choice(found), rng.choice(VALUES) if kind < 7 else rng.choice(found).group()
            if word.group().startswith(b'"') and not new.startswith(b'"'):
                new = b'"' + new + b'"'
            rows = [data[: word.start()], new, data[word.end() :]]
        data = b"".join(rows)[:MOST]
    return data


def regrown(data: bytes, rng: random.Random) -> bytes:
    """An XML document that stays one: attributes and texts exchanged, elements left out, doubled or moved."""
    root = ElementTree.fromstring(data)
    for _ in range(rng.randint(1, 6)):
        every = list(root.iter())
        one, other = rng.choice(every), rng.choice(every)
        kind = rng.randrange(5)
        value = rng.choice([*(v.decode() for v in VALUES), *other.attrib.values()])
        if kind == 0 and len(one):
            one.remove(rng.choice(list(one)))
        elif kind == 1 and len(one):
            one.extend([copy.deepcopy(rng.choice(list(one)))] * rng.choice((1, 100)))
        elif kind == 2 and other is not root and one not in other.iter():
            one.append(other)
        elif kind == 3:
            one.text = value
        elif one.attrib:
            name = rng.choice(list(one.attrib))
            words = one.attrib[name].split()
            if len(words) > 1 and rng.random() < 0.7:  # one number of several
                words[rng.randrange(len(words))] = value
                value = " ".join(words)
            one.set(name, value)
        if len(every) > 5000:
            break
    return ElementTree.tostring(root)


JSON = [
    None, True, 0, -1, 3, 99, 0.5, 1e308, -1e308, 10**200, 10**400, float("nan"), float("inf"), "", "a" * 3000, "\x1b[2J", [], {},
    [1, 2, 3], [None], [[1], [2]], [{}], {"a": 1},
]  # fmt: skip


def reshaped(data: bytes, rng: random.Random) -> bytes:
    """A JSON document that stays one: values exchanged for hostile or for each other, left out, or repeated."""
    root: list[Any] = [json.loads(data)]
    for _ in range(rng.randint(1, 4)):
        places: list[tuple[Any, Any]] = [(root, 0)]
        for inside, key in places:  # grows as it goes
            value = inside[key]
            entries = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
            places += [(value, entry) for entry in entries]
        (inside, key), kind = rng.choice(places[1:] or places), rng.randrange(5)
        if kind == 0 and inside is not root:
            del inside[key]
        elif kind == 1:
            other, entry = rng.choice(places)
            inside[key] = copy.deepcopy(other[entry])
        elif kind == 2 and isinstance(inside, list):
            inside.extend([copy.deepcopy(inside[key])] * rng.choice((1, 100)))
        else:
            inside[key] = copy.deepcopy(rng.choice(JSON))
    return json.dumps(root[0]).encode()[:MOST]


def rezipped(data: bytes, rng: random.Random) -> bytes:
    """An archive one of whose files is another, with the checksum that belongs to it."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", rng.choice((0, 8))) as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            inside = old.read(name)
            if name == chosen:
                shape = {".npy": _array, ".xml": regrown}.get(Path(name).suffix, reworded)
                inside = shape(inside, rng)
            new.writestr(name if rng.random() < 0.9 else rng.choice(("q", "time", "a/b", "\x1b[2J")) + ".npy", inside)
    return out.getvalue()


def _array(data: bytes, rng: random.Random) -> bytes:
    """Another array in the place of an npy file's, or a header that promises what does not follow."""
    array, out = np.load(io.BytesIO(data)), io.BytesIO()
    shapes = [array[:0], array[:1], array.T, array[None], array[..., None], array.ravel(), array[::-1], np.float64(3.0)]
    values = [array * 1e308, array * np.nan, array * 0, array.astype(rng.choice(("f2", "i1", "u8", "?", "c16", ">f8", "U3", "S2")))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.save(out, rng.choice((*shapes, *values)))
    text = out.getvalue()
    return reworded(text[:128], rng) + text[128:] if rng.random() < 0.3 else text


def rechunked(data: bytes, rng: random.Random) -> bytes:
    """An MCAP file with a few mutated records, in and outside of its chunks; lengths are right, checksums left out."""
    from tangere.logs import mcap_records as m

    zstandard: Any = importlib.import_module("zstandard") if there("zstandard") else None
    found = list(m.records(memoryview(data)[: -len(m.MAGIC)], len(m.MAGIC)))
    hit = {rng.randrange(len(found)) for _ in range(rng.randint(1, 2))}
    out = m.MAGIC
    for number, (opcode, content) in enumerate(found):
        inside = bytes(content)
        if opcode == m.CHUNK:
            head = m.CHUNK_HEAD.unpack_from(inside)
            squeezed = inside[m.CHUNK_HEAD.size + 4 :].startswith(b"zstd")
            body = inside[m.CHUNK_HEAD.size + 12 + 4 * squeezed :]
            body = zstandard.ZstdDecompressor().decompress(body, head[2]) if squeezed else body
            parts = [(kind, bytes(part)) for kind, part in m.records(memoryview(body), 0)]
            for at in {rng.randrange(len(parts)) for _ in range(rng.randint(0, 3))}:
                parts[at] = parts[at][0], mutated(parts[at][1], rng)
            body = b"".join(m.record(*part) for part in parts)
            inside = m.CHUNK_HEAD.pack(*head[:2], len(body), 0) + m.string("") + struct.pack("<Q", len(body)) + body
        elif number in hit:
            inside = _told(inside, rng)
        out += m.record(opcode, inside)
    return out + m.MAGIC


def _told(content: bytes, rng: random.Random) -> bytes:
    """A record one of whose texts is another, its length before it right: names, types, the columns as JSON."""
    texts = [
        (at, size) for at in range(len(content) - 4)
        if 0 < (size := int.from_bytes(content[at : at + 4], "little")) <= len(content) - at - 4
        and content[at + 4 : at + 4 + size].isascii() and b"\0" not in content[at + 4 : at + 4 + size]
    ]  # fmt: skip
    if not texts:
        return mutated(content, rng)
    at, size = rng.choice(texts)
    new = reworded(content[at + 4 : at + 4 + size], rng)
    return content[:at] + struct.pack("<I", len(new)) + new + content[at + 4 + size :]
