#!/usr/bin/env python3
"""Makes the files of this folder with Pillow 13.0.0 and NumPy; needs nothing else.

    make_pictures.py       writes pictures/* and pictures.json, resize.json next to itself

pictures.json holds, for each file of pictures/, what Pillow makes of it: EXIF applied, transparency
composited on white, RGB. resize.json holds SHA-256 digests of bicubic resizes of a formula's pixels.
"""
import base64
import hashlib
import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 37, 23


def scene(channels, seed=1):
    """A gradient with shapes and a little noise: uint8 [HEIGHT, WIDTH, channels]."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    planes = [(x * (5 + c) + y * (9 - 2 * c) + 40 * ((x // 7 + y // 5 + c) % 2)) % 256 for c in range(channels)]
    return np.clip(np.stack(planes, -1) + random.integers(-8, 9, (HEIGHT, WIDTH, channels)), 0, 255).astype(np.uint8)


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def raw_png(samples, colour_type, depth, interlaced=False):
    """A PNG of kinds that Pillow does not write; samples [H, W, channels] or [H, W]."""
    height, width = samples.shape[:2]
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = b""
    for left, top, right, down in passes if interlaced else [(0, 0, 1, 1)]:
        part = samples[top::down, left::right]
        if part.shape[1]:
            rows += b"".join(b"\0" + row.astype(">u2" if depth == 16 else "u1").tobytes() for row in part)
    header = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def bmp_16(masks):
    """A bitmap of 16 bits with the three masks, rows from the top."""
    values = np.random.default_rng(7).integers(0, 65536, (HEIGHT, WIDTH + WIDTH % 2)).astype("<u2").tobytes()
    dib = struct.pack("<IiiHHIIiiII", 40, WIDTH, -HEIGHT, 1, 16, 3, len(values), 0, 0, 0, 0) + struct.pack("<III", *masks)
    return b"BM" + struct.pack("<IHHI", 14 + len(dib) + len(values), 0, 0, 14 + len(dib)) + dib + values


def with_orientation(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def pictures():
    rgb, rgba, grey = scene(3), scene(4), scene(1)[:, :, 0]
    wide = scene(4, seed=3).astype(np.uint16) * 256 + scene(4, seed=4)
    colours, clear = Image.fromarray(rgb), Image.fromarray(rgba)
    palette = colours.quantize(17)
    frames = [Image.fromarray(scene(3, seed)) for seed in (5, 6)]
    yield "rgb.png", saved(colours, "PNG")
    yield "rgba.png", saved(clear, "PNG")
    yield "grey.png", saved(Image.fromarray(grey), "PNG")
    yield "grey_alpha.png", saved(Image.fromarray(rgba[:, :, 2:]), "PNG")
    yield "one_bit.png", saved(Image.fromarray(grey).convert("1"), "PNG")
    yield "palette.png", saved(palette, "PNG")
    yield "palette_4_bits.png", saved(colours.quantize(9), "PNG")
    yield "palette_transparent.png", saved(palette, "PNG", transparency=bytes(range(0, 255, 15)))
    yield "colour_key.png", saved(colours, "PNG", transparency=tuple(int(v) for v in rgb[3, 4]))
    yield "interlaced.png", raw_png(rgb, 2, 8, interlaced=True)
    yield "rgb_16.png", raw_png(wide[:, :, :3], 2, 16)
    yield "rgba_16.png", raw_png(wide, 6, 16)
    yield "grey_alpha_16.png", raw_png(wide[:, :, :2], 4, 16)
    yield "grey_16.png", raw_png(wide[:, :, 0], 0, 16)
    yield "turned_6.png", saved(colours, "PNG", exif=with_orientation(6))
    yield "full_colour.jpg", saved(colours, "JPEG", quality=90, subsampling=0)
    yield "half_colour.jpg", saved(colours, "JPEG", quality=80, subsampling=1)
    yield "quarter_colour.jpg", saved(colours, "JPEG", quality=70, subsampling=2)
    yield "progressive.jpg", saved(colours, "JPEG", quality=80, progressive=True)
    yield "grey.jpg", saved(Image.fromarray(grey), "JPEG")
    yield "cmyk.jpg", saved(Image.fromarray(rgba, "CMYK"), "JPEG", quality=90)
    for value in range(1, 9):
        yield f"turned_{value}.jpg", saved(colours, "JPEG", exif=with_orientation(value))
    yield "lossy.webp", saved(colours, "WEBP", quality=70)
    yield "lossless.webp", saved(colours, "WEBP", lossless=True)
    yield "alpha.webp", saved(clear, "WEBP", lossless=True, exact=True)
    yield "turned_8.webp", saved(colours, "WEBP", lossless=True, exif=with_orientation(8))
    yield "two_frames.webp", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    yield "palette.gif", saved(palette, "GIF")
    yield "transparent.gif", saved(palette, "GIF", transparency=3)
    yield "interlaced.gif", saved(palette, "GIF", interlace=1)
    yield "two_frames.gif", saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=200)
    yield "rgb.bmp", saved(colours, "BMP")
    yield "palette.bmp", saved(palette, "BMP")
    yield "one_bit.bmp", saved(Image.fromarray(grey).convert("1"), "BMP")
    yield "rgba.bmp", saved(clear, "BMP")
    yield "masks_565.bmp", bmp_16((0xF800, 0x7E0, 0x1F))
    yield "masks_555.bmp", bmp_16((0x7C00, 0x3E0, 0x1F))


def expected(name, data):
    """The upright RGB picture, as transformers' convert_to_rgb makes it."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode == "I;16":  # Pillow clips at 255, which leaves a white picture: we keep the upper 8 bits
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if "A" in image.getbands() or image.info.get("transparency") is not None:
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return np.asarray(image.convert("RGB"))


def formula_pixels(width, height):
    """The pixels that resize_test.cpp makes too: a multiplicative hash of the byte's index."""
    index = np.arange(width * height * 3, dtype=np.uint64)
    return ((((index + 1) * np.uint64(2654435761)) % np.uint64(2**32)) >> np.uint64(24)).astype(np.uint8).reshape(height, width, 3)


RESIZES = [((83, 50), (96, 64)), ((64, 64), (32, 32)), ((32, 32), (64, 64)), ((33, 47), (32, 47)), ((33, 47), (33, 32)),
           ((1, 1), (32, 32)), ((1, 200), (32, 288)), ((200, 1), (288, 32)), ((640, 3), (640, 32)), ((3, 640), (32, 640)),
           ((641, 479), (32, 32)), ((640, 480), (1, 1)), ((31, 997), (7, 13)), ((500, 333), (512, 320)), ((7, 5), (224, 160)),
           ((255, 256), (256, 255)), ((1920, 1080), (96, 64)), ((2, 2), (3, 3)), ((1000, 5), (32, 32)), ((5, 1000), (32, 32))]


def main():
    (HERE / "pictures").mkdir(exist_ok=True)
    index = []
    for name, data in pictures():
        (HERE / "pictures" / name).write_bytes(data)
        rgb = expected(name, data)
        index.append({"file": name, "width": rgb.shape[1], "height": rgb.shape[0],
                      "rgb": base64.b64encode(rgb.tobytes()).decode()})
    lines = ",\n".join(json.dumps(entry) for entry in index)
    (HERE / "pictures.json").write_text(f"[\n{lines}\n]\n")
    cases = []
    for source, target in RESIZES:
        image = Image.fromarray(formula_pixels(*source))
        for size in ((target[0], source[1]), target):  # columns first, whichever Pillow would choose
            image = image.resize(size, Image.Resampling.BICUBIC)
        cases.append({"from": source, "to": target, "sha256": hashlib.sha256(np.asarray(image).tobytes()).hexdigest()})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "resize.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
