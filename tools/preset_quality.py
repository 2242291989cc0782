#!/usr/bin/env python3
"""What a preset costs in quality: its logits against those of bf16 on held-out generated conversations.

    python tools/preset_quality.py [--model DIR] [--cases N] [--length TOKENS] PRESET [PRESET ...]

DIR reads the text of models/tiny (the default). A PRESET is a preset name or a packed directory. Rows are compared where the model
answers. Prints per preset: the mean Kullback-Leibler divergence of the next-token distribution from bf16 (nats), how often
the likeliest token is the same, and the perplexity of the text. Needs the requirements of tools/tiny-model.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tools" / "tiny-model"), str(ROOT / "tools" / "oracle")]

from qwen3_5_oracle import read_safetensors  # noqa: E402
from render import Renderer  # noqa: E402
from stream import conversations  # noqa: E402


def texts(cases, length):
    """(ids, mask of the tokens the model answered) of held-out conversations without pictures."""
    renderer = Renderer()
    for conversation in conversations("held-out quality", length, None, renderer.count, split="held-out"):
        if conversation.images:
            continue
        example = renderer.example(conversation)
        if cases == 0:
            return
        cases -= 1
        yield list(map(int, example.ids)), np.asarray(example.weights) == 1


def log_probabilities(program, model, preset, ids):
    with tempfile.TemporaryDirectory() as folder:
        prompt, out = Path(folder) / "ids", Path(folder) / "logits.safetensors"
        prompt.write_text(",".join(map(str, ids)))
        packed = Path(preset).is_dir()
        flags = [] if packed else ["--preset", preset]
        subprocess.run([program, "score", preset if packed else model, "--token-ids-file", prompt, "--logits-out", out,
                        "--quiet", *flags], check=True, stdout=subprocess.DEVNULL)
        logits = read_safetensors(out)["logits"].astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("presets", nargs="+")
    ap.add_argument("--model", default=str(ROOT / "models" / "tiny"))
    ap.add_argument("--program", default=str(ROOT / "build" / "release" / "sluice"))
    ap.add_argument("--cases", type=int, default=40)
    ap.add_argument("--length", type=int, default=512)
    args = ap.parse_args()
    sums = {preset: np.zeros(3) for preset in ("bf16", *args.presets)}
    rows_total = 0
    for ids, answered in texts(args.cases, args.length):
        rows = np.nonzero(answered[1:])[0]  # row i predicts token i + 1
        targets = np.asarray(ids)[rows + 1]
        exact = log_probabilities(args.program, args.model, "bf16", ids)[rows]
        rows_total += len(rows)
        for preset in sums:
            ours = exact if preset == "bf16" else log_probabilities(args.program, args.model, preset, ids)[rows]
            sums[preset] += ((np.exp(exact) * (exact - ours)).sum(), (ours.argmax(-1) == exact.argmax(-1)).sum(),
                             -ours[np.arange(len(rows)), targets].sum())
    print(f"{args.cases} conversations, {rows_total} answered tokens")
    for preset, (divergence, agreed, likelihood) in sums.items():
        print(f"{preset:12} KL {divergence / rows_total:.5f}  same token {100 * agreed / rows_total:.2f} %  "
              f"perplexity {np.exp(likelihood / rows_total):.4f}")


if __name__ == "__main__":
    main()
