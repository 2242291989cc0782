"""Writes a random checkpoint of any shape of the family, for load and speed measurements.

    python3 tools/random-model/make_model.py --preset 0.8b --out DIR [--seed S] [--layers N]

NumPy only.  Tensors are streamed: memory stays below 200 MB whatever the size.  Matrices are windows
into pools of normal numbers, so writing runs at the speed of the disk; the numbers are scaled so that
a forward pass stays in range (the same rules as the oracle's random weights).  The result is
deterministic in (shape, seed).  There is no tokenizer in it: use --token-ids, or copy one there.
"""
import argparse
import json
import math
import os
import shutil
import struct
import sys
import time
import zlib

import numpy as np

from shapes import PRESETS, byte_count, list_tensors, make_config

# Values per pool. Prime: rows of a matrix are then distinct windows for any row length.
POOL_VALUES = 4194301
# The key rows of in_proj_qkv are 0.8 query + 0.6 other, the other one being this far along the pool.
KEY_SHIFT = 1048573


def bf16_bits(x):
    """float -> bfloat16 bit pattern, round to nearest, ties to even."""
    u = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((u + (0x7FFF + ((u >> 16) & 1))) >> 16).astype("<u2")


class Pools:
    """bfloat16 pools by (kind, scale).  Embedding rows come from other numbers than weight rows: a
    weight row equal to an embedding row would be a detector of that token and blow up activations."""

    def __init__(self, seed):
        self.base = {kind: np.random.default_rng([seed, i]).standard_normal(POOL_VALUES, np.float32)
                     for i, kind in enumerate(("matrix", "embedding"))}
        self.base["key"] = (np.float32(0.8) * self.base["matrix"]
                            + np.float32(0.6) * np.roll(self.base["matrix"], -KEY_SHIFT))
        self.scaled = {}

    def get(self, kind, scale):
        key = (kind, scale)
        if key not in self.scaled:
            self.scaled[key] = bf16_bits(self.base[kind] * np.float32(scale))
        return self.scaled[key]


def write_window(f, pool, start, count):
    """count values of the endlessly repeated pool, from start on."""
    start %= POOL_VALUES
    while count:
        n = min(count, POOL_VALUES - start)
        f.write(memoryview(pool[start:start + n]).cast("B"))
        start, count = 0, count - n


def write_tensor(f, tensor, pools, seed):
    """The values of one tensor, at the file's position."""
    rng = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
    start = int(rng.integers(POOL_VALUES))
    kind, *args = tensor.fill
    rows, inputs = tensor.shape[0], math.prod(tensor.shape[1:])
    if kind == "matrix":
        write_window(f, pools.get("matrix", args[0] / math.sqrt(inputs)), start, rows * inputs)
    elif kind == "embedding":
        scale = 2 / math.sqrt(inputs) if args[0] else 1.0  # args[0]: the table is the head, too
        write_window(f, pools.get("embedding", scale), start, rows * inputs)
    elif kind == "qkv":
        # Keys share most of their direction with the queries, as in trained models.
        scale, part = 1 / math.sqrt(inputs), args[0] * inputs
        write_window(f, pools.get("matrix", scale), start, part)
        write_window(f, pools.get("key", scale), start, part)
        write_window(f, pools.get("matrix", scale), start + part, rows * inputs - 2 * part)
    else:
        f.write(small_tensor(tensor, rng).tobytes())


def small_tensor(tensor, rng):
    kind, *args = tensor.fill
    if kind == "normal":
        v = args[0] + args[1] * rng.standard_normal(tensor.shape)
    elif kind == "conv":
        v = 0.3 * rng.standard_normal(tensor.shape)
        v[..., -1] += 1.0
    elif kind == "a_log":
        v = rng.uniform(math.log(0.02), math.log(8.0), tensor.shape)
    else:  # dt_bias
        v = rng.uniform(-4.0, 1.0, tensor.shape)
    return v.astype("<f4") if tensor.dtype == "F32" else bf16_bits(v)


def split_shards(tensors, shard_bytes_max):
    shards, room = [[]], shard_bytes_max
    for t in tensors:
        if shards[-1] and byte_count(t) > room:
            shards.append([])
            room = shard_bytes_max
        shards[-1].append(t)
        room -= byte_count(t)
    return shards


def header_of(tensors):
    head, pos = {"__metadata__": {"format": "pt"}}, 0
    for t in tensors:
        n = byte_count(t)
        head[t.name] = {"dtype": t.dtype, "shape": list(t.shape), "data_offsets": [pos, pos + n]}
        pos += n
    js = json.dumps(head, separators=(",", ":")).encode()
    js += b" " * (-len(js) % 8)
    return struct.pack("<Q", len(js)) + js


def write_shard(path, tensors, pools, seed):
    """Written under another name first: a file with its final name is complete."""
    with open(path + ".partial", "wb") as f:
        f.write(header_of(tensors))
        for t in tensors:
            write_tensor(f, t, pools, seed)
    os.replace(path + ".partial", path)


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1)


def write_model(out, config, state_dtype, seed, shard_bytes_max):
    tensors = list_tensors(config, state_dtype)
    total = sum(map(byte_count, tensors))
    os.makedirs(out, exist_ok=True)
    free = shutil.disk_usage(out).free
    if free < total + (1 << 28):
        sys.exit(f"{out}: {total / 1e9:.1f} GB needed, {free / 1e9:.1f} GB free")
    pools, begin = Pools(seed), time.monotonic()
    shards = split_shards(tensors, shard_bytes_max) if shard_bytes_max else [tensors]
    names = (["model.safetensors"] if len(shards) == 1 else
             [f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors" for i in range(len(shards))])
    for name, part in zip(names, shards):
        write_shard(os.path.join(out, name), part, pools, seed)
        print(f"{name}: {len(part)} tensors, {sum(map(byte_count, part)) / 1e9:.2f} GB", flush=True)
    if len(shards) > 1:
        weight_map = {t.name: n for n, part in zip(names, shards) for t in part}
        write_json(os.path.join(out, "model.safetensors.index.json"),
                   {"metadata": {"total_size": total}, "weight_map": weight_map})
    write_json(os.path.join(out, "config.json"), config)
    write_json(os.path.join(out, "generation_config.json"),
               dict(bos_token_id=248044, do_sample=True, eos_token_id=[248046, 248044], pad_token_id=248044,
                    temperature=1.0, top_k=20, top_p=0.95))
    seconds = time.monotonic() - begin
    print(f"{len(tensors)} tensors, {total} bytes in {seconds:.1f} s ({total / seconds / 1e9:.2f} GB/s)")


def parse_overrides(pairs):
    out = {}
    for pair in pairs:
        key, eq, value = pair.partition("=")
        if not eq:
            raise ValueError(f"--set {pair}: want FIELD=VALUE")
        out[key] = json.loads(value)
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--preset", choices=list(PRESETS), default="0.8b")
    ap.add_argument("--out", required=True, metavar="DIR")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--layers", type=int, metavar="N", help="this many layers instead of the preset's")
    ap.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE",
                    help="another value for a field of text_config, e.g. hidden_size=96 (repeatable)")
    ap.add_argument("--mtp", action="store_true", help="with the MTP layer")
    ap.add_argument("--vision", action="store_true", help="with the vision tower")
    ap.add_argument("--shard-gb", type=float, default=0, metavar="N", help="cut into files of at most N GB")
    args = ap.parse_args()
    try:
        overrides = parse_overrides(args.set)
        if args.layers:
            overrides["num_hidden_layers"] = args.layers
        config = make_config(args.preset, overrides, args.mtp, args.vision)
    except ValueError as e:
        ap.error(str(e))
    write_model(args.out, config, PRESETS[args.preset][2], args.seed, int(args.shard_gb * 1e9))


if __name__ == "__main__":
    main()
