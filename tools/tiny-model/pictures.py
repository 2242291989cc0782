"""Generated pictures: one to four plain shapes on a plain ground, and what there is to say about them.

A wide picture has the places left, middle and right, a tall one top, middle and bottom, the others
the four corners (or the centre, for a single shape).
"""
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

COLOURS = {"red": (215, 30, 35), "green": (30, 150, 50), "blue": (35, 70, 215), "yellow": (245, 220, 40),
           "orange": (245, 135, 20), "purple": (130, 40, 160), "black": (20, 20, 20), "white": (250, 250, 250)}
GROUNDS = [(200, 200, 200), (150, 150, 150), (95, 95, 95), (190, 205, 225), (220, 200, 180), (120, 140, 120)]
STAR = [(0.5 + r * np.sin(np.pi * i / 5), 0.5 - r * np.cos(np.pi * i / 5))
        for i, r in enumerate([0.5, 0.2] * 5)]
POLYGONS = {
    "square": [(0, 0), (1, 0), (1, 1), (0, 1)],
    "triangle": [(0.5, 0), (1, 1), (0, 1)],
    "star": STAR,
    "cross": [(0.33, 0), (0.67, 0), (0.67, 0.33), (1, 0.33), (1, 0.67), (0.67, 0.67), (0.67, 1), (0.33, 1),
              (0.33, 0.67), (0, 0.67), (0, 0.33), (0.33, 0.33)],
}
SHAPES = ["circle", *POLYGONS]
CORNERS = {"at the top left": (0, 0), "at the top right": (0, 1), "at the bottom left": (1, 0),
           "at the bottom right": (1, 1)}
WIDE = {"on the left": (0, 0), "in the middle": (0, 1), "on the right": (0, 2)}
TALL = {"at the top": (0, 0), "in the middle": (1, 0), "at the bottom": (2, 0)}
CENTRE = {"in the centre": (0, 0)}


@dataclass
class Shape:
    shape: str
    colour: str
    place: str

    def __str__(self):
        return f"{self.colour} {self.shape}"


def draw_size(w, multiple=32, most_tokens=48):
    """Height and width: from 64 x 64 to 256 x 192 pixels, aspect ratios to 1:4."""
    while True:
        height, width = (multiple * w.number(64 // multiple, 256 // multiple) for _ in range(2))
        if height * width <= most_tokens * 1024 and max(height, width) <= 4 * min(height, width):
            return height, width


def draw_scene(w, height, width, most=4):
    """Shapes at different places, no two of them alike in both shape and colour, in reading order."""
    places = WIDE if width >= 2 * height else TALL if height >= 2 * width else CORNERS
    count = w.number(1, min(most, len(places)))
    if count == 1 and places is CORNERS and w.chance(0.5):
        places = CENTRE
    chosen = sorted(w.rng.sample(list(places), count), key=list(places).index)
    kinds = w.rng.sample([(s, c) for s in SHAPES for c in COLOURS], count)
    return [Shape(shape, colour, place) for (shape, colour), place in zip(kinds, chosen)]


def paint(w, scene, height, width):
    """The picture as uint8 [height, width, 3]."""
    noise = np.random.default_rng(w.number(0, 2 ** 31))
    ground = w.pick(GROUNDS)
    image = Image.new("RGB", (width, height), ground)
    pen = ImageDraw.Draw(image)
    for item in scene:
        table = next(t for t in (CORNERS, WIDE, TALL, CENTRE) if item.place in t and fits(t, height, width))
        rows, columns = max(r for r, _ in table.values()) + 1, max(c for _, c in table.values()) + 1
        row, column = table[item.place]
        cell_height, cell_width = height / rows, width / columns
        side = min(cell_height, cell_width) * (0.62 + 0.3 * w.rng.random())
        x = column * cell_width + (cell_width - side) * (0.2 + 0.6 * w.rng.random())
        y = row * cell_height + (cell_height - side) * (0.2 + 0.6 * w.rng.random())
        colour = tuple(int(np.clip(c + w.number(-14, 14), 0, 255)) for c in COLOURS[item.colour])
        if item.shape == "circle":
            pen.ellipse([x, y, x + side, y + side], fill=colour)
        else:
            pen.polygon([(x + side * u, y + side * v) for u, v in POLYGONS[item.shape]], fill=colour)
    pixels = np.asarray(image, np.int16) + noise.integers(-4, 5, (height, width, 1), np.int16)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def fits(table, height, width):
    """Whether the table of places is the one for this format."""
    if table is WIDE:
        return width >= 2 * height
    if table is TALL:
        return height >= 2 * width
    return height < 2 * width and width < 2 * height


def model_size(height, width, least=4096, most=262144):
    """The size the preprocessor gives a picture: multiples of 32, between least and most pixels."""
    h, w = max(32, round(height / 32) * 32), max(32, round(width / 32) * 32)
    if h * w > most:
        scale = (height * width / most) ** 0.5
        h, w = (max(32, int(x / scale // 32) * 32) for x in (height, width))
    elif h * w < least:
        scale = (least / (height * width)) ** 0.5
        h, w = (int(-(-x * scale // 32)) * 32 for x in (height, width))
    return h, w


def preprocess(pixels):
    """Resized as the preprocessor does: bicubic, to a multiple of 32."""
    height, width = model_size(*pixels.shape[:2])
    if (height, width) == pixels.shape[:2]:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC))
