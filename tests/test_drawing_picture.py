"""Reading pictures: every kind of file becomes the same upright RGB on white, and bad ones are refused in time."""

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest

from tangere.apps.drawing.files import png_bytes
from tangere.apps.drawing.picture.picture import PIXELS_MAX, enlarged, picture_from, read_picture
from tangere.apps.drawing.strokes.make import strokes_of
from tangere.errors import InvalidValue, TangereError

Image = pytest.importorskip("PIL.Image", reason="Pillow (extra `draw`) is not installed")
pytest.importorskip("cv2", reason="OpenCV (extra `draw`) is not installed")


def scene(height: int = 420, width: int = 500) -> np.ndarray:
    """Grey levels that differ along both axes, so that a turned or flipped picture shows."""
    rows, columns = np.mgrid[0:height, 0:width]
    return ((rows * 90 // height) + (columns * 120 // width) + 20).astype(np.uint8)


def saved(image, kind: str, **options) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def test_grey_palette_and_colour_files_read_the_same():
    grey = Image.fromarray(scene())
    expected = np.repeat(scene()[..., None], 3, axis=2)
    for mode in ("L", "RGB", "P", "RGBA", "LA"):
        picture = read_picture(saved(grey.convert(mode), "PNG"))
        assert np.array_equal(picture.rgb, expected), mode


def test_a_bilevel_file_is_black_on_white():
    picture = read_picture(saved(Image.fromarray(scene() > 100), "PNG"))
    assert set(np.unique(picture.rgb)) == {0, 255}
    assert picture.rgb[0, 0, 0] == 0


def test_sixteen_bits_become_eight():
    picture = read_picture(saved(Image.fromarray(scene().astype(np.uint16) * 257), "PNG"))
    assert np.array_equal(picture.rgb[..., 0], scene())


def test_transparent_parts_are_white_paper():
    rgba = np.zeros((420, 420, 4), dtype=np.uint8)
    rgba[:, :200, 3] = 255
    rgba[:, 200:300, 3] = 128
    picture = read_picture(saved(Image.fromarray(rgba), "PNG"))
    assert (picture.rgb[:, :200] == 0).all()
    assert np.abs(picture.rgb[:, 200:300].astype(int) - 127).max() <= 1
    assert (picture.rgb[:, 300:] == 255).all()
    assert "transparent" in " ".join(picture.notes)


def test_cmyk_jpeg_reads_as_its_colours():
    cmyk = Image.fromarray(np.repeat(scene()[..., None], 3, axis=2)).convert("CMYK")
    picture = read_picture(saved(cmyk, "JPEG", quality=95))
    # JPEG's own error at quality 95 is a few levels; an inverted file would be off by a hundred
    assert np.abs(picture.rgb[..., 0].astype(int) - scene()).max() <= 12


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(orientation):
    upright = scene()
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.T,
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].T,
        8: np.rot90(upright, -1),
    }[orientation]
    image = Image.fromarray(np.ascontiguousarray(stored))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = read_picture(saved(image, "JPEG", quality=95, exif=exif))
    assert picture.rgb.shape[:2] == upright.shape
    assert np.abs(picture.rgb[..., 0].astype(int) - upright).max() <= 12
    assert not any("reduced" in note for note in picture.notes)


def test_large_pictures_are_reduced_and_the_note_says_it():
    big = np.kron(scene(), np.ones((6, 6), dtype=np.uint8))
    for kind in ("PNG", "JPEG"):
        picture = read_picture(saved(Image.fromarray(big), kind))
        assert max(picture.rgb.shape) == 2000
        assert picture.width * 2520 == pytest.approx(picture.height * 3000, rel=2e-3)
        assert "reduced from 3000 x 2520 to 2000 x 1680" in " ".join(picture.notes)
        assert abs(float(picture.rgb.mean()) - float(big.mean())) < 1.0


def test_small_pictures_are_enlarged_by_whole_factors():
    picture = picture_from(scene(30, 50))
    assert (picture.width, picture.height) == (50, 30)
    large = enlarged(picture, 400)
    assert (large.width, large.height) == (400, 240)
    assert enlarged(large, 799) is large


@pytest.mark.parametrize("bits", [10, 12, 14, 16])
def test_the_bits_of_a_camera_fill_the_range(bits):
    values = scene().astype(float) / 255.0
    file = saved(Image.fromarray(np.rint(values * (2**bits - 1)).astype(np.uint16)), "PNG")
    assert np.abs(read_picture(file).rgb[..., 0].astype(int) - scene()).max() <= 1


def test_white_ink_on_a_transparent_ground_lies_on_black():
    pixels = np.full((300, 300, 4), 255, dtype=np.uint8)
    pixels[..., 3] = 0
    pixels[100:104, 50:250, 3] = 255
    picture = read_picture(saved(Image.fromarray(pixels), "PNG"))
    assert picture.rgb[102, 100].tolist() == [255, 255, 255]
    assert picture.rgb[10, 10].tolist() == [0, 0, 0]
    assert "transparent parts are black paper" in picture.notes


def header_only(columns: int, rows: int) -> bytes:
    """A PNG that claims a size and holds no pixels."""
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(head)) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))


@pytest.mark.parametrize(("columns", "rows"), [(9000, 9000), (60_000, 60_000), (2_000_000_000, 2_000_000_000)])
def test_huge_pictures_are_refused_by_their_header(columns, rows):
    with pytest.raises(InvalidValue, match=f"{columns} x {rows} pixels by its header|too large") as caught:
        read_picture(header_only(columns, rows))
    assert "50 million" in str(caught.value) or str(PIXELS_MAX) in str(caught.value)


def test_what_is_no_picture_is_refused_with_its_name(tmp_path):
    cases = {"text.png": b"hello, I am no picture", "empty.jpg": b"", "cut.png": png_bytes(scene())[:500]}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidValue, match=name):
            read_picture(tmp_path / name)
    with pytest.raises(InvalidValue, match=r"nowhere\.png"):
        read_picture(tmp_path / "nowhere.png")
    with pytest.raises(InvalidValue):
        read_picture(tmp_path)


def test_damaged_bytes_never_leak_another_error():
    rng = np.random.default_rng(0)
    whole = saved(Image.fromarray(scene(60, 80)), "JPEG"), png_bytes(scene(60, 80))
    for data in whole:
        for _ in range(60):
            broken = bytearray(data)
            for at in rng.integers(0, len(broken), 6):
                broken[at] = int(rng.integers(0, 256))
            with contextlib.suppress(TangereError):
                read_picture(bytes(broken[: rng.integers(10, len(broken) + 1)]))


@pytest.mark.parametrize("level", [0, 128, 255])
def test_an_empty_picture_says_that_there_is_nothing_to_draw(level):
    for style in ("auto", "lines", "edges"):
        with pytest.raises(InvalidValue, match="nothing to draw"):
            strokes_of(picture_from(np.full((300, 400), level, dtype=np.uint8)), style=style)


def test_a_soft_gradient_has_nothing_to_draw():
    with pytest.raises(InvalidValue, match="nothing to draw"):
        strokes_of(picture_from(np.tile(np.linspace(0.0, 1.0, 900), (600, 1))))


@pytest.mark.parametrize(
    "pixels", [np.zeros((2, 9)), np.zeros((9, 9, 2)), np.zeros(9), np.full((9, 9), 2.0), np.zeros((9, 9), dtype=int)]
)
def test_wrong_arrays_are_refused(pixels):
    with pytest.raises(InvalidValue):
        picture_from(pixels)


def test_our_png_is_read_back_by_pillow():
    rng = np.random.default_rng(1)
    for shape in ((40, 30), (40, 30, 3)):
        pixels = rng.integers(0, 256, shape).astype(np.uint8)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(png_bytes(pixels)))), pixels)
