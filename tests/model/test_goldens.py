"""The program's logits and greedy tokens against both references, and every way of loading weights."""
import json

import numpy as np
import pytest
from model_runs import (GOLDEN_NAMES, GOLDENS, ISAS, LARGEST_MAX, MODELS, RMS_MAX, difference, generate, golden,
                        is_fp8_module, joined, known_ids, logits_of, random_ids, run, score, score_file, write_model)

from qwen3_5_oracle import Config, Model, load_checkpoint, read_safetensors, write_safetensors
from qwen3_5_oracle.random_weights import random_weights
from qwen3_5_oracle.safetensors import BF16, F8, as_bf16, quant_fp8_block

def check_close(ours, expected, label):
    rms, largest = difference(ours, expected)
    figures = f"{label}: rms {rms:.4f} (limit {RMS_MAX}), largest {largest:.4f} (limit {LARGEST_MAX})"
    print(figures)
    assert np.isfinite(ours).all(), label
    assert rms < RMS_MAX and largest < LARGEST_MAX, figures


@pytest.mark.parametrize("prompt", ["short", "long"])
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_greedy_tokens(name, prompt):
    info, _ = golden(name)
    expected = info[prompt]["greedy"]
    assert generate(GOLDENS / name, info[prompt]["prompt"], len(expected))["token_ids"] == expected


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_greedy_tokens_on_each_isa(name, isa):
    info, _ = golden(name)
    expected = info["short"]["greedy"]
    assert generate(GOLDENS / name, info["short"]["prompt"], len(expected), isa=isa)["token_ids"] == expected


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_logits_of_the_long_prompt(name):
    info, tensors = golden(name)
    check_close(score(GOLDENS / name, info["long"]["prompt"]), tensors["long.logits"], f"{name} long prompt")


@pytest.mark.parametrize("prompt", ["short", "long"])
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_logits_of_the_greedy_tokens(name, prompt):
    """Every step's logits, seen by scoring prompt and answer together."""
    info, tensors = golden(name)
    ids, tokens = info[prompt]["prompt"], info[prompt]["greedy"]
    ours = score(GOLDENS / name, ids + tokens[:-1])[len(ids) - 1:]
    assert ours.argmax(-1).tolist() == tokens
    check_close(ours, tensors[f"{prompt}.greedy_logits"], f"{name} {prompt} greedy")


def test_random_model_against_the_oracle():
    """Also: rows of the embedding without a token win in the logits but are never chosen."""
    directory = MODELS["random"]
    ids = random_ids("random", 62)
    model = Model.load(directory)
    logits = model.head(model.forward(ids)[0])
    check_close(score(directory, ids), logits, "random")
    known = known_ids("random")
    assert (logits.argmax(-1) >= known).any(), "the prompt does not show the case"
    prefix = ids[:1 + int(np.flatnonzero(logits.argmax(-1) >= known)[0])]
    chosen = generate(directory, prefix, 1)["token_ids"][0]
    assert chosen == int(score(directory, prefix)[-1, :known].argmax())


def small_raw_config(**fields):
    raw = json.loads((GOLDENS / "tiny_odd" / "config.json").read_text())
    raw["text_config"].update(fields)
    return raw


def test_fp8_checkpoint(tmp_path):
    """Block-quantised weights with ragged blocks: the same bits as their dequantised values in
    bfloat16, held as that, as the fp8 that they are, or packed; close to the oracle on the unrounded ones."""
    raw = small_raw_config(hidden_size=160, intermediate_size=320)
    plain, quantised = random_weights(raw, 11), {}
    for name, value in plain.items():
        if is_fp8_module(name):
            bits, scale = quant_fp8_block(np.asarray(value))
            quantised[name], quantised[name + "_scale_inv"] = bits.view(F8), scale.view(BF16)
        else:
            quantised[name] = value
    fp8_raw = dict(raw, quantization_config=dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic",
                                                 weight_block_size=[128, 128]))
    write_model(tmp_path / "fp8", fp8_raw, quantised)
    exact = load_checkpoint(tmp_path / "fp8")
    rounded = {n: as_bf16(v) if is_fp8_module(n) else plain[n] for n, v in exact.items()}
    write_model(tmp_path / "bf16", raw, rounded)

    ids = random_ids("fp8", 70)
    ours = score_file(tmp_path / "fp8", ids)
    assert ours == score_file(tmp_path / "bf16", ids)
    for preset in ("mlp-fp8", "fp8"):
        assert ours == score_file(tmp_path / "fp8", ids, preset=preset)
        done = run("pack", tmp_path / "fp8", "-o", tmp_path / f"packed-{preset}", "--preset", preset, "--quiet")
        assert done.returncode == 0, done.stderr
        assert ours == score_file(tmp_path / f"packed-{preset}", ids)
    model = Model(Config(raw), exact)
    check_close(logits_of(ours), model.head(model.forward(ids)[0]), "fp8")


def test_shards_give_the_same_bits(tmp_path):
    """An index over shards, the tensors dealt out so that every layer is spread over all of them."""
    source = GOLDENS / "tiny08"
    raw_bits = read_safetensors(source / "model.safetensors")
    shards = [{}, {}, {}]
    for i, name in enumerate(sorted(raw_bits)):
        f32 = name.endswith(("A_log", "linear_attn.norm.weight"))
        shards[i % 3][name] = raw_bits[name] if f32 else as_bf16(raw_bits[name])
    files = [f"model-0000{i + 1}-of-00003.safetensors" for i in range(3)]
    for file, part in zip(files, shards):
        write_safetensors(tmp_path / file, part)
    index = dict(metadata={}, weight_map={n: f for f, part in zip(files, shards) for n in part})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text((source / "config.json").read_text())
    ids = random_ids("shards", 40)
    assert score_file(tmp_path, ids) == score_file(source, ids)


def test_f32_and_f16_weights_are_accepted(tmp_path):
    """float32 holds the same values, so the same bits; float16 holds most of them closely."""
    source, ids = GOLDENS / "tiny_odd", random_ids("dtypes", 40)
    raw, values = json.loads((source / "config.json").read_text()), read_safetensors(source / "model.safetensors")
    write_model(tmp_path / "f32", raw, values)
    assert score_file(tmp_path / "f32", ids) == score_file(source, ids)
    write_model(tmp_path / "f16", raw, {n: v if n.endswith("A_log") else v.astype(np.float16) for n, v in values.items()})
    check_close(score(tmp_path / "f16", ids), score(source, ids), "float16 weights")


@pytest.mark.parametrize("ids, named", [([3, 320], "320"), ([3, -1], "-1")])
def test_token_ids_outside_the_vocabulary(ids, named):
    done = run("score", GOLDENS / "tiny_odd", "--token-ids", joined(ids))
    assert done.returncode in (1, 2) and named in done.stderr
