"""Kept prefixes over a restart: saved, loaded, refused; on a real engine."""
import contextlib
import os
import shutil
import stat
import subprocess

import httpx
import pytest
from server_process import ServerProcess, eventually, serving, tokens
from test_cache_admin import pin
from test_data import SLUICE, random_model

SAVE = "/v1/cache/save"
LOAD = "/v1/cache/load"
USUAL = ("--sequences", 2, "--threads", 1)
LONG = tokens(900)


def move(client, path, name="a", status=200, **headers):
    reply = client.post(path, json={"name": name}, headers=headers)
    assert reply.status_code == status, reply.text
    return reply.json()


def refusal(client, path, name, status):
    return move(client, path, name, status)["error"]


def answer(client, prompt, **fields):
    """Tokens and log-probabilities, and how many tokens of the prompt were not computed."""
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": True, "return_token_ids": True, "logprobs": 3, **fields}
    reply = client.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    return (choice["token_ids"], choice["logprobs"]), reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


@contextlib.contextmanager
def started(*arguments, model=None):
    """A server that the test stops itself, and a client of it."""
    process = ServerProcess("--context", 4096, *USUAL, *arguments, model=model)
    try:
        with httpx.Client(base_url=process.url, timeout=120) as client:
            yield process, client
    finally:
        process.process.kill()
        process.process.wait()


@pytest.fixture(scope="module")
def expected():
    """What a server says that keeps nothing."""
    prompts = {"longer": LONG + tokens(50, 3), "long": LONG, "other": tokens(700, 2)}
    with serving(*USUAL, "--cache-memory", 0) as cold:
        yield {name: (prompt, answer(cold, prompt)[0]) for name, prompt in prompts.items()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the file "a": LONG under no salt, another prompt under "s", and a pin."""
    folder = tmp_path_factory.mktemp("cache")
    with serving(*USUAL, "--cache-dir", folder) as client:
        answer(client, LONG)
        answer(client, tokens(700, 2), cache_salt="s")
        pin(client, name="docs", token_ids=tokens(256, 4), ttl_s=3600)
        done = move(client, SAVE)
        report = client.get("/v1/cache").json()
        # KV that no state follows is stored, not saved.
        assert 0 < done["tokens"] <= report["tokens"] and 0 < done["bytes"] <= report["bytes"]["device"]
        assert done["ms"] > 0
        assert f'server_cache_file_tokens_total{{operation="save"}} {done["tokens"]}' in client.get("/metrics").text
    return folder, done, report


def test_a_restarted_server_goes_on(saved, expected):
    folder, done, report = saved
    with serving(*USUAL, "--cache-dir", folder) as client:
        loaded = move(client, LOAD)
        assert (loaded["tokens"], loaded["bytes"]) == (done["tokens"], done["bytes"])
        now = client.get("/v1/cache").json()
        assert (now["tokens"], now["entries"]) == (done["tokens"], report["entries"])
        (pinned,) = now["pinned"]
        assert [pinned[key] for key in ("id", "name", "tokens")] == [report["pinned"][0][key] for key in ("id", "name", "tokens")]
        assert abs(pinned["expires_at"] - report["pinned"][0]["expires_at"]) < 120
        assert answer(client, expected["longer"][0]) == (expected["longer"][1], 896)
        assert answer(client, expected["other"][0], cache_salt="s") == (expected["other"][1], 640)
        assert move(client, LOAD)["tokens"] == 0  # it is all there
        assert f'server_cache_file_tokens_total{{operation="load"}} {done["tokens"]}' in client.get("/metrics").text


def test_salts_stay_apart(saved, expected):
    with serving(*USUAL, "--cache-dir", saved[0]) as client:
        move(client, LOAD)
        for salt in ("", "other"):
            fields = {"cache_salt": salt} if salt else {}
            assert answer(client, expected["other"][0], **fields) == (expected["other"][1], 0)
        assert answer(client, LONG, cache_salt="s") == (expected["long"][1], 0)


def test_keys_stay_apart(tmp_path):
    keys = ("--api-key", "one", "--api-key", "two", "--admin-key", "root")
    with serving(*USUAL, *keys, "--cache-dir", tmp_path) as client:
        client.headers["x-api-key"] = "one"
        expected, _ = answer(client, LONG)
        assert client.post(SAVE, json={"name": "a"}).status_code == 403
        move(client, SAVE, **{"x-api-key": "root"})
    with serving(*USUAL, *keys, "--cache-dir", tmp_path) as client:
        move(client, LOAD, **{"x-api-key": "root"})
        for key, cached in (("two", 0), ("one", 896)):
            client.headers["x-api-key"] = key
            assert answer(client, LONG) == (expected, cached)


def test_into_less_memory_and_into_what_is_there(saved, expected):
    folder, done, _ = saved
    with serving("--sequences", 1, "--threads", 1, "--kv-tokens", 4096, "--cache-memory", 1, "--cache-dir", folder) as client:
        kept = answer(client, tokens(130, 9))[0]
        before = client.get("/v1/cache").json()
        loaded = move(client, LOAD)
        after = client.get("/v1/cache").json()
        assert after["bytes"]["device"] <= after["limit_bytes"]["device"]
        assert loaded["bytes"] <= done["bytes"]
        assert after["entries"] >= before["entries"]
        assert 'server_cache_evictions_total{reason="capacity"} 0\n' in client.get("/metrics").text
        assert answer(client, tokens(130, 9))[0] == kept
        for name in ("longer", "long"):
            assert answer(client, expected[name][0])[0] == expected[name][1]


def test_while_answers_run(saved, expected):
    with serving(*USUAL, "--cache-dir", saved[0]) as client:
        body = {"prompt": expected["long"][0], "max_tokens": 400, "temperature": 0, "ignore_eos": True, "stream": True}
        with client.stream("POST", "/v1/completions", json=body) as reply:
            lines = reply.iter_lines()
            next(lines)
            move(client, SAVE, "running")
            move(client, LOAD)
            assert [line for line in lines if line][-1] == "data: [DONE]"
        assert answer(client, expected["long"][0])[0] == expected["long"][1]


def test_the_file_is_its_owners_alone(saved):
    mode = (saved[0] / "a").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert [path.name for path in saved[0].iterdir() if "partial" in path.name] == []


@pytest.mark.parametrize("change, fact", [
    ("config.json", "weights"), ("chat_template.jinja", "chat template"), ("tokenizer_config.json", "tokenizer")])
def test_a_file_of_another_model_is_refused(saved, tmp_path, change, fact):
    shutil.copytree(random_model(), tmp_path / "model")
    with (tmp_path / "model" / change).open("a") as file:
        file.write("\n")  # as another version would
    with started("--cache-dir", saved[0], model=tmp_path / "model") as (_, client):
        error = refusal(client, LOAD, "a", 409)
        assert error["code"] == "cache_file_mismatch" and error["message"].startswith(f"{fact}: saved with fp_")
        assert client.get("/v1/cache").json()["tokens"] == 0


def test_other_weights_and_other_kernels_are_refused(saved, tmp_path, monkeypatch):
    model = tmp_path / "model"
    shutil.copytree(random_model(), model)
    (weights,) = model.glob("*.safetensors")
    content = bytearray(weights.read_bytes())
    for at in range(len(content) // 2, len(content), 4):
        content[at] ^= 1
    weights.write_bytes(content)
    with started("--cache-dir", saved[0], model=model) as (_, client):
        assert refusal(client, LOAD, "a", 409)["message"].startswith("weights: saved with fp_")
    monkeypatch.setenv("SLUICE_FORCE_ISA", "ref")
    with started("--cache-dir", saved[0]) as (_, client):
        assert refusal(client, LOAD, "a", 409)["message"].startswith("kernels: saved with ")


@pytest.mark.parametrize("damage, code", [
    (lambda whole: whole[:-1], "cache_file_damaged"), (lambda whole: whole[:100], "cache_file_damaged"),
    (lambda _: b"", "cache_file_damaged"), (lambda _: b"{}" * 100, "cache_file_damaged"),
    (lambda whole: whole[:-100] + bytes([whole[-100] ^ 4]) + whole[-99:], "cache_file_damaged"),
    (lambda whole: whole[:8] + b"\x03" + whole[9:], "cache_file_mismatch")])
def test_a_damaged_file_is_refused(saved, expected, tmp_path, damage, code):
    (tmp_path / "a").write_bytes(damage((saved[0] / "a").read_bytes()))
    with started("--cache-dir", tmp_path, "--cache-file", "a") as (process, client):
        assert eventually(lambda: any("is refused: " in line for line in process.log))
        assert refusal(client, LOAD, "a", 409)["code"] == code
        assert client.get("/v1/cache").json()["tokens"] == 0
        assert answer(client, LONG) == (expected["long"][1], 0)


def test_names(saved, tmp_path):
    (tmp_path / "outside").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "sub").mkdir()
    with serving(*USUAL, "--cache-dir", folder) as client:
        for name in ("", ".", "..", "../outside", "sub/a", "/etc/passwd", "a\0", "a b", "ä", "%2e%2e", "x" * 65, "..\\outside"):
            for path in (SAVE, LOAD):
                error = refusal(client, path, name, 400)
                assert error["param"] == "name" and "64" in error["message"]
        assert refusal(client, SAVE, "sub", 400)["param"] == "name"
        assert refusal(client, LOAD, "sub", 400)["param"] == "name"
        assert refusal(client, LOAD, "missing", 404)["code"] == "not_found"
        move(client, SAVE, "x" * 64)
        move(client, SAVE, "...")
    assert sorted(path.name for path in folder.iterdir()) == ["...", "sub", "x" * 64]
    assert (tmp_path / "outside").read_text() == "x"


def test_without_a_folder_there_are_no_files():
    with serving(*USUAL) as client:
        for path in (SAVE, LOAD):
            assert "--cache-dir" in refusal(client, path, "a", 404)["message"]


def test_over_a_restart_by_itself(tmp_path, expected):
    files = ("--cache-dir", tmp_path, "--cache-file", "kept", "--log-level", "info")
    with started(*files) as (process, client):
        assert answer(client, LONG) == (expected["long"][1], 0)
        assert process.stop() == 0
        assert eventually(lambda: any("kept prefixes: saved 8" in line for line in process.log)), process.log
    before = (tmp_path / "kept").read_bytes()
    with started(*files) as (process, client):
        assert any("kept prefixes: loaded 8" in line for line in process.log)
        assert answer(client, expected["longer"][0]) == (expected["longer"][1], 896)
        process.process.kill()  # no time to save
        process.process.wait()
    assert (tmp_path / "kept").read_bytes() == before
    with started(*files) as (process, client):
        assert answer(client, LONG) == (expected["long"][1], 896)


def test_a_kill_while_saving_leaves_the_old_file(tmp_path, expected):
    """Killed again and again, at any moment of it."""
    files = ("--cache-dir", tmp_path, "--cache-file", "kept")
    with started(*files) as (process, client):
        answer(client, LONG)
        assert process.stop() == 0
    for _ in range(3):
        with started(*files) as (process, client):
            assert answer(client, LONG) == (expected["long"][1], 896)
            for seed in range(20, 26):
                answer(client, tokens(2000, seed), max_tokens=1)
            process.signal()
            waiting = eventually(lambda: any(".partial-" in name for name in os.listdir(tmp_path)) or process.process.poll() is not None)
            assert waiting
            process.process.kill()
            process.process.wait()
        for path in tmp_path.glob("*.partial-*"):
            path.unlink()
    with started(*files) as (process, client):
        assert not [line for line in process.log if "refused" in line]
        assert answer(client, LONG) == (expected["long"][1], 896)


def test_options_that_cannot_work(tmp_path):
    def error_of(*arguments):
        run = subprocess.run([str(SLUICE), "serve", str(random_model()), *map(str, arguments)], capture_output=True, text=True,
                             timeout=60, check=False)
        assert run.returncode != 0
        return run.stderr

    assert "--cache-dir" in error_of("--cache-file", "a")
    assert "no such directory" in error_of("--cache-dir", tmp_path / "none")
    assert "neither . nor .." in error_of("--cache-dir", tmp_path, "--cache-file", "../a")
    assert "--cache-memory 0" in error_of("--cache-dir", tmp_path, "--cache-file", "a", "--cache-memory", 0)
