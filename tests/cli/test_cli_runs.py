"""What the commands print when all is well."""
import json
import os
import re
import signal
import struct
import time

import pytest
from program import NO_TOKENIZER, RANDOM, sluice, start
from test_data import EMBEDDED

RUN_SECONDS_MAX = 60


def generate_json(*arguments):
    run = sluice("generate", *arguments, "--json")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("\n") == 1
    return json.loads(run.stdout)


def test_json_has_exactly_the_agreed_members():
    answer = generate_json(NO_TOKENIZER, "--token-ids", "1,2,3", "--max-tokens", "4", "--ignore-eos")
    assert set(answer) == {"token_ids", "text", "finish_reason", "timings", "usage"}
    assert len(answer["token_ids"]) == 4 and all(isinstance(i, int) and 0 <= i < 256 for i in answer["token_ids"])
    assert answer["text"] == ""  # no tokenizer
    assert answer["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 4}
    assert set(answer["timings"]) == {"load_seconds", "prefill_seconds", "decode_seconds",
                                      "prefill_tokens_per_second", "decode_tokens_per_second"}
    assert all(value > 0 for value in answer["timings"].values())


def test_logprobs_are_listed_best_first():
    answer = generate_json(RANDOM, "--prompt", "Hello", "--max-tokens", "3", "--ignore-eos", "--logprobs", "4")
    assert [entry["token_id"] for entry in answer["logprobs"]] == answer["token_ids"]
    for entry in answer["logprobs"]:
        assert set(entry) == {"token_id", "token", "logprob", "top_logprobs"}
        top = [best["logprob"] for best in entry["top_logprobs"]]
        assert len(top) == 4 and top == sorted(top, reverse=True)
        assert entry["top_logprobs"][0]["token_id"] == entry["token_id"]  # greedy
        assert entry["logprob"] == top[0] <= 0.0


def test_text_streams_what_json_says():
    arguments = [RANDOM, "--prompt", "Hello", "--max-tokens", "12", "--ignore-eos"]
    run = sluice("generate", *arguments)
    assert run.returncode == 0
    assert run.stdout == generate_json(*arguments)["text"] + "\n"
    assert "kernels:" in run.stderr and "memory:" in run.stderr
    assert "\r" not in run.stderr  # progress is for terminals


def test_a_forced_instruction_set_really_runs():
    supported = re.search(r"supported:((?: \w+)+)", sluice("--version").stdout).group(1).split()
    assert "ref" in supported
    for isa in supported:
        run = sluice("generate", NO_TOKENIZER, "--token-ids", "1", "--max-tokens", "1", SLUICE_FORCE_ISA=isa)
        assert run.returncode == 0 and f"kernels: {isa} " in run.stderr


def test_quiet_says_nothing_beside_the_answer():
    assert sluice("generate", RANDOM, "--prompt", "Hello", "--max-tokens", "2", "-q").stderr == ""


def test_a_stop_text_ends_the_answer():
    arguments = [RANDOM, "--prompt", "Hello", "--max-tokens", "40", "--ignore-eos"]
    text = generate_json(*arguments)["text"]
    stop = text[10:13]
    answer = generate_json(*arguments, "--stop", stop)
    assert answer["finish_reason"] == "stop"
    assert answer["text"] == text[:text.index(stop)]


def test_no_tokens_asked_none_given():
    answer = generate_json(NO_TOKENIZER, "--token-ids", "1,2", "--max-tokens", "0")
    assert answer["token_ids"] == [] and answer["finish_reason"] == "length"


def test_seeds_repeat_and_differ():
    arguments = [NO_TOKENIZER, "--token-ids", "5,6,7", "--max-tokens", "16", "--ignore-eos", "--temperature", "1.5"]
    first = generate_json(*arguments, "--seed", "1")["token_ids"]
    assert generate_json(*arguments, "--seed", "1")["token_ids"] == first
    assert generate_json(*arguments, "--seed", "2")["token_ids"] != first


def test_chat_equals_its_rendered_prompt():
    rendered = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    wanted = generate_json(RANDOM, "--prompt", rendered, "--max-tokens", "8", "--ignore-eos")
    answer = generate_json(RANDOM, "--chat", "Hi", "--no-thinking", "--max-tokens", "8", "--ignore-eos")
    assert answer["token_ids"] == wanted["token_ids"]
    assert answer["usage"] == wanted["usage"]


def test_prompt_file_equals_prompt(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("Grüße, 世界")
    tail = ["--max-tokens", "4", "--ignore-eos"]
    assert (generate_json(RANDOM, "--prompt-file", path, *tail)["token_ids"]
            == generate_json(RANDOM, "--prompt", "Grüße, 世界", *tail)["token_ids"])


def test_score_writes_all_logits(tmp_path):
    path = tmp_path / "logits.safetensors"
    run = sluice("score", NO_TOKENIZER, "--token-ids", "1,2,3,4,5", "--logits-out", path)
    assert run.returncode == 0, run.stderr
    assert "tokens: 5\n" in run.stdout and "mean negative log likelihood: " in run.stdout
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    assert header["logits"]["dtype"] == "F32" and header["logits"]["shape"] == [5, 256]
    assert len(content) == 8 + size + 5 * 256 * 4


def test_inspect_prints_config_and_memory():
    run = sluice("inspect", RANDOM)
    assert run.returncode == 0 and run.stderr == ""
    for part in ("hidden, intermediate  128, 256", "2048, tied head", "2001 ids", "bf16", "mlp-fp8", "int4", "KV 1.00 KiB"):
        assert part in run.stdout


@pytest.mark.parametrize("seed", [1, 2])
def test_validate_finds_every_answer_to_be_the_one_it_would_be_alone(seed):
    slow = os.environ.get("SLUICE_FORCE_ISA") == "ref"
    rounds, requests, prompt_tokens = (1, 6, 130) if slow else (3, 30, 700)
    run = sluice("validate", RANDOM, "--exactness", "--rounds", rounds, "--requests", requests, "--prompt-tokens", prompt_tokens,
                 "--seed", seed, "--threads", 1, "--json")
    assert run.returncode == 0, run.stdout
    report = json.loads(run.stdout)
    assert report["pass"] is True
    (check,) = report["checks"]
    exactness = check["counts"]
    assert (exactness["compared"], exactness["differences"], check["findings"]) == (rounds * requests, 0, [])
    if not slow:
        assert exactness["reused_tokens"] > 0 and exactness["evictions"] > 0 and exactness["running_max"] > 4


def test_validate_reads_well():
    run = sluice("validate", RANDOM, "--only", "batch,reset", "--rounds", 1, "--requests", 5, "--prompt-tokens", 100, "--long", 300,
                 "--threads", 1, "--quiet")
    assert run.returncode == 0
    assert "5 answers compared with the same request alone, 0 differ" in run.stdout
    assert "state reset: short and long (300 tokens) in turns, 0 of 8 differ" in run.stdout
    assert run.stdout.endswith("\npass\n")


def test_the_embedded_model_is_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = sluice("inspect")
    assert run.returncode == 0 and run.stdout.startswith(str(EMBEDDED))


def test_chat_keeps_talking_until_exit():
    run = sluice("chat", RANDOM, "--max-tokens", "5", "--seed", "1", "-q", stdin="Hello\n/reset\n/nonsense\nAgain\n/exit\nno\n")
    assert run.returncode == 0
    assert "unknown command /nonsense" in run.stderr
    assert run.stderr.count("[cut at 5 tokens]") == 2


def test_chat_says_when_the_context_is_full():
    run = sluice("chat", RANDOM, "--context", "40", "--seed", "1", "-q", stdin="Hello\n" + "long words here " * 20 + "\n")
    assert run.returncode == 0
    assert run.stderr.count("sluice: error: ") == 1 and "/reset" in run.stderr


def wait_for(process, seconds=RUN_SECONDS_MAX):
    try:
        return process.communicate(timeout=seconds)
    finally:
        process.kill()


def test_interrupt_ends_generate_with_what_there_is():
    process = start("generate", RANDOM, "--prompt", "Hello", "--max-tokens", "4000", "--ignore-eos")
    process.stdout.read(1)  # it has begun
    process.send_signal(signal.SIGINT)
    stdout, _ = wait_for(process)
    assert process.returncode == 130
    assert stdout.endswith("\n")


def test_interrupted_json_is_complete():
    process = start("generate", RANDOM, "--prompt", "Hello", "--max-tokens", "4000", "--ignore-eos", "--json")
    while "memory:" not in process.stderr.readline():
        pass
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, _ = wait_for(process)
    assert process.returncode == 130
    assert json.loads(stdout)["finish_reason"] == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_where_and_stops_on_a_signal(number):
    process = start("serve", "--port", "0")
    line = process.stdout.readline()
    assert line.startswith("listening on http://127.0.0.1:")
    process.send_signal(number)
    wait_for(process)
    assert process.returncode == 0
