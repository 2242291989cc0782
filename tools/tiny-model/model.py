"""The model for training: layers, MTP head and losses, on a dict of tensors with the file's names.

w[name] are float32 weights, x [B, T, H] is the float32 residual stream; every sequence starts at its
first column. `ops` are the pieces of the layers: the module native (bfloat16 products, one thread) or
reference (plain PyTorch in the type of the weights).
"""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import config
from config import text as c
from vision import image_rows

ROOT = "model.language_model."
EMBED = ROOT + "embed_tokens.weight"
FINAL_NORM = ROOT + "norm.weight"
MTP = "mtp.layers.0."
LINEAR, FULL = "linear_attn.", "self_attn."
ROWS = 512


@dataclass
class Batch:
    ids: torch.Tensor        # [B, T], T a multiple of 64
    weights: torch.Tensor    # [B, T]: of predicting ids[:, t] from what is before
    positions: torch.Tensor  # [B, T, 3]
    images: list             # uint8 arrays, in order of appearance
    few: bool = False        # one long sequence: few weights, no MTP loss, little memory


def delta_layer(ops, w, p, x):
    a = p + LINEAR
    joint = ops.delta_linear(ops.norm(x, w[p + "input_layernorm.weight"]),
                             *(w[f"{a}in_proj_{part}.weight"] for part in ("qkv", "z", "b", "a")))
    y = ops.delta_core(joint, w[a + "conv1d.weight"], w[a + "A_log"], w[a + "dt_bias"], w[a + "norm.weight"])
    return feed_forward(ops, w, p, x + ops.linear(y, w[a + "out_proj.weight"]))


def attention_layer(ops, w, p, x, turns, rows=None):
    """turns: cos, sin. rows: the only rows of the (one) sequence to go on with."""
    q, k, v, gates = attention_in(ops, w, p, x, turns)
    at = torch.arange(x.shape[1]) if rows is None else rows
    if rows is not None:
        q, gates, x = q[:, rows], gates[:, rows], x[:, rows]
    o, _ = ops.attention(q, k, v, at)
    return attention_out(ops, w, p, x, gates, o)


def attention_in(ops, w, p, x, turns):
    joint = ops.linear(ops.norm(x, w[p + "input_layernorm.weight"]),
                       *(w[f"{p}{FULL}{part}_proj.weight"] for part in "qkv"))
    return ops.attention_in(joint, w[p + FULL + "q_norm.weight"], w[p + FULL + "k_norm.weight"], *turns)


def attention_out(ops, w, p, x, gates, o):
    return feed_forward(ops, w, p, x + ops.linear(ops.gate(gates, o), w[p + FULL + "o_proj.weight"]))


def feed_forward(ops, w, p, x):
    inner = ops.linear(ops.norm(x, w[p + "post_attention_layernorm.weight"]),
                       w[p + "mlp.gate_proj.weight"], w[p + "mlp.up_proj.weight"])
    return x + ops.linear(ops.swiglu(inner), w[p + "mlp.down_proj.weight"])


def rotary_tables(positions):
    """positions [..., 3] (time, height, width) -> cos, sin [..., 32]."""
    n = int(c.head_dim * config.ROPE["partial_rotary_factor"]) // 2
    axis = torch.zeros(n, dtype=torch.long)
    for a in (1, 2):
        axis[a:3 * config.ROPE["mrope_section"][a]:3] = a
    inverse = 1 / config.ROPE["rope_theta"] ** (torch.arange(n, dtype=torch.float64) / n)
    angle = positions[..., axis].double() * inverse
    return angle.cos().float(), angle.sin().float()


def embed(w, ids, images):
    x = F.embedding(ids, w[EMBED])
    if images:
        places = torch.nonzero(ids.flatten() == config.IMAGE_PAD)[:, 0]
        x = x.flatten(0, 1).index_copy(0, places, image_rows(w, images).float()).view(x.shape)
    return x


def layers(ops, w, x, turns, rows=None, save_memory=False):
    """The residual stream after the last layer, of all columns or (in the last layer) of `rows`."""
    for i, kind in enumerate(c.layer_types):
        layer, extra = delta_layer, ()
        if kind == "full_attention":
            layer, extra = attention_layer, (turns, rows if i == len(c.layer_types) - 1 else None)
        arguments = (ops, w, f"{ROOT}layers.{i}.", x, *extra)
        x = checkpoint(layer, *arguments, use_reentrant=False, preserve_rng_state=False) if save_memory \
            else layer(*arguments)
    return x


def mtp_input(ops, w, e, h):
    pair = torch.cat([ops.norm(e, w["mtp.pre_fc_norm_embedding.weight"]),
                      ops.norm(h, w["mtp.pre_fc_norm_hidden.weight"])], -1)
    return ops.linear(pair, w["mtp.fc.weight"]).to(h.dtype)


def mtp_second(ops, w, x, first, turns):
    """The second draft's layer. Column i of x comes of token i + 2 and the first draft's result at i.

    It stands one position on; it sees the keys of the first drafts (their inputs: first) up to column i,
    and its own.
    """
    one_on = [shift(t, 1) for t in turns]
    q, own_k, own_v, gates = attention_in(ops, w, MTP, x, one_on)
    _, k, v, _ = attention_in(ops, w, MTP, first, turns)
    o, sums = ops.attention(q, k, v, torch.arange(x.shape[1]))
    own = (q.float() * own_k[:, :, None].float()).sum(-1) * c.head_dim ** -0.5
    share = (own - sums).sigmoid()[..., None]
    o = (o * (1 - share) + own_v[:, :, None] * share).to(o.dtype)
    return attention_out(ops, w, MTP, x, gates, o)


def weighted_loss(ops, w, x, final, batch, ahead):
    """Of the places where column i predicts column i + ahead."""
    wanted = F.pad(batch.weights[:, ahead:], (0, ahead)).flatten()
    places = torch.nonzero(wanted)[:, 0]
    filled = F.pad(places, (0, -len(places) % ROWS))  # few sizes: products are compiled for each
    weights = wanted[filled]
    weights[len(places):] = 0
    targets = F.pad(batch.ids[:, ahead:], (0, ahead)).flatten()[filled]
    h = ops.norm(x.flatten(0, 1).index_select(0, filled), w[final])
    loss, losses = ops.cross_entropy(h, w[EMBED], targets, weights)
    return loss, losses[:len(places)]


def losses(ops, w, batch, drafts=1, detach=False):
    """Of the model, of the first and (drafts=2) of the second draft: weighted sum of losses, and the losses of
    all weighted places. detach: the draft losses do not reach the layers below.
    """
    with torch.autocast("cpu", torch.bfloat16, enabled=ops.LOW is torch.bfloat16):
        x = embed(w, batch.ids, batch.images)
    turns = rotary_tables(batch.positions)
    if batch.few:
        return [few_loss(ops, w, batch, x, turns)]
    e, x = x, layers(ops, w, x, turns)
    out = [weighted_loss(ops, w, x, FINAL_NORM, batch, 1)]
    if not drafts:
        return out
    if detach:
        e, x = e.detach(), x.detach()
    h = ops.norm(x, w[FINAL_NORM]).to(x.dtype)
    first = mtp_input(ops, w, shift(e, 1), h)
    x = attention_layer(ops, w, MTP, first, turns)
    out.append(weighted_loss(ops, w, x, "mtp.norm.weight", batch, 2))
    if drafts > 1:
        h = ops.norm(x, w["mtp.norm.weight"]).to(x.dtype)
        x = mtp_second(ops, w, mtp_input(ops, w, shift(e, 2), h), first, turns)
        out.append(weighted_loss(ops, w, x, "mtp.norm.weight", batch, 3))
    return out


def few_loss(ops, w, batch, x, turns):
    targets = torch.nonzero(batch.weights[0])[:, 0]
    fill = -len(targets) % 64
    rows = F.pad(targets - 1, (0, fill), value=x.shape[1] - 1)
    x = layers(ops, w, x, turns, rows, save_memory=True)[:, :len(targets)]
    return ops.cross_entropy(ops.norm(x[0], w[FINAL_NORM]), w[EMBED], batch.ids[0, targets], batch.weights[0, targets])


def shift(x, n):
    """Column i becomes column i + n; the last ones, which nothing reads, are repeated."""
    return torch.cat([x[:, n:], x[:, -n:]], 1)
