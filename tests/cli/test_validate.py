"""`sluice validate`: the report in all its forms, and that what is broken is found by the check that should find it."""
import contextlib
import json
import shutil
import struct
import threading
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from program import NO_TOKENIZER, RANDOM, ROOT, assert_error, sluice, start
from test_data import EMBEDDED

HF_FLAT = ROOT / "tests" / "goldens" / "hf_flat"
GOLDEN = ROOT / "tests" / "goldens" / "validation_hf_flat.json"
SMALL = ("--quick", "--rounds", 1, "--requests", 5, "--prompt-tokens", 100, "--long", 300, "--threads", 1, "--quiet")
VOID = {"meta", "link", "br", "hr", "img", "input"}
SELF_CLOSING = {"line", "polyline"}  # of SVG


def checks_of(report):
    return {check["id"]: check for check in report["checks"]}


def validate_json(*arguments):
    run = sluice("validate", *arguments, *SMALL, "--json")
    assert run.returncode in (0, 1), run.stderr
    report = json.loads(run.stdout)
    assert (run.returncode == 0) == report["pass"]
    return report


class Page(HTMLParser):
    """Whether tags are closed in order, and what the page refers to."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.text = [], set(), set(), [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                assert value not in self.ids
                self.ids.add(value)
            if name in ("href", "src", "action", "data", "xlink:href"):
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in SELF_CLOSING, tag
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One run of everything on the random model: (run, report, page text)."""
    folder = tmp_path_factory.mktemp("validate")
    run = sluice("validate", RANDOM, *SMALL, "--json", folder / "r.json", "--html", folder / "r.html")
    return run, json.loads((folder / "r.json").read_text()), (folder / "r.html").read_text()


def test_everything_holds_on_random_weights(whole):
    run, report, _ = whole
    assert run.returncode == 0, run.stdout
    assert run.stdout.endswith("\npass\n") and report["pass"] is True
    checks = checks_of(report)
    assert {id for id, check in checks.items() if check["outcome"] == "skipped"} == {
        "golden", "reference", "needles"}
    assert checks["isa"]["counts"]["compared"] >= 1 and checks["cuts"]["counts"]["compared"] == 6
    assert checks["cache"]["counts"]["compared"] == 9
    assert len(checks["gaps"]["table"]["rows"]) == 3 and int(checks["gaps"]["table"]["rows"][-1][2]) > 0


def test_the_report_says_what_was_measured(whole):
    _, report, _ = whole
    assert report["machine"]["CPU"] and report["model"]["server"].startswith("sluice ")
    for plot in report["plots"]:
        for series in plot["series"]:
            assert len(series["points"]) == 3 and all(y > 0 for _, y in series["points"]), plot
    assert [{part["name"] for part in bar["parts"]} for bar in report["memory"]] == [
        {"weights", "workspace", "KV", "state"}, {"kv", "state", "free"}]
    for check in report["checks"]:
        assert check["proves"] and check["summary"], check
        for row in check.get("table", {"rows": []})["rows"]:
            assert len(row) == len(check["table"]["columns"])


def test_the_cache_table_shows_reuse(whole):
    _, report, _ = whole
    table = checks_of(report)["cache"]["table"]
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    assert all(row["equal"] == "yes" for row in rows)
    assert all(int(row["reused"]) >= int(row["at least"]) > 0 for row in rows), rows


def test_the_page_is_whole_and_alone(whole):
    _, report, text = whole
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == [] and "script" not in page.tags and "link" not in page.tags
    assert page.links and all(link.removeprefix("#") in page.ids and link.startswith("#") for link in page.links)
    assert "http://" not in text and "https://" not in text and "url(" not in text and "@import" not in text
    for check in report["checks"]:
        assert check["proves"] in page.text and check["summary"] in page.text
    assert "svg" in page.tags


def test_a_running_server_is_checked_without_a_model():
    server = start("serve", RANDOM, "--port", "0", "--quiet", "--threads", "1", "--log-level", "error")
    try:
        url = server.stdout.readline().removeprefix("listening on ").strip()
        threading.Thread(target=server.stdout.read, daemon=True).start()
        report = validate_json("--url", url, "--only", "isa,rates")
    finally:
        server.terminate()
        server.wait(timeout=60)
    checks = checks_of(report)
    assert (checks["isa"]["outcome"], checks["rates"]["outcome"]) == ("skipped", "pass")
    assert report["subject"] == url


class Foreign(BaseHTTPRequestHandler):
    """A server that is not Sluice: every answer is `word`, or, where that is empty, another one each time."""
    protocol_version = "HTTP/1.1"
    word = "yes"
    asked = 0

    def log_message(self, *arguments):
        pass

    def reply(self, kind, body, status=200):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        known = self.path == "/v1/models"
        self.reply("application/json", json.dumps({"data": [{"id": "other"}]}).encode(), 200 if known else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).asked += 1
        chunks = [{"choices": [{"index": 0, "delta": {"content": self.word or str(self.asked)}, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                  {"choices": [], "usage": {"prompt_tokens": len(body) // 4, "completion_tokens": 1}}]
        events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.reply("text/event-stream", events.encode())


@contextlib.contextmanager
def foreign(word):
    handler = type("Handler", (Foreign,), {"word": word})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_reuse_is_not_required_of_others():
    with foreign("yes") as url:
        report = validate_json("--url", url, "--only", "needles,cache,rates,gaps")
    checks = checks_of(report)
    assert report["pass"] is True and report["model"]["server"] == "not Sluice"
    assert (checks["gaps"]["outcome"], checks["gaps"]["summary"]) == ("skipped", "answers come in one piece")
    assert (checks["needles"]["outcome"], checks["cache"]["outcome"]) == ("skipped", "pass")


def test_answers_that_differ_are_found_everywhere():
    with foreign("") as url:
        report = validate_json("--url", url, "--only", "needles,cache")
    checks = checks_of(report)
    assert report["pass"] is False
    assert (checks["needles"]["finding_count"], checks["cache"]["finding_count"]) == (2, 12)
    assert len(checks["cache"]["table"]["rows"]) == 9
    assert "differs from the same request without the cache" in checks["cache"]["findings"][0]


def test_nobody_answers_at_the_url():
    assert_error(sluice("validate", "--url", "http://127.0.0.1:9", "--only", "rates"), 1, "127.0.0.1")


def test_a_golden_of_another_implementation_holds():
    check = checks_of(validate_json(HF_FLAT, "--only", "golden", "--golden", GOLDEN))["golden"]
    assert (check["outcome"], check["counts"]["compared"]) == ("pass", 32)


def test_a_wrong_golden_is_found(tmp_path):
    golden = json.loads(GOLDEN.read_text())
    golden["cases"][0]["greedy_ids"][5] ^= 1
    path = tmp_path / "golden.json"
    path.write_text(json.dumps(golden))
    report = validate_json(HF_FLAT, "--only", "golden", "--golden", path)
    check = checks_of(report)["golden"]
    assert report["pass"] is False and check["outcome"] == "fail"
    assert check["findings"][0].startswith("case 0: token 5 of the answer is ")


@pytest.mark.parametrize("text", ["", "{}", "[" * 100000, '{"cases": [1]}', '{"cases": [{"prompt_ids": "1", "greedy_ids": [1]}]}',
                                  '{"cases": [{"prompt_ids": [1.5], "greedy_ids": [1]}]}', '{"margin_min": "1", "cases": []}',
                                  '{"cases": [{"prompt_ids": [%s1], "greedy_ids": [1]}]}' % ("1," * 4095), '{"cases": []}', '{"cases": [{"prompt_ids": [1], "greedy_ids": [250]}]}',
                                  '{"cases": [{"prompt_ids": [1], "greedy_ids": [2], "margins": []}]}'])
def test_a_golden_that_is_none_is_an_error(tmp_path, text):
    path = tmp_path / "golden.json"
    path.write_text(text)
    assert_error(sluice("validate", HF_FLAT, "--only", "golden", "--golden", path, "--quiet"), 1, "golden.json")


def test_the_embedded_model_answers_as_another_implementation_does():
    """Fails after a training until tools/goldens/make_validation_golden.py has run again; its first lines say how."""
    check = checks_of(validate_json("--only", "golden"))["golden"]
    assert check["outcome"] == "pass" and check["counts"]["compared"] > 200
    prompts = [int(row[1]) for row in check["table"]["rows"]]
    assert len(prompts) >= 24 and min(prompts) == 1 and max(prompts) > 1000
    assert (EMBEDDED / "validation_golden.json").stat().st_size < 20000


def test_stored_answers_are_of_bf16_weights():
    check = checks_of(validate_json("--only", "golden", "--preset", "int4"))["golden"]
    assert check["outcome"] == "skipped" and "validation_golden.json" in check["summary"]


def test_a_golden_beside_the_weights_is_used_and_one_that_is_named_goes_first(tmp_path):
    model = copy_of(HF_FLAT, tmp_path)
    (model / "validation_golden.json").write_text("{}")
    assert_error(sluice("validate", model, "--only", "golden", "--quiet"), 1, "validation_golden.json", "cases")
    assert checks_of(validate_json(model, "--only", "golden", "--golden", GOLDEN))["golden"]["outcome"] == "pass"


def test_equal_weights_are_no_distance_apart():
    check = checks_of(validate_json(RANDOM, "--only", "reference", "--reference", RANDOM))["reference"]
    assert check["outcome"] == "pass" and check["figures"]["kl_nats"] == 0
    assert check["counts"]["same_token"] == check["counts"]["positions"] == 1023
    assert check["figures"]["perplexity"] == check["figures"]["reference_perplexity"] > 1


def test_what_quantising_costs_is_measured_and_is_no_failure(tmp_path):
    text = tmp_path / "text"
    text.write_text("<|im_start|>user\nWhat is new?<|im_end|>\n" * 9)
    check = checks_of(validate_json(RANDOM, "--preset", "int4", "--only", "reference", "--reference", RANDOM,
                                    "--reference-text", text))["reference"]
    figures, counts = check["figures"], check["counts"]
    assert check["outcome"] == "pass" and str(text) in check["summary"]
    assert 0 < figures["kl_nats"] < figures["kl_nats_max"] and 0 < counts["same_token"] < counts["positions"]
    worst = [dict(zip(check["table"]["columns"], row)) for row in check["table"]["rows"]]
    assert len(worst) == 8 and any("<|im_start|>user" in row["after"] for row in worst)
    divergences = [float(row["KL"]) for row in worst]
    assert divergences == sorted(divergences, reverse=True) and divergences[0] > figures["kl_nats"]


def packed(folder):
    run = sluice("pack", RANDOM, "-o", folder, "--preset", "int4", "--quiet")
    assert run.returncode == 0, run.stderr
    return folder


def test_a_packed_model_is_what_its_reference_makes(tmp_path):
    model = packed(tmp_path / "packed")
    check = checks_of(validate_json(model, "--only", "reference", "--reference", RANDOM))["reference"]
    assert check["outcome"] == "pass" and "the same bits as the reference packed as int4 here" in check["summary"]


def test_tensors_packed_in_the_wrong_place_are_found(tmp_path):
    """Of the right shape and with the right sums: no other check of the files can know."""
    model = packed(tmp_path / "packed")
    path = model / "sluice.json"
    manifest = json.loads(path.read_text())
    tensors = {tensor["name"].split("model.")[-1]: tensor for tensor in manifest["tensors"]}
    gate, up = tensors["layers.0.mlp.gate_proj.weight"], tensors["layers.0.mlp.up_proj.weight"]
    gate["name"], up["name"] = up["name"], gate["name"]
    path.write_text(json.dumps(manifest))
    checks = checks_of(validate_json(model, "--only", "artifact,cuts,reference", "--reference", RANDOM))
    assert {id: check["outcome"] for id, check in checks.items()} == {
        "artifact": "pass", "cuts": "pass", "reference": "fail"}
    assert "not what packing it as int4 makes" in checks["reference"]["findings"][0]


def test_other_weights_are_found(tmp_path):
    model = copy_of(RANDOM, tmp_path)
    path = model / "model.safetensors"
    header, data = weights(path)
    begin, end = header[next(name for name in header if name.endswith("layers.0.input_layernorm.weight"))]["data_offsets"]
    content = bytearray(path.read_bytes())
    content[data + begin:data + end] = struct.pack("<f", -2.0) * ((end - begin) // 4)  # the norm adds 1: the sign turns
    path.write_bytes(content)
    check = checks_of(validate_json(model, "--only", "reference", "--reference", RANDOM))["reference"]
    assert check["outcome"] == "fail" and "made of other weights" in check["findings"][0]


@pytest.mark.parametrize("reference, words", [
    ("nowhere", "nowhere"), (__file__, "test_validate.py"), (NO_TOKENIZER, "vocab_size 256")])
def test_a_reference_that_is_none_is_an_error(reference, words):
    assert_error(sluice("validate", RANDOM, "--only", "reference", "--reference", reference, "--quiet"), 1, words)


@pytest.mark.parametrize("content, words", [(b"", "0 tokens"), (b"a", "1 token"), (b"\xff\xfe", "UTF-8"),
                                            (b" " * ((8 << 20) + 1), "8388608")])
def test_a_text_that_cannot_be_compared_is_an_error(tmp_path, content, words):
    path = tmp_path / "text"
    path.write_bytes(content)
    run = sluice("validate", RANDOM, "--only", "reference", "--reference", RANDOM, "--reference-text", path, "--quiet")
    assert_error(run, 1, words)


def test_a_text_needs_a_reference():
    assert_error(sluice("validate", RANDOM, "--reference-text", "x"), 2, "--reference")


@pytest.mark.parametrize("flag", ["--golden", "--reference", "--reference-text"])
@pytest.mark.parametrize("path", ["nowhere", "/", "/dev/null", "/dev/zero"])
def test_what_is_no_file_is_an_error(flag, path):
    more = ["--reference", RANDOM] if flag == "--reference-text" else []
    run = sluice("validate", RANDOM, "--only", "golden,reference", flag, path, *more, "--quiet")
    assert_error(run, 1, path)


def copy_of(model, folder):
    copy = folder / "model"
    shutil.copytree(model, copy)
    return copy


def weights(path):
    """(header, offset of the data) of a safetensors file."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + size]), 8 + size


def test_cut_weights_are_found(tmp_path):
    model = copy_of(NO_TOKENIZER, tmp_path)
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    report = validate_json(model)
    checks = checks_of(report)
    assert report["pass"] is False and checks["artifact"]["outcome"] == "fail"
    assert "model.safetensors" in checks["artifact"]["findings"][0]
    assert all(check["outcome"] == "skipped" for id, check in checks.items() if id != "artifact")


@pytest.mark.parametrize("what, value, words", [("nan", b"\xc0\x7f", "finite"), ("huge", b"\x00\x7b", "no trained weights")])
def test_planted_values_are_found(tmp_path, what, value, words):
    model = copy_of(NO_TOKENIZER, tmp_path)
    path = model / "model.safetensors"
    header, data = weights(path)
    name = next(n for n in sorted(header) if n.endswith("mlp.up_proj.weight") and header[n]["dtype"] == "BF16")
    content = bytearray(path.read_bytes())
    at = data + header[name]["data_offsets"][0] + 2 * 7
    content[at:at + 2] = value
    path.write_bytes(content)
    checks = checks_of(validate_json(model, "--only", "artifact"))
    findings = checks["artifact"]["findings"]
    assert len(findings) == 1 and name in findings[0] and words in findings[0], (what, findings)


def test_a_hole_in_a_matrix_is_found(tmp_path):
    model = copy_of(NO_TOKENIZER, tmp_path)
    path = model / "model.safetensors"
    header, data = weights(path)
    name = next(n for n in sorted(header) if n.endswith("mlp.down_proj.weight"))
    row_bytes = 2 * header[name]["shape"][1]
    content = bytearray(path.read_bytes())
    at = data + header[name]["data_offsets"][0] + 3 * row_bytes
    content[at:at + row_bytes] = bytes(row_bytes)
    path.write_bytes(content)
    findings = checks_of(validate_json(model, "--only", "artifact"))["artifact"]["findings"]
    assert len(findings) == 1 and name in findings[0] and "first row 3" in findings[0]


def test_without_a_tokenizer_the_server_is_skipped():
    checks = checks_of(validate_json(NO_TOKENIZER, "--only", "cuts,cache"))
    assert (checks["cuts"]["outcome"], checks["cache"]["outcome"]) == ("pass", "skipped")
    assert "tokenizer" in checks["cache"]["summary"]


def test_the_list_and_unknown_checks():
    run = sluice("validate", "--list")
    assert run.returncode == 0
    assert [line.split()[0] for line in run.stdout.splitlines()] == [
        "artifact", "isa", "cuts", "batch", "reset", "golden", "reference", "needles", "cache", "rates",
        "gaps"]
    assert_error(sluice("validate", RANDOM, "--only", "cats"), 1, "cats", "cuts")
    assert_error(sluice("validate", RANDOM, "--only", "isa", "--skip", "isa"), 1, "leave no check")


def test_a_report_that_cannot_be_written_is_an_error(tmp_path):
    run = sluice("validate", NO_TOKENIZER, "--only", "artifact", "--html", tmp_path / "no" / "r.html", "--quiet")
    assert run.returncode == 1 and "r.html" in run.stderr
