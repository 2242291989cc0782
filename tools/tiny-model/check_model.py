"""Checks a model directory against transformers and against the NumPy oracle.

    python tools/tiny-model/check_model.py models/tiny

Compares logits of a text prompt and of a prompt with two images, greedy tokens, and the draft head's
logits (transformers has no draft head), in float32; the pixels go through Pillow's bicubic resize as in
the image processor. Fails where the root mean square of a difference is above 0.001.
"""
import argparse
import os
import sys

import numpy as np
import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

import config  # noqa: E402
import reference  # noqa: E402
from generate import AttentionSlot, load  # noqa: E402
from model import EMBED  # noqa: E402
from pictures import preprocess  # noqa: E402
from qwen3_5_oracle import geometry  # noqa: E402
from qwen3_5_oracle.model import Model  # noqa: E402

BOUND = 1e-3
TEXT_TOKENS, NEW_TOKENS = 150, 12


def image_prompt(rng):
    """Two noisy images of sizes that need a resize, and the ids with a run of <|image_pad|> for each."""
    images = [np.kron(rng.integers(0, 256, (h // 8, w // 8, 3)), np.ones((8, 8, 1))).astype(np.uint8)
              for h, w in ((200, 328), (296, 240))]
    ids = list(rng.integers(300, 1900, 9))
    for image in map(preprocess, images):
        pads = image.shape[0] * image.shape[1] // 1024
        ids += [config.CONFIG["vision_start_token_id"], *[config.IMAGE_PAD] * pads,
                config.CONFIG["vision_end_token_id"], *rng.integers(300, 1900, 5)]
    return [int(i) for i in ids], images


def ours(model, ids, images):
    """Logits of the prompt, greedy tokens after it, logits of the first drafts in the prompt."""
    made, inputs, hidden, positions = model.run(ids, images, NEW_TOKENS)
    T = len(ids)
    with torch.no_grad():
        x = model.mtp(inputs[:, 1:T], hidden[:, :T - 1], positions[:T - 1], AttentionSlot())
        drafts = reference.norm(x, model.w["mtp.norm.weight"]) @ model.w[EMBED].T
        return (hidden[0, :T] @ model.w[EMBED].T).numpy(), made, drafts[0].numpy()


def oracles(model, ids, images):
    grids, rows = [], []
    for image in map(preprocess, images):
        patches, grid = geometry.patchify(geometry.normalise(image)[None])
        grids.append(grid), rows.append(patches)
    features = model.vision(np.concatenate(rows), grids) if images else None
    x = model.splice(ids, features)
    positions, delta = geometry.rope_positions(model.cfg, ids, grids)
    h, _ = model.forward(embeds=x, pos=positions)
    made = model.greedy(ids, NEW_TOKENS, embeds=x, pos=positions, delta=delta)[0]
    mixed = model.n1(x[1:], "mtp.pre_fc_norm_embedding"), model.n1(h[:-1], "mtp.pre_fc_norm_hidden")
    d, _ = model.block(model.lin(np.concatenate(mixed, -1), "mtp.fc"), "mtp.layers.0.", "full_attention", None,
                       positions[:, :-1], lambda name, value: None)
    return model.head(h), made, model.head(model.n1(d, "mtp.norm"))


def transformers_logits(model, ids, images):
    arguments = dict(input_ids=torch.tensor([ids]))
    if images:
        from PIL import Image
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
        p = config.PREPROCESSOR
        processor = Qwen2VLImageProcessorPil(size=p["size"], patch_size=p["patch_size"], merge_size=p["merge_size"],
                                             image_mean=p["image_mean"], image_std=p["image_std"])
        arguments |= processor([Image.fromarray(image) for image in images], return_tensors="pt")
        arguments["mm_token_type_ids"] = (arguments["input_ids"] == config.IMAGE_PAD).int()
    with torch.no_grad():
        logits = model(**arguments).logits[0].numpy()
        made = model.generate(**arguments, max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=-1)
    return logits, made[0, len(ids):].tolist()


def compare(what, a, b):
    difference = np.asarray(a, np.float64) - b
    rms = np.sqrt((difference ** 2).mean())
    print(f"{what}: rms {rms:.1e}, largest {np.abs(difference).max():.1e}, logits' spread {np.std(b):.2f}")
    return rms < BOUND


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("directory")
    directory = ap.parse_args().directory
    from transformers import Qwen3_5ForConditionalGeneration
    other = Qwen3_5ForConditionalGeneration.from_pretrained(directory, dtype=torch.float32).eval()
    model, oracle = load(directory, exact=True), Model.load(directory)
    rng = np.random.default_rng(0)
    good = True
    for name, (ids, images) in dict(text=([int(i) for i in rng.integers(300, 1900, TEXT_TOKENS)], []),
                                    images=image_prompt(rng)).items():
        logits, made, drafts = ours(model, ids, [preprocess(image) for image in images])
        true_logits, true_made, true_drafts = oracles(oracle, ids, images)
        their_logits, their_made = transformers_logits(other, ids, images)
        n = len(made)
        good &= compare(f"{name}, oracle", logits, true_logits)
        good &= compare(f"{name}, transformers", logits, their_logits)
        good &= compare(f"{name}, drafts, oracle", drafts, true_drafts)
        print(f"{name}, greedy: {made} {true_made[:n] == made and their_made[:n] == made}")
        good &= true_made[:n] == made and their_made[:n] == made
    sys.exit(not good)


if __name__ == "__main__":
    main()
