"""Image and video geometry: sizes, frames, time stamps, patches, positions."""
import math

import numpy as np


def round_half_even(x):
    return int(round(x))                     # Python's round: ties to even, as the processors use


def smart_resize_image(h, w, factor=32, min_pixels=65536, max_pixels=16777216):
    """The size to resize an image to: multiples of factor, pixel count within the limits."""
    if max(h, w) / min(h, w) > 200:
        raise ValueError("aspect ratio above 200")
    hb, wb = round_half_even(h / factor) * factor, round_half_even(w / factor) * factor
    if hb * wb > max_pixels:
        s = math.sqrt(h * w / max_pixels)
        hb = max(factor, math.floor(h / s / factor) * factor)
        wb = max(factor, math.floor(w / s / factor) * factor)
    elif hb * wb < min_pixels:
        s = math.sqrt(min_pixels / (h * w))
        hb, wb = math.ceil(h * s / factor) * factor, math.ceil(w * s / factor) * factor
    return hb, wb


def smart_resize_video(frames, h, w, tfactor=2, factor=32, min_pixels=4096, max_pixels=25165824):
    """The same for a video: the budgets count all frames together."""
    if frames < tfactor:
        raise ValueError("too few frames")
    if h < factor or w < factor:
        s = max(factor / h, factor / w)
        h, w = int(h * s), int(w * s)
    if max(h, w) / min(h, w) > 200:
        raise ValueError("aspect ratio above 200")
    hb, wb = round_half_even(h / factor) * factor, round_half_even(w / factor) * factor
    tb = round_half_even(frames / tfactor) * tfactor
    if tb * hb * wb > max_pixels:
        s = math.sqrt(frames * h * w / max_pixels)
        hb = max(factor, math.floor(h / s / factor) * factor)
        wb = max(factor, math.floor(w / s / factor) * factor)
    elif tb * hb * wb < min_pixels:
        s = math.sqrt(min_pixels / (frames * h * w))
        hb, wb = math.ceil(h * s / factor) * factor, math.ceil(w * s / factor) * factor
    return hb, wb


def sample_frames(total, src_fps, fps=2.0, lo=4, hi=768):
    """Indices of the frames kept."""
    n = int(total / src_fps * fps)
    n = min(max(n, lo), hi, total)
    return [int(i) for i in np.rint(np.linspace(0, total - 1, n))]


def frame_timestamps(indices, src_fps, tpatch=2):
    idx = list(indices)
    while len(idx) % tpatch:
        idx.append(idx[-1])
    t = [i / src_fps for i in idx]
    return [(t[i] + t[i + tpatch - 1]) / 2 for i in range(0, len(t), tpatch)]


def bicubic_resize_u8(img, out_h, out_w):
    """Pillow's 8-bit bicubic (a = -0.5, antialiased, horizontal pass first, 8-bit between passes)."""
    PREC = 32 - 8 - 2

    def coeffs(n_in, n_out):
        scale = n_in / n_out
        fs = max(scale, 1.0)
        sup = 2.0 * fs
        rows = []
        for o in range(n_out):
            c = (o + 0.5) * scale
            lo = max(0, int(c - sup + 0.5))
            hi = min(n_in, int(c + sup + 0.5))
            x = np.abs((np.arange(lo, hi) - c + 0.5) / fs)
            k = np.where(x < 1, ((1.5 * x - 2.5) * x) * x + 1,
                         np.where(x < 2, (((x - 5) * x + 8) * x - 4) * -0.5, 0.0))
            k = k / k.sum()
            q = np.where(k < 0, np.trunc(k * (1 << PREC) - 0.5), np.trunc(k * (1 << PREC) + 0.5)).astype(np.int64)
            rows.append((lo, q))
        return rows

    def one_pass(a, n_out):                   # along axis 1
        if n_out == a.shape[1]:
            return a
        out = np.empty((a.shape[0], n_out, a.shape[2]), np.uint8)
        for o, (lo, q) in enumerate(coeffs(a.shape[1], n_out)):
            acc = np.tensordot(a[:, lo:lo + len(q)].astype(np.int64), q, ([1], [0])) + (1 << (PREC - 1))
            out[:, o] = np.clip(acc >> PREC, 0, 255)
        return out

    a = one_pass(np.ascontiguousarray(img), out_w)
    return one_pass(a.transpose(1, 0, 2), out_h).transpose(1, 0, 2)


def normalise(img_u8):
    """rescale by 1/255, then (x - 0.5) / 0.5; float32 result in [-1, 1]."""
    return ((img_u8.astype(np.float64) / 255.0 - 0.5) / 0.5).astype(np.float32)


def patchify(frames, patch=16, tpatch=2, merge=2):
    """Frames to rows of the patch embedding.  frames [F, Hpx, Wpx, 3] already normalised.  A still image is F = 1.

    Returns patches [t*h*w, 3*tpatch*patch*patch] and the grid (t, h, w).
    """
    f = np.asarray(frames)
    while f.shape[0] % tpatch:
        f = np.concatenate([f, f[-1:]])
    t, h, w = f.shape[0] // tpatch, f.shape[1] // patch, f.shape[2] // patch
    rows = []
    for ti in range(t):
        clip = f[ti * tpatch:(ti + 1) * tpatch].transpose(3, 0, 1, 2)          # C, tp, H, W
        for r, c in zip(*block_order(h, w, merge)):
            rows.append(clip[:, :, r * patch:(r + 1) * patch, c * patch:(c + 1) * patch].reshape(-1))
    return np.stack(rows), (t, h, w)


def block_order(h, w, merge):
    """Row and column of each patch of one frame: merge x merge blocks, row major in and between."""
    r, c = [], []
    for br in range(h // merge):
        for bc in range(w // merge):
            for ir in range(merge):
                for ic in range(merge):
                    r.append(br * merge + ir)
                    c.append(bc * merge + ic)
    return np.array(r), np.array(c)


def patch_coords(grids, merge):
    out = []
    for t, h, w in grids:
        r, c = block_order(h, w, merge)
        out.append(np.tile(np.stack([r, c], -1), (t, 1)))
    return np.concatenate(out).astype(np.float64)


def pos_embed_taps(grids, side, merge):
    """Four table rows and weights per patch (align-corners bilinear)."""
    idx, wts = [], []
    for t, h, w in grids:
        r, c = block_order(h, w, merge)

        def axis(i, n):
            # the source coordinate is a float32 value in the reference implementation
            s = np.asarray(i, np.float32) * np.float32(side - 1) / np.float32(max(n - 1, 1))
            lo = np.floor(s)
            f = s - lo
            lo = lo.astype(np.int64)
            return lo, np.minimum(lo + 1, side - 1), f

        r0, r1, fr = axis(r, h)
        c0, c1, fc = axis(c, w)
        i = np.stack([r0 * side + c0, r0 * side + c1, r1 * side + c0, r1 * side + c1], -1)
        k = np.stack([(1 - fr) * (1 - fc), (1 - fr) * fc, fr * (1 - fc), fr * fc], -1)
        idx.append(np.tile(i, (t, 1)))
        wts.append(np.tile(k, (t, 1)))
    return np.concatenate(idx), np.concatenate(wts)


def rope_positions(cfg, ids, image_grids=(), video_grids=()):
    """Three-axis positions of a prompt: positions [3, T] and the offset for tokens generated afterwards."""
    merge = cfg.vision["merge"] if cfg.vision else 2
    images = [tuple(g) for g in image_grids]
    frames = [(1, h, w) for t, h, w in video_grids for _ in range(t)]
    out, nxt, i = [], 0, 0
    ids = list(ids)
    while i < len(ids):
        if ids[i] in (cfg.image_id, cfg.video_id):
            t, h, w = (images if ids[i] == cfg.image_id else frames).pop(0)
            h, w = h // merge, w // merge
            for tt in range(t):
                for r in range(h):
                    for c in range(w):
                        out.append((nxt + tt, nxt + r, nxt + c))
            i += t * h * w
            nxt += max(h, w)
        else:
            out.append((nxt,) * 3)
            nxt += 1
            i += 1
    pos = np.array(out, np.int64).T
    return pos, int(pos.max()) + 1 - len(ids)
