"""The vision tower: patches to the rows that replace the embeddings of placeholder tokens."""
import math

import numpy as np

from .functions import gelu_erf, gelu_tanh, layer_norm, rotate, softmax
from .geometry import patch_coords, pos_embed_taps


class VisionTower:
    """Mixed into Model: uses its weights w, cfg, dtype, lin() and embed()."""

    vroot = "model.visual."

    def vision(self, patches, grids, capture=None):
        """Rows for the placeholders.  patches [N, C*tp*p*p] in processor order, grids [(t,h,w), ...]."""
        v, p, dt = self.cfg.vision, self.vroot, self.dtype
        cap = (lambda n, a: None) if capture is None else (lambda n, a: capture.__setitem__(n, np.array(a)))
        wp = self.w[p + "patch_embed.proj.weight"].reshape(v["hidden"], -1)
        x = np.asarray(patches, dt) @ wp.T + self.w[p + "patch_embed.proj.bias"]
        cap("vision.patch_embed", x)
        idx, wt = pos_embed_taps(grids, int(v["npos"] ** 0.5), v["merge"])
        pe = (self.w[p + "pos_embed.weight"][idx] * wt.astype(dt)[..., None]).sum(1)
        cap("vision.pos_embed", pe)
        x = x + pe
        hw = patch_coords(grids, v["merge"])
        d = v["hidden"] // v["heads"]
        n = d // 4
        inv = 1.0 / v["theta"] ** (np.arange(n, dtype=np.float64) * 2 / (d // 2))
        ang = np.concatenate([hw[:, :1] * inv, hw[:, 1:] * inv], -1)          # [N, d/2]
        cos, sin = np.cos(ang).astype(dt), np.sin(ang).astype(dt)
        cap("vision.rope_angle", ang)
        seg = [h * w for t, h, w in grids for _ in range(t)]                  # one segment per frame
        for i in range(v["depth"]):
            b = f"{p}blocks.{i}."
            h = layer_norm(x, self.w[b + "norm1.weight"], self.w[b + "norm1.bias"])
            qkv = self.lin(h, b + "attn.qkv").reshape(-1, 3, v["heads"], d)
            q, k, u = rotate(qkv[:, 0], cos, sin), rotate(qkv[:, 1], cos, sin), qkv[:, 2]
            o = np.empty_like(u)
            s0 = 0
            for L in seg:
                s = np.s_[s0:s0 + L]
                a = softmax(np.einsum("ihd,jhd->hij", q[s], k[s]) / math.sqrt(d))
                o[s] = np.einsum("hij,jhd->ihd", a, u[s])
                s0 += L
            x = x + self.lin(o.reshape(-1, v["hidden"]), b + "attn.proj")
            h = layer_norm(x, self.w[b + "norm2.weight"], self.w[b + "norm2.bias"])
            x = x + self.lin(gelu_tanh(self.lin(h, b + "mlp.linear_fc1")), b + "mlp.linear_fc2")
            cap(f"vision.block.{i}", x)
        x = layer_norm(x, self.w[p + "merger.norm.weight"], self.w[p + "merger.norm.bias"])
        x = x.reshape(-1, v["hidden"] * v["merge"] ** 2)
        x = self.lin(gelu_erf(self.lin(x, p + "merger.linear_fc1")), p + "merger.linear_fc2")
        cap("vision.out", x)
        return x

    def splice(self, ids, image_feats=None, video_feats=None):
        """Token embeddings with the placeholder rows replaced, in order."""
        ids = np.asarray(ids)
        x = self.embed(ids).copy()
        for tok, f in ((self.cfg.image_id, image_feats), (self.cfg.video_id, video_feats)):
            if f is not None:
                rows = np.flatnonzero(ids == tok)
                if len(rows) != len(f):
                    raise ValueError(f"{len(rows)} placeholder tokens for {len(f)} features")
                x[rows] = f
        return x
