"""The promise, seen from outside: the logits of a position depend on the tokens before it and on
nothing else. Every comparison is of all bits."""
import math

import numpy as np
import pytest
from model_runs import ISAS, MODELS, generate, known_ids, logits_of, random_ids, run, score, score_file

# Around the edges of the 32-token grid, of 64-token blocks, and beyond.
LENGTHS = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130, 255, 256, 257)
LONGEST = 300
PREFILL_STEPS = (1, 7, 32, 64, 512)
EACH_MODEL = pytest.mark.parametrize("name", MODELS)


@EACH_MODEL
@pytest.mark.parametrize("step", PREFILL_STEPS)
def test_prefill_step(name, step):
    ids = random_ids(name, LONGEST)
    assert score_file(MODELS[name], ids, prefill_step=step) == score_file(MODELS[name], ids)


@EACH_MODEL
@pytest.mark.parametrize("step", (1, 33, 512))
@pytest.mark.parametrize("threads", (1, 2))
def test_threads(name, threads, step):
    ids = random_ids(name, LONGEST)
    assert score_file(MODELS[name], ids, threads=threads, prefill_step=step) == score_file(MODELS[name], ids)


@EACH_MODEL
@pytest.mark.parametrize("step", (1, 7, 64, 512))
@pytest.mark.parametrize("isa", ISAS)
def test_instruction_set(name, isa, step):
    ids = random_ids(name, LONGEST)
    assert score_file(MODELS[name], ids, isa=isa, prefill_step=step) == score_file(MODELS[name], ids)


@pytest.mark.parametrize("isa", ISAS)
def test_forced_instruction_set_is_the_one_used(isa):
    done = run("--version", isa=isa)
    assert done.returncode == 0
    used = [line for line in done.stdout.splitlines() if "kernels" in line.lower()]
    assert used and isa in used[0].lower().replace(",", " ").replace(":", " ").split(), done.stdout


def test_unknown_instruction_set_is_an_error():
    with pytest.raises(pytest.skip.Exception):  # run() skips on a refusal that names the value
        run("score", MODELS["tiny08"], "--token-ids", "3", isa="sse9")


@EACH_MODEL
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_do_not_see_what_follows(name, length):
    """A prompt alone gives the first rows of a longer one, in one step and in steps of 7."""
    ids = random_ids(name, LONGEST)
    whole = score(MODELS[name], ids)[:length].tobytes()
    assert score(MODELS[name], ids[:length]).tobytes() == whole
    assert score(MODELS[name], ids[:length], prefill_step=7).tobytes() == whole


@EACH_MODEL
@pytest.mark.parametrize("length", (1, 31, 32, 63, 64, 65, 128))
def test_decode_equals_prefill(name, length):
    """40 generated tokens, over several edges: each is the best of the logits that scoring the whole
    text gives, with the same log-probability."""
    ids = random_ids(name, LONGEST)[:length]
    answer = generate(MODELS[name], ids, 40, "--logprobs", 1)
    tokens = answer["token_ids"]
    logits = score(MODELS[name], ids + tokens[:-1])[length - 1:].astype(np.float64)
    for token, row, entry in zip(tokens, logits, answer["logprobs"], strict=True):
        assert row[token] == max(row[t["token_id"]] for t in entry["top_logprobs"])
        known = row[:known_ids(name)]
        assert token == int(known.argmax())
        expected = row[token] - known.max() - math.log(np.exp(known - known.max()).sum())
        assert abs(entry["logprob"] - expected) < 1e-5


@EACH_MODEL
def test_generate_does_not_depend_on_steps_and_threads(name):
    ids = random_ids(name, 130)
    first = generate(MODELS[name], ids, 24, "--logprobs", 5)
    for flags in (("--prefill-step", 1), ("--prefill-step", 37), ("--prefill-step", 64), ("--threads", 1)):
        other = generate(MODELS[name], ids, 24, "--logprobs", 5, *flags)
        assert other["token_ids"] == first["token_ids"] and other["logprobs"] == first["logprobs"], flags


def test_models_differ():
    """The comparisons above would hold for a program that ignores its input; this one would not."""
    ids = random_ids("tiny08", 64)
    a = score(MODELS["tiny08"], ids)
    other = ids[:20] + [ids[20] ^ 1] + ids[21:]
    b = score(MODELS["tiny08"], other)
    assert (a[:20] == b[:20]).all() and (a[20:] != b[20:]).any(-1).all()
    assert logits_of(score_file(MODELS["tiny27"], ids)).shape == (64, 256)
