"""Batches for training: examples of one length bucket, padded; three-axis positions of images."""
import numpy as np
import torch

import config
from model import Batch
from render import Renderer
from stream import conversations

MERGED = config.vision.patch_size * config.vision.spatial_merge_size  # pixels per side of an image token
COLUMNS = 64  # a sequence's length is a multiple of this
FEW = 8192    # from this length on only few places have a weight


class Source:
    """Examples of at most `length` tokens, and the skill of each."""

    def __init__(self, seed, length, directory):
        self.renderer = Renderer(directory)
        self.length = length
        self.conversations = conversations(seed, length, None, self.renderer.count)

    def take(self, count):
        """count (skill, example)."""
        out = []
        while len(out) < count:
            conversation = next(self.conversations)
            example = self.renderer.example(conversation)
            if 3 < len(example.ids) <= self.length:
                out.append((conversation.skill, example))
        return out


def batch_of(examples):
    T = max(len(e.ids) for e in examples)
    T += -T % COLUMNS
    ids = np.full((len(examples), T), config.END_OF_TEXT, np.int64)
    weights = np.zeros((len(examples), T), np.float32)
    positions = np.zeros((len(examples), T, 3), np.int64)
    for row, e in enumerate(examples):
        n = len(e.ids)
        ids[row, :n], weights[row, :n] = e.ids, e.weights
        positions[row] = positions_of(ids[row], e.images)
    images = [image for e in examples for image in e.images]
    return Batch(*map(torch.from_numpy, (ids, weights, positions)), images, few=T > FEW)


def positions_of(ids, images):
    """[T, 3]: text counts on; an image block (r, c) stands at p, p + r, p + c, then p goes on by its longer side."""
    out = np.empty((len(ids), 3), np.int64)
    start = text_from = 0
    for image, first in zip(images, image_starts(ids)):
        rows, columns = image.shape[0] // MERGED, image.shape[1] // MERGED
        out[text_from:first] = start + np.arange(first - text_from)[:, None]
        start += first - text_from
        r, c = np.divmod(np.arange(rows * columns), columns)
        out[first:first + len(r)] = start + np.stack([0 * r, r, c], 1)
        start += max(rows, columns)
        text_from = first + len(r)
    out[text_from:] = start + np.arange(len(ids) - text_from)[:, None]
    return out


def image_starts(ids):
    pad = ids == config.IMAGE_PAD
    return np.flatnonzero(pad & ~np.concatenate([[False], pad[:-1]]))
