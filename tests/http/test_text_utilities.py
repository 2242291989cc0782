"""What a prompt is made of: tokens, text, template; and what the server says about its model."""
import pytest

CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi!"}]}


def post(http, path, body, status=200):
    reply = http.post(path, json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


@pytest.mark.parametrize("text", ["Hello world", "", "é 漢字 \U0001f469\u200d\U0001f680 \r\n\t x", "<|im_start|>user"])
@pytest.mark.parametrize("key", ["prompt", "content"])
def test_tokenize_and_back(http, text, key):
    made = post(http, "/tokenize", {key: text})
    assert made["count"] == len(made["tokens"])
    assert made["max_model_len"] == 2048 and made["token_strs"] is None
    assert post(http, "/detokenize", {"tokens": made["tokens"]}) == {"prompt": text, "content": text}


def test_control_tokens_are_tokens_unless_told_otherwise(http):
    parsed = post(http, "/v1/tokenize", {"prompt": "<|im_end|>", "return_token_strs": True})
    assert parsed["count"] == 1 and parsed["token_strs"] == ["<|im_end|>"]
    literal = post(http, "/tokenize", {"prompt": "<|im_end|>", "parse_special": False})
    assert literal["count"] > 1
    assert post(http, "/detokenize", {"tokens": literal["tokens"]})["prompt"] == "<|im_end|>"


def test_pieces_are_text_or_bytes(http):
    text = "ab \U0001f469\u200d\U0001f680"
    made = post(http, "/tokenize", {"content": text, "with_pieces": True})
    pieces = [token["piece"] for token in made["tokens"]]
    joined = b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces)
    assert joined.decode() == text
    plain = post(http, "/tokenize", {"content": text})
    assert [token["id"] for token in made["tokens"]] == plain["tokens"]


def test_the_template_is_the_prompt(http):
    made = post(http, "/apply-template", CHAT | {"return_tokens": True})
    assert made["prompt"] == ("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n"
                              "<|im_start|>assistant\n<think>\n")
    assert made["reasoning_open"] is True
    assert made["tokens"] == post(http, "/tokenize", CHAT)["tokens"]
    off = post(http, "/apply-template", CHAT | {"chat_template_kwargs": {"enable_thinking": False}})
    assert off["reasoning_open"] is False and "tokens" not in off
    assert off["prompt"].endswith("<think>\n\n</think>\n\n")
    reply = post(http, "/v1/chat/completions", CHAT | {"max_tokens": 1, "return_token_ids": True})
    assert reply["prompt_token_ids"] == made["tokens"]


@pytest.mark.parametrize("path, body, param", [
    ("/tokenize", {}, "prompt"), ("/tokenize", {"prompt": 5}, "prompt"), ("/tokenize", {"messages": []}, "messages"),
    ("/detokenize", {}, "tokens"), ("/detokenize", {"tokens": [-1]}, "tokens[0]"),
    ("/detokenize", {"tokens": ["1"]}, "tokens[0]"), ("/apply-template", {}, "messages"),
    ("/v1/chat/completions/input_tokens", {"messages": [{"role": "x"}]}, "messages[0].role")])
def test_errors_name_the_field(http, path, body, param):
    assert post(http, path, body, 400)["error"]["param"] == param


def test_ignored_fields_are_listed(http):
    for path, body in [("/tokenize", {"prompt": "x"}), ("/apply-template", CHAT),
                       ("/v1/chat/completions/input_tokens", CHAT)]:
        reply = http.post(path, json=body | {"unknown": 1})
        assert reply.headers["x-ignored-params"] == "unknown"


@pytest.mark.parametrize("path", ["/v1/embeddings", "/embeddings", "/v1/rerank", "/v1/moderations", "/v1/files",
                                  "/v1/audio/speech", "/v1/images/generations", "/v1/batches"])
def test_what_this_model_cannot_do_is_a_client_error(http, path):
    error = post(http, path, {"input": "x"}, 400)["error"]
    assert error["code"] == "unsupported_endpoint"
    assert "generation model" in error["message"]


def test_one_model_object_for_all_clients(http):
    listing = http.get("/v1/models").json()
    model = listing["data"][0]
    assert listing["object"] == "list" and listing["has_more"] is False
    assert listing["first_id"] == listing["last_id"] == model["id"] == "random"
    assert http.get("/v1/models/random").json() == model
    assert model["object"] == model["type"] == "model"
    assert model["capabilities"] == {"tools": True, "reasoning": True, "vision": False}
    assert model["max_model_len"] == model["context_length"] == model["max_input_tokens"] == 2048


def test_props(http):
    props = http.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert props["total_slots"] == 4
    assert "<|im_start|>" in props["chat_template"]
    assert props["modalities"] == {"vision": False, "audio": False}
