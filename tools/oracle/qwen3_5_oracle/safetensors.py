"""Safetensors in NumPy: bfloat16 and float8 bit patterns, reader, writer, checkpoint directories.

Values come back as float32 (exact for BF16, F16 and F8_E4M3).  No limits are enforced here: these
files are our own.  The engine's reader is the one that must survive hostile input.
"""
import json
import os
import struct

import numpy as np

_PLAIN = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
          "I8": "i1", "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?"}


def to_bf16_bits(x):
    """float32 -> bfloat16 bit pattern, round to nearest, ties to even."""
    u = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(b):
    return (b.astype(np.uint32) << 16).view(np.float32)


def bf16(x):
    """Value rounded to the nearest bfloat16, returned as float32."""
    return from_bf16_bits(to_bf16_bits(x)).reshape(np.shape(x))


def _e4m3_table():
    t = np.zeros(256, np.float32)
    for i in range(256):
        s, e, m = i >> 7, (i >> 3) & 15, i & 7
        if e == 15 and m == 7:
            v = float("nan")
        elif e == 0:
            v = m / 8.0 * 2.0 ** -6
        else:
            v = (1 + m / 8.0) * 2.0 ** (e - 7)
        t[i] = -v if s else v
    return t


E4M3 = _e4m3_table()          # the "fn" flavour: no infinities, largest finite value 448


def to_e4m3_bits(x):
    """Round to nearest (ties to even mantissa) onto finite E4M3FN values, saturating at 448."""
    grid = E4M3[:127].astype(np.float64)              # 0 .. 448, increasing
    a = np.minimum(np.abs(np.asarray(x, np.float64)), 448.0)
    hi = np.clip(np.searchsorted(grid, a), 1, 126)
    lo = hi - 1
    dl, dh = a - grid[lo], grid[hi] - a
    pick = np.where(dl < dh, lo, np.where(dh < dl, hi, np.where(lo % 2 == 0, lo, hi)))
    pick = np.where(a == 0, 0, pick)
    return (pick + 128 * (np.signbit(x))).astype(np.uint8)


def read_safetensors(path, raw=False):
    """name -> array.  BF16 and F8_E4M3 come back as float32 unless raw."""
    with open(path, "rb") as f:
        blob = f.read()
    n = struct.unpack("<Q", blob[:8])[0]
    head = json.loads(blob[8:8 + n])
    head.pop("__metadata__", None)
    out = {}
    for name, d in head.items():
        a, b = d["data_offsets"]
        buf = blob[8 + n + a:8 + n + b]
        kind = d["dtype"]
        if kind == "BF16":
            v = np.frombuffer(buf, "<u2")
            v = v if raw else from_bf16_bits(v)
        elif kind == "F8_E4M3":
            v = np.frombuffer(buf, np.uint8)
            v = v if raw else E4M3[v]
        else:
            v = np.frombuffer(buf, _PLAIN[kind])
        out[name] = v.reshape(d["shape"])
    return out


class BF16(np.ndarray):
    """Marker type: write this float array as BF16."""


class F8(np.ndarray):
    """Marker type: write this uint8 array as F8_E4M3."""


def as_bf16(x):
    return bf16(x).view(BF16)


def write_safetensors(path, tensors, metadata=None):
    kind_of = {np.dtype(v): k for k, v in _PLAIN.items()}
    head, chunks, pos = {}, [], 0
    if metadata:
        head["__metadata__"] = {k: str(v) for k, v in metadata.items()}
    for name in sorted(tensors):
        a = tensors[name]
        if isinstance(a, BF16):
            kind, buf = "BF16", to_bf16_bits(np.asarray(a)).tobytes()
        elif isinstance(a, F8):
            kind, buf = "F8_E4M3", np.asarray(a).tobytes()
        else:
            a = np.ascontiguousarray(a)
            kind, buf = kind_of[a.dtype], a.tobytes()
        head[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [pos, pos + len(buf)]}
        chunks.append(buf)
        pos += len(buf)
    js = json.dumps(head, separators=(",", ":")).encode()
    js += b" " * (-len(js) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(js)))
        f.write(js)
        for c in chunks:
            f.write(c)


def load_checkpoint(directory):
    """All tensors of a directory; understands one file or an index over shards.

    Block-quantised FP8 linears (weight + weight_scale_inv) are expanded to float32 here.
    """
    idx = os.path.join(directory, "model.safetensors.index.json")
    if os.path.exists(idx):
        files = sorted(set(json.load(open(idx))["weight_map"].values()))
    else:
        files = ["model.safetensors"]
    w = {}
    for f in files:
        w.update(read_safetensors(os.path.join(directory, f)))
    for name in [n for n in w if n.endswith(".weight_scale_inv")]:
        base = name[:-len("_scale_inv")]
        w[base] = dequant_fp8_block(w[base], w.pop(name))
    return w


def dequant_fp8_block(w, scale, block=128):
    """Despite its name (weight_scale_inv) the scale MULTIPLIES; ragged last blocks are allowed."""
    s = np.repeat(np.repeat(scale, block, 0), block, 1)[:w.shape[0], :w.shape[1]]
    return (w.astype(np.float32) * s.astype(np.float32)).astype(np.float32)


def quant_fp8_block(w, block=128, scale_bf16=True):
    """The usual inverse: one scale per block = amax / 448."""
    rows, cols = -(-w.shape[0] // block), -(-w.shape[1] // block)
    q = np.zeros(w.shape, np.uint8)
    s = np.zeros((rows, cols), np.float32)
    for i in range(rows):
        for j in range(cols):
            sl = np.s_[i * block:(i + 1) * block, j * block:(j + 1) * block]
            v = max(float(np.abs(w[sl]).max()), 1e-12) / 448.0
            s[i, j] = bf16(np.float32(v)) if scale_bf16 else v
            q[sl] = to_e4m3_bits(w[sl] / s[i, j])
    return q, s
