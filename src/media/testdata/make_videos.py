#!/usr/bin/env python3
"""Makes videos/* and videos.json next to itself with PyAV 18.1.0 and NumPy.

Twelve frames of 64 x 48 pixels in four flat quarters, whose colours say which frame it is and which way is
up. videos.json holds the mean colours of the insides of the quarters (a top and a bottom
half, left and right) as PyAV decodes them, upright.
"""
import io
import json
from pathlib import Path

import av
import numpy as np

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT, COUNT = 64, 48, 12
MARGIN = 4  # at the edges, colours depend on how those of fewer pixels are spread


def frame(i):
    picture = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    picture[: HEIGHT // 2, : WIDTH // 2] = 20 + 18 * i
    picture[: HEIGHT // 2, WIDTH // 2:] = (200, 60, 40)
    picture[HEIGHT // 2:, : WIDTH // 2] = (40, 180, 220 - 15 * i)
    picture[HEIGHT // 2:, WIDTH // 2:] = (240, 240, 30)
    return picture


def encoded(container, codec, rate=10, pixels="yuv420p", **options):
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixels
        for i in range(COUNT):
            for packet in stream.encode(av.VideoFrame.from_ndarray(frame(i), format="rgb24")):
                file.mux(packet)
        for packet in stream.encode(None):
            file.mux(packet)
    return buffer.getvalue()


def turned(mp4):
    """A quarter turn clockwise, as telephones write it: the matrix of the track header."""
    at = mp4.index(b"tkhd") + 4 + 4 + 20 + 8 + 8
    numbers = (0, 0x10000, 0, -0x10000, 0, 0, HEIGHT << 16, 0, 0x40000000)
    return mp4[:at] + b"".join(n.to_bytes(4, "big", signed=True) for n in numbers) + mp4[at + 36:]


def videos():
    h264 = encoded("mp4", "libx264", g="5", bf="2", crf="12")
    yield "h264.mp4", h264, 0
    yield "turned.mp4", turned(h264), 1
    yield "h264_30.mkv", encoded("matroska", "libx264", rate=30, crf="12"), 0
    yield "hevc.mp4", encoded("mp4", "libx265", crf="12", **{"x265-params": "log-level=none"}), 0
    yield "vp8.webm", encoded("webm", "libvpx", b="2M", **{"auto-alt-ref": "1", "lag-in-frames": "8"}), 0
    yield "vp9.webm", encoded("webm", "libvpx-vp9", crf="12", b="0"), 0
    yield "av1.mp4", encoded("mp4", "libsvtav1", crf="15"), 0
    yield "mpeg4.avi", encoded("avi", "mpeg4", qscale="2", b="3M"), 0
    yield "mjpeg.avi", encoded("avi", "mjpeg", pixels="yuvj420p", qmin="1", qmax="2"), 0


def quarters(picture):
    height, width = picture.shape[0] // 2, picture.shape[1] // 2
    return [[round(float(v)) for v in picture[y + MARGIN:y + height - MARGIN, x + MARGIN:x + width - MARGIN].mean((0, 1))]
            for y in (0, height) for x in (0, width)]


def main():
    (HERE / "videos").mkdir(exist_ok=True)
    index = []
    for name, data, turns in videos():
        (HERE / "videos" / name).write_bytes(data)
        with av.open(io.BytesIO(data)) as file:
            rate = float(file.streams.video[0].average_rate)
            pictures = [np.rot90(f.to_ndarray(format="rgb24"), -turns) for f in file.decode(video=0)]
        assert len(pictures) == COUNT, (name, len(pictures))
        index.append({"file": name, "width": pictures[0].shape[1], "height": pictures[0].shape[0], "rate": rate,
                      "quarters": [quarters(picture) for picture in pictures]})
    lines = ",\n".join(json.dumps(entry) for entry in index)
    (HERE / "videos.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
