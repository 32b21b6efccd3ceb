"""Hostile files made by hand, for each reader of fuzz_readers: bombs, slips, nesting, encodings, escapes, numbers."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib

import numpy as np

ESCAPE, TURN = "\x1b]0;owned\x07\x1b[2J", "\u202e"  # titles, clearing the screen, text from right to left
NUMBERS = ("1e308", "-1e308", "1e309", "nan", "inf", "1e-320", "9" * 400, "0x10", "1_000", "--1", "", "1e", "True")
HEADER = "timestamp," + ",".join(f"actual_{n}_{i}" for n in ("q", "qd", "current") for i in range(6))


def _npy(shape: object, descr: str = "<f8", data: bytes = b"") -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def _zip(members: dict[str, bytes], link: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if name == link:
                info.external_attr = 0xA1FF << 16
            archive.writestr(info, content)
    return out.getvalue()


def _mcap(*records: tuple[int, bytes]) -> bytes:
    body = b"".join(struct.pack("<BQ", code, len(content)) + content for code, content in records)
    return b"\x89MCAP0\r\n" + body


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw


def _chunk(kind: str, content: bytes, size: int) -> tuple[int, bytes]:
    return 6, struct.pack("<QQQI", 0, 1, size, 0) + _text(kind) + struct.pack("<Q", len(content)) + content


def _about(**pairs: str) -> tuple[int, bytes]:
    inside = b"".join(_text(key) + _text(value) for key, value in pairs.items())
    return 12, _text("tangere") + struct.pack("<I", len(inside)) + inside


def _png(width: int, height: int) -> bytes:
    def part(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(b"\x00" * min(width * height, 1000))
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + part(b"IDAT", rows)


def _svg(inside: str, box: str = "0 0 100 100") -> bytes:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{inside}</svg>'.encode()


def _fmu(xml: str, **more: bytes) -> bytes:
    return _zip({"modelDescription.xml": xml.encode(), **{name.replace("__", "/"): data for name, data in more.items()}})


def hostile() -> dict[str, dict[str, bytes]]:
    """reader -> what is wrong -> the file."""
    dots, deep = "a." * 50_000 + "a", "[" * 50_000
    laughs = '<!DOCTYPE a [<!ENTITY b "' + "x" * 1000 + '"><!ENTITY c "' + "&b;" * 1000 + '">]>'
    fmi = '<fmiModelDescription fmiVersion="2.0" modelName="a" guid="g"><CoSimulation modelIdentifier="{}"/>{}</fmiModelDescription>'
    squeezed = io.BytesIO()
    np.savez_compressed(squeezed, q=np.zeros((2_000_000, 6)))
    arm = '<robot name="a"><link name="l"/><link name="m"/><joint name="j" type="revolute"><parent link="l"/><child link="m"/>{}</joint></robot>'
    common = {
        "empty": b"", "one byte": b"\x00", "zeros": bytes(10_000), "ones": b"\xff" * 10_000, "utf-16": "a = 1".encode("utf-16"),
        "escapes": ESCAPE.encode(), "gzip": gzip.compress(b"a" * 100_000), "zip": _zip({"a": b"a"}), "a long line": b"a" * 3_000_000,
    }  # fmt: skip
    found: dict[str, dict[str, bytes]] = {
        "toml": {
            "dotted key": f"{dots} = 1".encode(), "dotted table": f"[{dots}]".encode(), "dotted inside": f"x = {{{dots} = 1}}".encode(),
            "nested lists": f"x = {deep}".encode(), "nested tables": ("x = " + "{a=" * 5000).encode(), "key of escapes": f'"{ESCAPE}" = 1'.encode(),
            **{f"number {n}": f'schema_version = 1\nname = "a"\nparameters = {n or "x"}\n'.encode() for n in NUMBERS},
        },
        "scenario": {
            "dotted key": f"{dots} = 1".encode(), "nested": f"x = {deep}".encode(), "name of escapes": f'scenario = "{TURN}"'.encode(),
            "a number": b"scenario = 1",
        },
        "urdf": {
            "entities": (laughs + "<robot/>").encode(), "outside": b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><robot/>',
            "many": b"<robot>" + b"<a/>" * 300_000 + b"</robot>", "unclosed": b"<a>" * 150_000,
            **{f"number {n}": arm.format(f'<origin rpy="{n} 0 0" xyz="0 0 0"/>').encode() for n in NUMBERS},
        },
        "calibration": {
            "alias of itself": b"&a [*a]", "laughs": b"a: &a [x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]",
            "object": b"!!python/object/apply:os.system [id]", "nested": b"[" * 20_000, "many": b"- 1\n" * 100_000,
            "merge": b"a: &a {b: 1}\nc: {<<: *a}", "date": b"kinematics: 2020-99-99", "int": b"kinematics: " + b"9" * 10_000,
            **{f"number {n}": f"kinematics:\n  shoulder: {{x: {n}, y: 0, z: 0.1, roll: {n}, pitch: 0, yaw: 0}}".encode() for n in NUMBERS[:7]},
        },
        "motors": {"joints": b"**** Joint 999999999999 :", "numbers": b"**** Joint 0 :\nK_tau\n1e308\n" + b"1e308 1e308 1e308 1 1 1\n" * 9},
        "csv": {
            "escapes in the header": f"timestamp,{ESCAPE}\n0,1\n1,2\n".encode(), "wide": b"timestamp" + b",a" * 300_000 + b"\n",
            "a long field": f'timestamp,a\n0,"{"1" * 200_000}"\n1,2\n'.encode(), "stamps too close": b"timestamp,q_0\n0,1\n1e-300,2\n2e-300,3\n",
            "no end": f"{HEADER}\n{','.join(['1'] * 19)}".encode(), "quotes": b'timestamp,"' + b'"' * 5000, "vector": b"timestamp,q_999999999999\n0,1\n1,1\n",
            **{f"number {n}": f"{HEADER}\n0{f',{n}' * 18}\n1{f',{n}' * 18}\n2{f',{n}' * 18}\n".encode() for n in NUMBERS},
        },
        "stream": {"escapes": f"timestamp,q_0\n{ESCAPE}\n".encode(), "no line end": b"1," * 2_000_000, "header": b"," * 50_000 + b"\n", "a number of digits": b"timestamp,q_" + b"1" * 9000 + b"\n0,1\n"},
        "npz": {
            "13 TB": _zip({"q.npy": _npy("(1000000000000, 13)")}), "3 MB for 96": squeezed.getvalue(), "negative": _zip({"q.npy": _npy("(-1, 6)")}),
            "pickle": _zip({"q.npy": _npy("(1,)", "|O", b"cos\nsystem\n(S'id'\ntR.")}), "text": _zip({"q.npy": b"hello"}), "npy": _npy("(1,)", data=bytes(8)),
            "slip": _zip({"../q.npy": _npy("(1,)", data=bytes(8))}), "many": _zip({f"{i}.npy": b"" for i in range(12_000)}),
            "code": _zip({"q.npy": _npy("__import__('os').system('id')")}), "strings": _zip({"q.npy": _npy("(1,)", "<U9", bytes(36))}),
            "overflow": _zip({"q.npy": _npy("(4294967296, 4294967296, 4294967296)")}), "escapes": _zip({f"{ESCAPE}.npy": _npy("(1,)", data=bytes(8))}),
            "two lengths": _zip({"t.npy": _npy("(2,)", data=bytes(16)), "q.npy": _npy("(1, 6)", data=bytes(48))}),
        },
        "mcap": {
            "cut": b"\x89MCAP0\r\n", "1 TB of zstd": _mcap(_chunk("zstd", b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 10**12), 10**12)),
            "1 TB of lz4": _mcap(_chunk("lz4", b"\x04\x22\x4d\x18", 10**12)), "unknown": _mcap(_chunk("rar", b"x", 1)), "length": _mcap((1, b"")) + b"\x06" + b"\xff" * 8,
            "size of nothing": _mcap(_chunk("", b"", 2**63)), "columns null": _mcap(_about(columns="null", joints="[]", units="{}")),
            "columns list": _mcap(_about(columns="[1]", joints="[]", units="{}")), "columns of texts": _mcap(_about(columns='{"time": "x"}', joints="[]", units="{}")),
            "columns without measure": _mcap(_about(columns='{"time": 0, "q": 1000000000000}', joints="[]", units="{}")),
            "joints of numbers": _mcap(_about(columns='{"time": 0}', joints="[1, 2]", units="{}")), "units list": _mcap(_about(columns='{"time": 0}', joints="[]", units="[]")),
            "nested": _mcap(_about(columns="[" * 50_000, joints="[]", units="{}")), "not text": _mcap((12, b"\x07\x00\x00\x00tangere\x08\x00\x00\x00\x04\x00\x00\x00\xff\xff\xff\xff")),
            "start": _mcap(_about(columns='{"time": 0}', joints="[]", units="{}", start_ns="soon")), "schema": _mcap((3, b"\x01")), "channel": _mcap((4, b"\x01\x00\x09\x00")),
        },
        "manifest": {
            "nested": b"[" * 100_000, "list": b"[]", "number": b"9" * 10_000, "null": b"null", "nan": b"NaN",
            "command": b'{"program": "tangere", "format": 1, "command": 5, "scenario": {}}', "scenario": b'{"program": "tangere", "format": 1, "command": [], "scenario": []}',
            "words": b'{"program": "tangere", "format": 1, "command": [1], "scenario": {}}', "fields": b'{"program": "tangere", "format": 1, "\\u001b[2J": 1}',
        },
        "fmu": {
            "slip": _zip({"../modelDescription.xml": b"x"}), "root": _zip({"/modelDescription.xml": b"x"}), "drive": _zip({"C:\\a": b"x"}), "backslash": _zip({"..\\a": b"x"}),
            "link": _zip({"modelDescription.xml": b"/etc/passwd"}, link="modelDescription.xml"), "many": _zip({str(i): b"" for i in range(12_000)}),
            "identifier": _fmu(fmi.format("../../../tmp/a", "")), "identifier of escapes": _fmu(fmi.format("a b", "")), "encoding": _fmu('<?xml version="1.0" encoding="klingon"?>' + fmi.format("a", "")),
            "entities": _fmu(laughs + fmi.format("a", "")), "outside": _fmu('<!DOCTYPE a SYSTEM "file:///etc/passwd">' + fmi.format("a", "")),
            "variables": _fmu(fmi.format("a", "<ModelVariables>" + "<ScalarVariable/>" * 300_000 + "</ModelVariables>")), "nested": _fmu("<a>" * 50_000),
            "resources": _fmu(fmi.format("a", ""), resources=b"a file"), "reference": _fmu(fmi.format("a", '<ModelVariables><ScalarVariable name="x" valueReference="x"/></ModelVariables>')),
        },
        "rtde": {"size 0": b"\x00\x00U", "size 2": b"\x00\x02U", "unfinished": b"\xff\xffU", "types": b"\x00\x08O\x01RAR", "no data": b"\x00\x04U\x01"},
        "primary": {"negative": struct.pack(">iB", -1, 16), "large": struct.pack(">iB", 2**31 - 1, 16), "small": struct.pack(">iB", 4, 16), "part": struct.pack(">iBiB", 10, 16, 1, 5)},
        "svg": {
            "entities": (laughs + "<svg/>").encode(), "outside": b'<!DOCTYPE svg SYSTEM "file:///etc/passwd"><svg/>', "box": _svg('<path d="M0 0 L1 1"/>', "0 0 1e300 1e300"),
            "tiny box": _svg('<path d="M0 0 L1 1"/>', "0 0 1e-300 1e-300"), "points": _svg('<path d="M0 0' + " 1 2 3 4" * 250_000 + '"/>'), "groups": _svg("<g>" * 5000 + "</g>" * 5000),
            "arcs": _svg('<path d="M0 0' + "".join(f"A90 {50 + i % 37} {i} 1 {i % 2} {i * 37 % 100} {i * 61 % 100}" for i in range(1500)) + '"/>'),
            "use of itself": _svg('<g id="a"><use href="#a"/><use href="#a"/></g>'), "dashes": _svg('<path stroke="#000" stroke-dasharray="1e-9" d="M0 0 L99 99"/>'),
            "scales": _svg('<g transform="scale(1e200)"><g transform="scale(1e200)"><path d="M0 0 L9 9"/></g></g>'), "elements": _svg("<a/>" * 250_000), "font": _svg('<text font-size="1e300">a</text>'),
            "encoding": b'<?xml version="1.0" encoding="klingon"?><svg/>', "escapes": f"<svg><{'a' * 5000}/>{TURN}</svg>".encode(), "clip": _svg('<clipPath id="a" clip-path="url(#a)"><path clip-path="url(#a)" d="M0 0 L1 1 L1 0"/></clipPath><path clip-path="url(#a)" d="M0 0 L1 1"/>'),
            **{f"number {n}": _svg(f'<circle cx="{n}" cy="5" r="{n}"/>') for n in NUMBERS[:7]},
        },
        "picture": {"4 Gpixel": _png(65_535, 65_535), "49 Mpixel": _png(7000, 7000), "no pixel": _png(0, 0), "thin": _png(1, 40_000_000), "negative": _png(2**31, 2)},
        "mjcf": {
            "copies": b'<mujoco><worldbody><replicate count="1000000000"><body/></replicate></worldbody></mujoco>', "texture": b'<mujoco><asset><texture builtin="flat" width="100000" height="100000"/></asset></mujoco>',
            "itself": b'<mujoco><include file="hostile.xml"/></mujoco>', "outside": b'<mujoco><include file="/etc/passwd"/></mujoco>', "cloth": b'<mujoco><worldbody><flexcomp count="9999 9999 9999"/></worldbody></mujoco>',
            "nothing": b"<mujoco/>", "entities": (laughs + "<mujoco/>").encode(), "name": f'<mujoco model="{TURN}"/>'.encode(),
        },
    }  # fmt: skip
    return {reader: {**common, **files} for reader, files in found.items()}
