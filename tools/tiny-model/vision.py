"""The vision tower: images to the rows that replace the embeddings of <|image_pad|>.

An image is uint8 [H, W, 3], both sides multiples of 32. Patches (16 x 16) come in blocks of 2 x 2, row
by row of blocks; the merger makes one row of a block. A still image is a frame shown twice, so the two
halves of the patch weight meet the same pixels and are added up.
"""
import functools
import math

import torch
import torch.nn.functional as F

from config import vision as v

ROOT = "model.visual."
ROWS = 256
SIDE = math.isqrt(v.num_position_embeddings)


def image_rows(w, images):
    """[rows, out_hidden_size] for all images, in order."""
    patches, coordinates, taps, weights = (fill(torch.cat(x)) for x in zip(*map(prepare, images)))

    def lin(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    both = w[ROOT + "patch_embed.proj.weight"].sum(2).flatten(1)
    x = F.linear(patches, both, w[ROOT + "patch_embed.proj.bias"])
    x = x + F.embedding_bag(taps, w[ROOT + "pos_embed.weight"], per_sample_weights=weights, mode="sum")
    cos, sin = turns(coordinates)
    sizes = torch.tensor([image.shape[0] * image.shape[1] // v.patch_size ** 2 for image in images])
    own = torch.arange(sizes.max()) < sizes[:, None]  # [images, patches]: the rows that exist
    for i in range(v.depth):
        p = f"{ROOT}blocks.{i}."
        qkv = lin(norm(w, p + "norm1", x), p + "attn.qkv").unflatten(-1, (3, v.num_heads, -1))
        qkv = torch.cat([rotate(qkv[:, :2], cos, sin), qkv[:, 2:]], 1)
        x = x + lin(attention(qkv, own), p + "attn.proj")
        inner = F.gelu(lin(norm(w, p + "norm2", x), p + "mlp.linear_fc1"), approximate="tanh")
        x = x + lin(inner, p + "mlp.linear_fc2")
    x = norm(w, ROOT + "merger.norm", x).view(-1, v.hidden_size * v.spatial_merge_size ** 2)
    x = lin(F.gelu(lin(x, ROOT + "merger.linear_fc1")), ROOT + "merger.linear_fc2")
    return x[:sizes.sum() // v.spatial_merge_size ** 2]


def fill(x):
    """Rows of zeros up to a multiple of ROWS: products are compiled for each size."""
    return F.pad(x, (0, 0, 0, -len(x) % ROWS))


def attention(qkv, own):
    """qkv [rows, 3, heads, d]: every patch sees those of its image."""
    rows = torch.nonzero(own.flatten())[:, 0]
    padded = qkv.new_zeros(own.numel(), *qkv.shape[1:]).index_copy(0, rows, qkv[:len(rows)])
    q, k, value = padded.unflatten(0, own.shape).unbind(2)
    scores = torch.einsum("nqhd,nkhd->nhqk", q, k) * q.shape[-1] ** -0.5
    p = scores.masked_fill(~own[:, None, None], -torch.inf).softmax(-1)
    return fill(torch.einsum("nhqk,nkhd->nqhd", p, value).flatten(0, 1).index_select(0, rows).flatten(1))


def norm(w, name, x):
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-6)


def prepare(image):
    """patches [n, 768], (row, column) [n, 2], and the four position rows and their weights [n, 4]."""
    p, m = v.patch_size, v.spatial_merge_size
    rows, columns = image.shape[0] // p, image.shape[1] // p
    pixels = torch.tensor(image).float() / 127.5 - 1
    grid = pixels.view(rows // m, m, p, columns // m, m, p, 3)
    return grid.permute(0, 3, 1, 4, 6, 2, 5).flatten(0, 3).flatten(1), *places(rows, columns)


@functools.cache
def places(rows, columns):
    m = v.spatial_merge_size
    r, c = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    at = torch.stack([r, c], -1).view(rows // m, m, columns // m, m, 2).transpose(1, 2).flatten(0, 3)
    low, high, part = zip(*(along(at[:, a], n) for a, n in ((0, rows), (1, columns))))
    taps = [a * SIDE + b for a in (low[0], high[0]) for b in (low[1], high[1])]
    weights = [a * b for a in (1 - part[0], part[0]) for b in (1 - part[1], part[1])]
    return at, torch.stack(taps, -1), torch.stack(weights, -1)


def along(i, n):
    """The two table indices around patch i of n, and how far it is from the first."""
    s = i.float() * (SIDE - 1) / max(n - 1, 1)
    low = s.floor()
    return low.long(), (low.long() + 1).clamp(max=SIDE - 1), s - low


def turns(at):
    n = v.hidden_size // v.num_heads // 4
    inverse = 10000.0 ** (-torch.arange(n, dtype=torch.float64) / n)
    angle = torch.cat([at[:, :1] * inverse, at[:, 1:] * inverse], -1)
    return angle.cos().float()[:, None, None], angle.sin().float()[:, None, None]


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
