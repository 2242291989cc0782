"""`sluice bench` and bench/kernels: what they print, what they refuse. Never how fast anything was."""
import json
import os
import subprocess

import pytest
from program import RANDOM, RUN_SECONDS_MAX, assert_error, sluice
from test_data import BUILD

KERNELS = BUILD / "bench" / "kernels"
RATE = {"tok_per_s", "tok_per_s_best", "runs", "ceiling_tok_per_s", "percent_of_ceiling", "bound"}


def bench_json(*arguments):
    run = sluice("bench", *arguments, "--quick", "--json", "-q")
    assert run.returncode == 0, run.stderr
    assert run.stderr == "" and run.stdout.count("\n") == 1
    return json.loads(run.stdout)


def test_json_has_exactly_the_agreed_members():
    report = bench_json(RANDOM, "--prefill", 16, 33, "--prefill-step", 32, "--decode", 0, 40, "--batch", 1, 3)
    assert set(report) == {"version", "machine", "model", "ceiling", "memory", "prefill", "decode", "skipped"}
    assert set(report["machine"]) == {"cpu", "kernels", "threads"}
    assert report["model"] == {"name": str(RANDOM), "layers": 4, "weights": "bf16"}
    assert {"flop_per_s", "read_byte_per_s", "median", "loop", "read_buffer_bytes"} <= set(report["ceiling"])
    assert report["ceiling"]["flop_per_s"] > 0 and report["ceiling"]["read_byte_per_s"] > 0
    assert set(report["memory"]) == {"weight_bytes", "embedding_bytes", "workspace_bytes", "kv_bytes_per_token",
                                     "state_bytes_per_sequence", "peak_resident_bytes"}
    assert [figure["tokens"] for figure in report["prefill"]] == [16, 33]
    assert ([(figure["context"], figure["batch"]) for figure in report["decode"]]
            == [(0, 1), (0, 3), (40, 1), (40, 3)])
    for figure in report["prefill"] + report["decode"]:
        assert RATE <= set(figure)
        assert 0 < figure["tok_per_s"] <= figure["tok_per_s_best"] and figure["runs"] >= 1
        assert figure["ceiling_tok_per_s"] > 0 and figure["bound"] in ("compute", "memory")
    assert report["skipped"] == []


def test_a_shape_is_made_in_memory():
    report = bench_json("--shape", "qwen3.5-0.8b", "--layers", 1, "--only", "decode", "--decode", 0, "--batch", 1,
                        "--threads", 1)
    assert report["model"] == {"name": "qwen3.5-0.8b, random weights", "layers": 1, "weights": "bf16"}
    assert report["prefill"] == [] and len(report["decode"]) == 1
    assert report["machine"]["threads"] == 1
    head = 248320 * 1024 * 2
    assert report["memory"]["embedding_bytes"] == head
    assert head < report["memory"]["weight_bytes"] < head + (64 << 20)


def test_the_table_reads_well():
    run = sluice("bench", RANDOM, "--quick", "--only", "prefill", "--prefill", 16)
    assert run.returncode == 0, run.stderr
    for part in ("Ceilings", "Memory", "Prefill", "roofline", "4 layers, bf16"):
        assert part in run.stdout
    assert "Decode" not in run.stdout and "kernels:" in run.stderr


def test_a_forced_instruction_set_is_measured_by_its_own_ceiling():
    run = sluice("bench", RANDOM, "--quick", "--json", "-q", "--only", "decode", "--decode", 0, "--batch", 1,
                 SLUICE_FORCE_ISA="ref")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["machine"]["kernels"] == "ref" and report["ceiling"]["loop"] == "portable multiply-add"


def test_defaults_beyond_the_model_are_left_out_with_the_reason():
    report = bench_json(RANDOM, "--only", "decode", "--batch", 1, "--decode", 0)
    assert report["skipped"] == []
    report = bench_json(RANDOM, "--only", "decode")  # 4096 positions: no room after 4096 tokens
    assert [figure["context"] for figure in report["decode"]] == [0, 0]
    assert [entry["case"] for entry in report["skipped"]] == ["--decode 4096 with --batch 1",
                                                              "--decode 4096 with --batch 4"]
    assert all("4096" in entry["reason"] for entry in report["skipped"])


@pytest.mark.parametrize("arguments, parts", [
    (["--prefill", "0"], ["--prefill", "0", "from 1 to"]),
    (["--prefill", "many"], ["--prefill", "many"]),
    (["--decode", "-1"], ["--decode", "-1", "from 0 to"]),
    (["--batch", "0"], ["--batch", "from 1 to 1024"]),
    (["--layers", "0"], ["--layers", "from 1 to"]),
    (["--prefill-step", "9000"], ["--prefill-step", "9000", "8192"]),
    (["--only", "both"], ["--only", "both"]),
])
def test_wrong_usage(arguments, parts):
    assert_error(sluice("bench", *arguments), 2, *parts)


@pytest.mark.parametrize("arguments, parts", [
    (["--shape", "qwen3.5-1b"], ["--shape", "qwen3.5-1b", "qwen3.5-0.8b", "qwen3.6-27b"]),
    (["--shape", "qwen3.5-0.8b", "--layers", "25"], ["--layers", "25", "24"]),
    ([RANDOM, "--shape", "qwen3.5-0.8b"], ["--shape", str(RANDOM)]),
    ([RANDOM, "--layers", "2"], ["--layers", str(RANDOM)]),
    ([RANDOM, "--prefill", "4097"], ["--prefill 4097", "4096"]),
    ([RANDOM, "--decode", "4090"], ["--decode 4090", "4096"]),
    (["nowhere"], ["nowhere"]),
])
def test_what_cannot_be_measured_is_an_error(arguments, parts):
    assert_error(sluice("bench", *arguments), 1, *parts)


def kernels(*arguments):
    if not KERNELS.exists():
        pytest.skip("bench/kernels is not built: libbenchmark-dev was not there")
    return subprocess.run([str(KERNELS), *arguments], env=dict(os.environ), capture_output=True, text=True,
                          timeout=RUN_SECONDS_MAX, check=False)


def test_kernels_smoke():
    run = kernels("--quick", "--json", "--threads=1", "--benchmark_filter=0.8b/(linear_attn.out_proj/.*/M1|T1)$|add/0.8b")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert set(report) == {"machine", "ceiling", "kernels"}
    names = [kernel["name"] for kernel in report["kernels"]]
    products = [f"gemm_{held}/0.8b/linear_attn.out_proj/1024x2048/M1" for held in ("bf16", "fp8", "int8", "int4")]
    assert names == [*products, "gated_delta/0.8b/T1", "add/0.8b/T512x1024"]
    for kernel in report["kernels"]:
        assert kernel["seconds"] > 0 and kernel["byte_per_s"] > 0 and kernel["percent_of_read"] > 0


def test_kernels_table_and_wrong_usage():
    run = kernels("--quick", "--benchmark_filter=rms_norm/0.8b")
    assert run.returncode == 0 and "rms_norm/0.8b/T512x1024" in run.stdout and "Ceilings" in run.stdout
    assert kernels("--fast").returncode == 2
    assert kernels("--benchmark_filter=no_such_case", "--quick").returncode == 1
