"""Pictures over HTTP with the embedded model, which has learnt to tell shapes and colours, and the official clients."""
import base64
import http.server
import io
import random
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx
import openai
import pytest
from api_description import check_response
from PIL import Image, ImageDraw
from server_process import ServerProcess
from test_data import EMBEDDED, ROOT

sys.path.insert(0, str(ROOT / "tools" / "tiny-model"))

from evaluate import ROWS, Server, make_case, percent, run_row  # noqa: E402
from pictures import COLOURS, GROUNDS  # noqa: E402
from render import Renderer  # noqa: E402

VIDEOS = ROOT / "src" / "media" / "testdata" / "videos"
OFF = {"chat_template_kwargs": {"enable_thinking": False}}
ASK = {"model": "tiny", "max_tokens": 32, "temperature": 0}


@pytest.fixture(scope="module")
def seeing(tmp_path_factory):
    root = tmp_path_factory.mktemp("media")
    process = ServerProcess("--context", 8192, "--threads", 1, "--media-root", root, "--max-images", 8,
                            "--max-image-pixels", 4, model=EMBEDDED)
    process.root = root
    yield process
    assert process.stop() == 0, "".join(process.log)


@pytest.fixture(scope="module")
def described(seeing):
    """Every whole reply is checked against docs/openapi.json."""
    with httpx.Client(base_url=seeing.url, timeout=60, event_hooks={"response": [check_response]}) as made:
        yield made


@pytest.fixture(scope="module")
def chat(seeing):
    with openai.OpenAI(base_url=seeing.url + "/v1", api_key="any", max_retries=0) as made:
        yield made


@pytest.fixture(scope="module")
def claude(seeing):
    with anthropic.Anthropic(base_url=seeing.url, api_key="any", max_retries=0) as made:
        yield made


def picture(colour="red", shape="circle", size=(128, 128), ground=0):
    image = Image.new("RGB", size, GROUNDS[ground])
    box = [size[0] // 5, size[1] // 5, size[0] * 4 // 5, size[1] * 4 // 5]
    pen = ImageDraw.Draw(image)
    (pen.ellipse if shape == "circle" else pen.rectangle)(box, fill=COLOURS[colour])
    return image


def encoded(image, kind="png"):
    file = io.BytesIO()
    image.save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


def data_uri(image, kind="png", declared=None):
    return f"data:{declared or 'image/' + kind};base64,{encoded(image, kind)}"


def part(url, **fields):
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def text(words):
    return {"type": "text", "text": words}


def user(*parts):
    return [{"role": "user", "content": list(parts)}]


def block(image):
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded(image)}}


def answer(chat, *parts, **fields):
    reply = chat.chat.completions.create(messages=user(*parts), extra_body=OFF, **ASK | fields)
    return reply.choices[0].message.content, reply.usage


def refused(described, messages, **fields):
    reply = described.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 4} | fields)
    assert reply.status_code == 400, reply.text
    assert reply.headers["x-should-retry"] == "false"
    error = reply.json()["error"]
    assert error["param"] in error["message"] or error["code"] == "context_length_exceeded"
    return error["code"], error["param"]


def test_a_pin_holds_a_picture(described):
    seen, other = (part(data_uri(picture(colour, size=(320, 256)))) for colour in ("red", "green"))
    made = described.post("/v1/cache/pins", json={"name": "picture", "messages": user(seen, text("Look at it."))} | OFF)
    assert made.status_code == 201, made.text
    assert made.json()["tokens"] == 64  # of 80 for the picture: the pin ends inside it
    for shown, hits in ((other, 0), (seen, 1)):
        described.post("/v1/chat/completions", json=ASK | OFF | {"messages": user(shown, text("What shape?"))})
        assert described.get("/v1/cache/pins/" + made.json()["id"]).json()["hits"] == hits
    described.delete("/v1/cache/pins/" + made.json()["id"])


@pytest.mark.parametrize("colour", ["red", "green", "blue", "yellow", "black", "white"])
def test_colours(chat, colour):
    said, usage = answer(chat, part(data_uri(picture(colour))), text("What colour is the circle?"))
    assert colour in said
    assert usage.prompt_tokens_details.image_tokens == 16


@pytest.mark.parametrize("shape", ["circle", "square"])
def test_shapes(claude, shape):
    message = claude.messages.create(model="tiny", max_tokens=32, extra_body={"temperature": 0}, messages=user(
        block(picture("blue", shape)), text("Which shape is blue?")))
    assert shape in message.content[0].text


def test_what_it_was_taught(seeing):
    skill, length, turns, _ = ROWS["pictures"]
    dice, renderer = random.Random("test pictures"), Renderer(str(EMBEDDED))
    cases = [make_case(dice, skill, length, turns, renderer.count) for _ in range(20)]
    results = run_row(Server(seeing.url), cases, parallel=4)
    assert percent(results, "right") >= 80, [result for result in results if not result["right"]][:3]


def test_every_dialect_and_spelling_is_the_same_prompt(chat, claude, described):
    image, question = picture("green", "square"), "What do you see?"
    expected, usage = answer(chat, part(data_uri(image)), text(question))
    for other in (part(encoded(image)), part(data_uri(image, declared="image/jpeg")), part(data_uri(image, "bmp")),
                  {"type": "image_url", "image_url": data_uri(image)}, {"type": "image", "image": data_uri(image)},
                  {"type": "input_image", "image_url": data_uri(image), "detail": "high"}):
        said, again = answer(chat, other, text(question))
        assert (said, again.prompt_tokens) == (expected, usage.prompt_tokens)
        assert again.prompt_tokens_details.cached_tokens > 0 or usage.prompt_tokens <= 64
    response = chat.responses.create(
        model="tiny", max_output_tokens=32, temperature=0, extra_body=OFF, input=[{"role": "user", "content": [
            {"type": "input_image", "image_url": data_uri(image), "detail": "auto"},
            {"type": "input_text", "text": question}]}])
    assert (response.output_text, response.usage.input_tokens) == (expected, usage.prompt_tokens)
    ask = {"model": "tiny", "messages": user(block(image), text(question))}
    message = claude.messages.create(max_tokens=32, extra_body={"temperature": 0}, **ask)
    assert message.content[0].text == expected
    assert claude.messages.count_tokens(**ask).input_tokens == usage.prompt_tokens
    tokens = described.post("/tokenize", json={"messages": user(part(data_uri(image)), text(question))} | OFF).json()
    assert tokens["count"] == usage.prompt_tokens


def test_a_stream_is_the_whole_answer(chat):
    parts = part(data_uri(picture("purple"))), text("What do you see?")
    expected, _ = answer(chat, *parts)
    stream = chat.chat.completions.create(messages=user(*parts), stream=True, extra_body=OFF, **ASK)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == expected


def test_pictures_are_told_apart_and_found_again(chat):
    def cached(colour):
        said, usage = answer(chat, part(data_uri(picture(colour, size=(256, 256)))), text("What do you see?"))
        return said, usage.prompt_tokens_details.cached_tokens
    first, _ = cached("orange")
    again, reused = cached("orange")
    assert (again, reused > 0) == (first, True)
    other, other_reused = cached("black")
    assert other != first and other_reused < reused


def test_answers_do_not_show_what_was_kept(chat):
    """Bit for bit what a server says that keeps nothing and reads prompts, pictures too, in small pieces."""
    def said(client, case):
        colour, size, question = case
        reply = client.chat.completions.create(messages=user(part(data_uri(picture(colour, size=size))), text(question)),
                                               logprobs=True, top_logprobs=5, extra_body=OFF, **ASK)
        return reply.choices[0].message.content, [
            [(one.token, one.logprob) for one in place.top_logprobs] for place in reply.choices[0].logprobs.content]
    cases = [(colour, size, question) for size in [(200, 130), (512, 512)] for colour in ["red", "blue"]
             for question in ["What do you see?", "What colour is the circle?", "Where is the circle?"]]
    cold = ServerProcess("--context", 2048, "--cache-memory", 0, "--picture-memory", 0, "--prefill-step", 37,
                         model=EMBEDDED)
    with openai.OpenAI(base_url=cold.url + "/v1", api_key="any", max_retries=0) as client:
        expected = [said(client, case) for case in cases]
    assert cold.stop() == 0, "".join(cold.log)
    for _ in range(2):
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda case: said(chat, case), cases)) == expected


def test_a_picture_between_texts_and_in_the_result_of_a_tool(chat, claude):
    image = picture("yellow", "square")
    tools = [{"name": "camera", "description": "Takes a picture.", "input_schema": {"type": "object", "properties": {}}}]
    history = [{"role": "user", "content": "What does the camera see?"},
               {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "camera", "input": {}},
                                                 {"type": "tool_use", "id": "toolu_2", "name": "camera", "input": {}}]},
               {"role": "user", "content": [
                   {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("Here:"), block(image)]},
                   {"type": "tool_result", "tool_use_id": "toolu_2", "content": "nothing"}, text("Well?")]}]
    ask = {"model": "tiny", "messages": history, "tools": tools}
    message = claude.messages.create(max_tokens=32, extra_body={"temperature": 0}, **ask)
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens \
        + message.usage.cache_creation_input_tokens == claude.messages.count_tokens(**ask).input_tokens
    response = chat.responses.create(model="tiny", max_output_tokens=32, store=False, input=[
        {"role": "user", "content": "What does the camera see?"},
        {"type": "function_call", "call_id": "c", "name": "camera", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c",
         "output": [{"type": "input_image", "image_url": data_uri(image), "detail": "auto"}]}])
    assert response.status in ("completed", "incomplete")


def test_a_conversation_goes_on_after_a_picture(chat):
    first = chat.responses.create(model="tiny", max_output_tokens=32, temperature=0, extra_body=OFF, input=[
        {"role": "user", "content": [{"type": "input_image", "image_url": data_uri(picture("blue")), "detail": "auto"},
                                     {"type": "input_text", "text": "What do you see?"}]}])
    then = chat.responses.create(model="tiny", max_output_tokens=32, temperature=0, extra_body=OFF,
                                 previous_response_id=first.id, input="What colour is the circle?")
    assert "blue" in then.output_text


def test_sizes(chat):
    def tokens(image, **fields):
        _, usage = answer(chat, {"type": "image", "image": data_uri(image)} | fields)
        return usage.prompt_tokens_details.image_tokens
    assert tokens(picture(size=(96, 64))) == 6
    assert tokens(picture(size=(1024, 1024))) == 256  # the model's own limit
    assert tokens(picture(size=(1024, 1024)), max_pixels=4096) == 4
    assert tokens(picture(size=(64, 64)), min_pixels=16384) == 16


def test_what_is_refused(described):
    at = "messages[0].content[0].image_url.url"
    good = data_uri(picture())
    assert refused(described, user(part("data:image/png;base64,AAAA"))) == ("invalid_image", at)
    assert refused(described, user(part(good[:-400]))) == ("invalid_image", at)
    assert refused(described, user(part(data_uri(Image.new("1", (4096, 4096)))))) == ("image_too_large", at)
    for url in ("http://127.0.0.1/a.png", "https://example.org/a.png", "file:///etc/passwd"):
        assert refused(described, user(part(url))) == ("media_url_not_allowed", at)
    assert refused(described, user(*[part(good)] * 9)) == ("invalid_value", at.replace("content[0]", "content[8]"))
    assert refused(described, [{"role": "system", "content": [part(good)]}, *user(text("Hi"))]) == (
        "unsupported_content", "messages[0].content[0]")
    assert refused(described, user({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}})) == (
        "unsupported_content", "messages[0].content[0]")


def test_files_of_the_media_root(seeing, described, chat):
    picture("green").save(seeing.root / "a.png")
    (seeing.root / "out").symlink_to("/etc")
    said, _ = answer(chat, part(f"file://{seeing.root}/a.png"), text("What colour is the circle?"))
    assert "green" in said
    assert refused(described, user(part(f"file://{seeing.root}/out/passwd")))[0] == "media_url_not_allowed"


@pytest.mark.parametrize("name", ["h264.mp4", "vp9.webm", "mjpeg.avi"])
def test_video_files(seeing, described, chat, name):
    """However a file is sent it is the same video; its frames say when they were, and it is found again."""
    file = (VIDEOS / name).read_bytes()
    (seeing.root / name).write_bytes(file)
    encoded_file = base64.b64encode(file).decode()
    uri, question = f"data:video/mp4;base64,{encoded_file}", text("What do you see?" * 10)
    spellings = [{"type": "video_url", "video_url": {"url": uri}}, {"type": "video", "video": uri},
                 {"type": "input_video", "video_url": uri}, {"type": "video_url", "video_url": encoded_file},
                 {"type": "video_url", "video_url": {"url": f"file://{seeing.root}/{name}"}}]
    expected, usage = answer(chat, spellings[0], question)
    images = usage.prompt_tokens_details.image_tokens
    assert images > 0
    for spelling in spellings[1:]:
        said, again = answer(chat, spelling, question)
        assert (said, again.prompt_tokens) == (expected, usage.prompt_tokens)
        assert again.prompt_tokens_details.image_tokens == images
        assert again.prompt_tokens_details.cached_tokens > 0
    prompt = described.post("/apply-template", json={"messages": user(spellings[0], question)}).json()["prompt"]
    assert re.findall(r"<([0-9.]+) seconds>", prompt)
    assert refused(described, user({"type": "video_url", "video_url": {"url": uri[:200]}}))[0] == "invalid_image"
    slower = answer(chat, spellings[0] | {"fps": 1}, question)[1]
    assert slower.prompt_tokens_details.image_tokens <= images


def test_a_named_host_has_to_be_on_the_internet():
    """Whatever its name says: nothing on this machine is fetched."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        process = ServerProcess("--context", 512, "--threads", 1, "--media-domains", "localhost,127.0.0.1",
                                model=EMBEDDED)
        try:
            with httpx.Client(base_url=process.url, event_hooks={"response": [check_response]}) as client:
                for host in ("localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "elsewhere.example"):
                    url = f"http://{host}:{web.server_port}/a.png"
                    assert refused(client, user(part(url)))[0] == "media_url_not_allowed"
        finally:
            assert process.stop() == 0
            web.shutdown()
    assert asked == []


def test_a_model_told_not_to_see():
    process = ServerProcess("--context", 512, "--threads", 1, "--no-vision", model=EMBEDDED)
    try:
        with httpx.Client(base_url=process.url, event_hooks={"response": [check_response]}) as client:
            assert client.get("/v1/models/tiny").json()["capabilities"]["vision"] is False
            assert refused(client, user(part(data_uri(picture()))))[0] == "unsupported_content"
    finally:
        assert process.stop() == 0
