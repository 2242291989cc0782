"""Help, version, and every way to use the program wrongly: message, stream and exit code."""
import re

import pytest
from program import NO_TOKENIZER, RANDOM, assert_error, sluice

COMMANDS = ("serve", "chat", "generate", "score", "inspect", "pack", "bench")


def test_help_lists_the_commands():
    run = sluice("--help")
    assert run.returncode == 0 and run.stderr == ""
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", run.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command):
    run = sluice(command, "--help")
    assert run.returncode == 0 and run.stderr == ""
    assert "MODEL" in run.stdout and "--help" in run.stdout


def test_version_names_program_and_kernels():
    run = sluice("--version")
    assert run.returncode == 0
    first, second = run.stdout.splitlines()
    assert re.fullmatch(r"sluice \d+\.\d+\.\d+", first)
    kernels = re.search(r"kernels: (\w+) \(supported:((?: \w+)+)\)", second)
    assert kernels.group(1) in kernels.group(2).split() and "ref" in kernels.group(2).split()


def test_without_a_command_it_explains_itself():
    run = sluice()
    assert run.returncode == 2 and "serve" in run.stdout


@pytest.mark.parametrize("arguments, part", [
    (["fly"], "fly"),
    (["generate"], "MODEL"),
    (["generate", RANDOM], "--prompt"),
    (["generate", RANDOM, "--prompt", "a", "--token-ids", "1"], "--token-ids"),
    (["generate", RANDOM, "--prompt", "a", "--system", "b"], "--chat"),
    (["generate", RANDOM, "--chat", "a", "--thinking", "--no-thinking"], "--no-thinking"),
    (["generate", RANDOM, "--prompt", "a", "--max-tokens", "-1"], "--max-tokens"),
    (["generate", RANDOM, "--prompt", "a", "--max-tokens", "0x10"], "--max-tokens"),
    (["generate", RANDOM, "--prompt", "a", "--max-tokens", "1.5"], "--max-tokens"),
    (["generate", RANDOM, "--prompt", "a", "--temperature", "nan"], "--temperature"),
    (["generate", RANDOM, "--prompt", "a", "--temperature", "2.5"], "--temperature"),
    (["generate", RANDOM, "--prompt", "a", "--top-p", "1.5"], "--top-p"),
    (["generate", RANDOM, "--prompt", "a", "--logprobs", "21"], "--logprobs"),
    (["generate", RANDOM, "--prompt", "a", "--seed", "-1"], "--seed"),
    (["generate", RANDOM, "--prompt", "a", "--threads", "many"], "--threads"),
    (["generate", RANDOM, "--prompt", "a", "--unknown"], "--unknown"),
    (["score", NO_TOKENIZER], "--token-ids"),
    (["score", NO_TOKENIZER, "--token-ids="], "--token-ids"),
    (["score", NO_TOKENIZER, "--token-ids", "1", "--prefill-step", "-3"], "--prefill-step"),
    (["serve", "--port", "65536"], "--port"),
    (["inspect", RANDOM, "--sequences", "0"], "--sequences"),
    (["pack", RANDOM], "--out"),
    (["pack", RANDOM, "-o", "x", "--preset", "fp4"], "--preset"),
])
def test_wrong_usage(arguments, part):
    assert_error(sluice(*arguments), 2, part)


@pytest.mark.parametrize("ids, parts", [
    (" ", ["no token ids"]),
    ("1,2,", ["ends with a comma"]),
    ("1,,2", ["index 1"]),
    ("1,-2", ["index 1", "-2"]),
    ("1,abc", ["index 1", "abc"]),
    ("1, 2, 0x3", ["index 2", "0x3"]),
    ("1,99999999999", ["index 1", "99999999999"]),
    ("1,256", ["id 256", "index 1", "[0, 256)"]),
])
def test_bad_token_ids(ids, parts):
    for command in ("generate", "score"):
        assert_error(sluice(command, NO_TOKENIZER, f"--token-ids={ids}"), 1, "--token-ids", *parts)


def test_ids_from_a_file_name_the_file(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("1\n2\nthree\n")
    assert_error(sluice("score", NO_TOKENIZER, "--token-ids-file", path), 1, "ids.txt", "index 2", "three")
    assert_error(sluice("score", NO_TOKENIZER, "--token-ids-file", tmp_path / "none"), 1, "none")
    path.write_text("1\n2\n3\n")
    assert sluice("score", NO_TOKENIZER, "--token-ids-file", path).returncode == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_model(command, tmp_path):
    prompt = ["--token-ids", "1"] if command in ("generate", "score") else []
    prompt += ["--out", tmp_path / "out"] if command == "pack" else []
    assert_error(sluice(command, tmp_path / "nowhere", *prompt), 1, "nowhere")
    assert_error(sluice(command, tmp_path, *prompt), 1, "config.json")


def test_text_needs_a_tokenizer():
    assert_error(sluice("generate", NO_TOKENIZER, "--prompt", "hi"), 1, "tokenizer.json")
    assert_error(sluice("generate", NO_TOKENIZER, "--chat", "hi"), 1, "tokenizer.json")
    assert_error(sluice("chat", NO_TOKENIZER), 1, "tokenizer.json")
    assert_error(sluice("serve", NO_TOKENIZER, "--port", "0"), 1, "tokenizer.json")


def test_a_filter_without_temperature_is_not_ignored():
    assert_error(sluice("generate", RANDOM, "--prompt", "a", "--top-p", "0.5"), 1, "--temperature")


def test_context_beyond_the_model():
    assert_error(sluice("generate", RANDOM, "--prompt", "a", "--context", "100000"), 1, "100000", "4096")
    assert_error(sluice("chat", RANDOM, "--context", "100000"), 1, "100000", "4096")


def test_prompt_beyond_the_context():
    run = sluice("generate", NO_TOKENIZER, "--token-ids", "1,2,3,4,5", "--context", "5")
    assert_error(run, 1, "5 tokens", "--context")


def test_unknown_instruction_set():
    run = sluice("generate", NO_TOKENIZER, "--token-ids", "1", SLUICE_FORCE_ISA="sse9")
    assert_error(run, 1, "SLUICE_FORCE_ISA", "sse9")


def test_logits_into_a_missing_folder(tmp_path):
    target = tmp_path / "none" / "x.safetensors"
    assert_error(sluice("score", NO_TOKENIZER, "--token-ids", "1", "--logits-out", target, "-q"), 1, "none")
