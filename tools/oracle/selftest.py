"""Numerical self checks of the oracle (seconds): python3 tools/oracle/selftest.py

Two forms of the delta rule against each other, whole models cut into pieces against one shot, the
MTP head, the axis table of the rotary embedding, the FP8 round trip, and the vision tower.
"""
import numpy as np

from qwen3_5_oracle.config import Config
from qwen3_5_oracle.delta_rule import delta_chunked, delta_recurrent
from qwen3_5_oracle.functions import mrope_axis
from qwen3_5_oracle.geometry import patchify
from qwen3_5_oracle.model import Model
from qwen3_5_oracle.random_weights import plain, random_weights
from qwen3_5_oracle.safetensors import E4M3, dequant_fp8_block, quant_fp8_block


def selftest():
    rng = np.random.default_rng(1)
    T, nk, nv, d = 200, 2, 6, 32
    q, k = rng.standard_normal((2, T, nk, d))
    v = rng.standard_normal((T, nv, d))
    beta = rng.uniform(0, 1, (T, nv))
    g = -np.exp(rng.uniform(-7, 3, (T, nv)))
    S0 = rng.standard_normal((nv, d, d))
    a, Sa = delta_recurrent(q, k, v, g, beta, S0)
    for chunk in (64, 16, 7):
        b, Sb = delta_chunked(q, k, v, g, beta, S0, chunk)
        print(f"delta rule, chunk {chunk:3d} vs recurrent: out {abs(a - b).max():.1e}  state {abs(Sa - Sb).max():.1e}")
        assert abs(a - b).max() < 1e-10 and abs(Sa - Sb).max() < 1e-10

    raw = {"text_config": dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=4,
                               num_attention_heads=4, num_key_value_heads=2, head_dim=32,
                               linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=16,
                               linear_value_head_dim=16, mtp_num_hidden_layers=1,
                               rope_parameters=dict(rope_theta=1e7, partial_rotary_factor=0.25,
                                                    mrope_section=[2, 1, 1]))}
    w = plain(random_weights(raw, 3))
    m1, m2 = (Model(Config(raw), w, chunked=c) for c in (True, False))
    ids = rng.integers(0, 64, 100)
    h1, _ = m1.forward(ids)
    h2, _ = m2.forward(ids)
    print(f"whole model, chunked vs recurrent: {abs(h1 - h2).max():.1e}")
    assert abs(h1 - h2).max() < 1e-9
    parts, cache = [], None
    for s, e in ((0, 37), (37, 38), (38, 90), (90, 100)):
        h, cache = m1.forward(ids[s:e], cache=cache)
        parts.append(h)
    d = abs(np.concatenate(parts) - h1).max()
    print(f"prefill in pieces with caches vs one shot: {d:.1e}")
    assert d < 1e-9
    pos = np.tile(np.arange(99), (3, 1))
    a, _ = m1.mtp(ids[1:], h1[:-1], pos)
    b1, c = m1.mtp(ids[1:60], h1[:59], pos[:, :59])
    b2, c = m1.mtp(ids[60:], h1[59:-1], pos[:, 59:], c)
    d = abs(a - np.concatenate([b1, b2])).max()
    b3, _ = m1.mtp(ids[1:], h1[:-1], pos + 5)
    print(f"MTP in pieces vs one shot: {d:.1e}; positions shifted by a constant: {abs(a - b3).max():.1e}")
    assert d < 1e-9 and abs(a - b3).max() < 1e-9
    real = Config({"text_config": {}})
    ax = mrope_axis(real)
    assert [int((ax == i).sum()) for i in range(3)] == [11, 11, 10] and list(ax[:6]) == [0, 1, 2, 0, 1, 2] and ax[31] == 1
    x = rng.standard_normal((70, 130)) * 3
    qq, ss = quant_fp8_block(x)
    print(f"fp8 block round trip, worst relative error: {(abs(dequant_fp8_block(E4M3[qq], ss) - x) / abs(x).max()).max():.3f}")
    check_vision(rng)
    print("ok")


def check_vision(rng):
    """Two pictures at once must give the rows of one by one: segments do not see each other."""
    text = dict(vocab_size=32, hidden_size=32, intermediate_size=32, num_hidden_layers=1, tie_word_embeddings=True,
                num_attention_heads=2, num_key_value_heads=1, head_dim=32, linear_num_key_heads=1,
                linear_num_value_heads=1, linear_key_head_dim=16, linear_value_head_dim=16)
    vision = dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=4, out_hidden_size=32,
                  num_position_embeddings=64)
    raw = dict(text_config=text, vision_config=vision)
    model = Model(Config(raw), plain(random_weights(raw, 5)))
    (a, ga), (b, gb) = (patchify(rng.standard_normal((1, h, w, 3))) for h, w in ((64, 32), (32, 96)))
    both = model.vision(np.concatenate([a, b]), [ga, gb])
    d = abs(both - np.concatenate([model.vision(a, [ga]), model.vision(b, [gb])])).max()
    print(f"vision tower, two pictures at once vs one by one: {d:.1e}")
    assert d < 1e-12


if __name__ == "__main__":
    selftest()
