"""Decoding and resizing, compared with Pillow byte by byte on pictures of random sizes and kinds."""
import base64
import io
import json

import numpy as np
import pytest
from PIL import Image
from test_data import ROOT

TESTDATA = ROOT / "src" / "media" / "testdata"
FILES = {entry["file"]: entry for entry in json.loads((TESTDATA / "pictures.json").read_text())}


def photograph(random, width, height, channels=3):
    """Smooth areas, edges and noise."""
    coarse = random.integers(0, 256, (height // 9 + 2, width // 9 + 2, channels), np.uint8)
    planes = [np.asarray(Image.fromarray(coarse[:, :, c]).resize((width, height), Image.Resampling.BILINEAR))
              for c in range(channels)]
    noise = random.integers(-12, 13, (height, width, channels))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def saved(pixels, kind, mode=None, **options):
    buffer = io.BytesIO()
    image = Image.fromarray(pixels if pixels.shape[-1] > 1 else pixels[:, :, 0], mode)
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def pillow_rgb(data):
    image = Image.open(io.BytesIO(data))
    if "A" in image.getbands() or image.info.get("transparency") is not None:
        image = Image.alpha_composite(Image.new("RGBA", image.size, (255,) * 4), image.convert("RGBA"))
    return np.asarray(image.convert("RGB"))


def assert_equal(got, want, what):
    assert not isinstance(got, dict), f"{what}: {got}"
    assert got.shape == want.shape, what
    difference = np.abs(got.astype(int) - want.astype(int))
    assert difference.max() == 0, f"{what}: {np.count_nonzero(difference)} bytes differ by up to {difference.max()}"


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_test_data(tool, name):
    entry = FILES[name]
    want = np.frombuffer(base64.b64decode(entry["rgb"]), np.uint8).reshape(entry["height"], entry["width"], 3)
    assert_equal(tool.decode((TESTDATA / "pictures" / name).read_bytes()), want, name)


KINDS = {
    "png": lambda pixels, random: saved(pixels, "PNG"),
    "jpeg_444": lambda pixels, random: saved(pixels, "JPEG", quality=int(random.integers(20, 100)), subsampling=0),
    "jpeg_422": lambda pixels, random: saved(pixels, "JPEG", quality=int(random.integers(20, 100)), subsampling=1),
    "jpeg_420": lambda pixels, random: saved(pixels, "JPEG", quality=int(random.integers(20, 100)), subsampling=2),
    "jpeg_progressive": lambda pixels, random: saved(pixels, "JPEG", quality=75, progressive=True, optimize=True),
    "webp_lossy": lambda pixels, random: saved(pixels, "WEBP", quality=int(random.integers(10, 100))),
    "webp_lossless": lambda pixels, random: saved(pixels, "WEBP", lossless=True),
    "bmp": lambda pixels, random: saved(pixels, "BMP"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_random_pictures_decode_as_in_pillow(tool, kind):
    random = np.random.default_rng(sum(kind.encode()))
    for _ in range(25):
        width, height = (int(side) for side in random.integers(1, 150, 2))
        data = KINDS[kind](photograph(random, width, height), random)
        if max(width, height) <= 200 * min(width, height):
            assert_equal(tool.decode(data), pillow_rgb(data), f"{kind} {width} x {height}")


@pytest.mark.parametrize("kind,mode,channels", [("PNG", "RGBA", 4), ("PNG", "LA", 2), ("WEBP", "RGBA", 4), ("JPEG", "CMYK", 4),
                                                ("PNG", "L", 1), ("JPEG", "L", 1)])
def test_every_value_of_other_modes(tool, kind, mode, channels):
    random = np.random.default_rng(5)
    pixels = random.integers(0, 256, (200, 300, channels), np.uint8)
    options = {"WEBP": {"lossless": True, "exact": True}, "JPEG": {"quality": 95}}.get(kind, {})
    data = saved(pixels, kind, mode, **options)
    assert_equal(tool.decode(data), pillow_rgb(data), f"{kind} {mode}")


@pytest.mark.parametrize("colours,transparent", [(2, None), (16, None), (200, None), (16, 3), (256, 0)])
@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP"])
def test_palettes(tool, kind, colours, transparent):
    image = Image.fromarray(photograph(np.random.default_rng(colours), 61, 47)).quantize(colours)
    buffer = io.BytesIO()
    image.save(buffer, kind, **({} if transparent is None or kind == "BMP" else {"transparency": transparent}))
    assert_equal(tool.decode(buffer.getvalue()), pillow_rgb(buffer.getvalue()), f"{kind} of {colours}")


def bicubic(pixels, width, height):
    """Columns, then rows, as every Pillow before 13 and torchvision do. Pillow 13 starts with the rows where
    the height shrinks much more than the width."""
    across = Image.fromarray(pixels).resize((width, pixels.shape[0]), Image.Resampling.BICUBIC)
    return np.asarray(across.resize((width, height), Image.Resampling.BICUBIC))


def sides(random, largest):
    """Mostly small, sometimes as large as allowed."""
    return int(np.ceil(np.exp(random.uniform(0, np.log(largest)))))


@pytest.mark.parametrize("seed", range(8))
def test_random_sizes_resize_as_in_pillow(tool, seed):
    random = np.random.default_rng(seed)
    for _ in range(60):
        width, height, to_width, to_height = (sides(random, 700) for _ in range(4))
        if random.random() < 0.2:
            to_width = width
        pixels = (random.integers(0, 256, (height, width, 3), np.uint8) if random.random() < 0.5
                  else photograph(random, width, height))
        want = bicubic(pixels, to_width, to_height)
        assert_equal(tool.resize(pixels, to_width, to_height), want, f"{width} x {height} to {to_width} x {to_height}")


def test_extreme_values_resize_as_in_pillow(tool):
    random = np.random.default_rng(1)
    for shape in [(200, 300, 3), (64, 64, 3), (37, 11, 3)]:
        pixels = random.integers(0, 2, shape, np.uint8) * np.uint8(255)
        for width, height in [(32, 32), (96, 64), (480, 352), (31, 7)]:
            want = bicubic(pixels, width, height)
            assert_equal(tool.resize(pixels, width, height), want, f"{shape} to {width} x {height}")
