"""Asks the built program about random pictures and videos and compares every stage with transformers.

    python3 tools/goldens/check_pictures.py [--model DIR] [--build DIR] [--cases N] [--seed S]

A case is a conversation with one to three pictures of odd sizes and extreme shapes, or a video, or both.
Compared, in float32: the pixels (decoded, resized) with the image processor, bit for bit; the positions, exactly; the
rows of the vision encoder; the logprobs of the next tokens; the greedy tokens, except where the two best are nearer
than the tolerance. Packages: requirements.txt beside this file, and Pillow; CPU only, no network.
"""
import argparse
import base64
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

os.environ["HF_HUB_OFFLINE"] = "1"

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "oracle"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from transformers import Qwen2VLImageProcessorPil, Qwen3_5ForConditionalGeneration  # noqa: E402

from qwen3_5_oracle import geometry, read_safetensors, write_safetensors  # noqa: E402

ROWS_RMS_MAX = 0.006  # relative, as in tests/model/test_vision.py
LOGPROBS_MAX = 0.3  # absolute, of the tokens among both's best; activations of the program are bf16
NEW_TOKENS, BEST = 6, 8


def columns_first(image, width, height):
    """The bicubic resize of every Pillow before 13 (docs/MEDIA.md)."""
    return image.resize((width, image.height), Image.Resampling.BICUBIC).resize((width, height), Image.Resampling.BICUBIC)


def make_picture(rng, width, height):
    coarse = rng.integers(0, 256, (height // 11 + 2, width // 7 + 2, 3), np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR)).astype(int)
    return Image.fromarray(np.clip(smooth + rng.integers(-20, 21, smooth.shape), 0, 255).astype(np.uint8))


def random_size(rng):
    shape = rng.integers(4)
    if shape == 0:  # as thin as allowed
        thin = int(rng.integers(1, 6))
        long = int(rng.integers(100 * thin, 200 * thin + 1))
        return (long, thin) if rng.random() < 0.5 else (thin, long)
    if shape == 1:
        return tuple(int(side) for side in rng.integers(1, 40, 2))
    if shape == 2:
        return tuple(int(side) for side in rng.integers(400, 1500, 2))
    return tuple(int(side) for side in rng.integers(40, 400, 2))


def data_uri(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def random_case(rng):
    """Parts of the message, and of each picture or video its kind and frames."""
    parts, media = [], []
    kinds = ["image"] * int(rng.integers(1, 4)) if rng.random() < 0.6 else ["video"]
    if kinds == ["video"] and rng.random() < 0.5:
        kinds.insert(int(rng.integers(2)), "image")
    for kind in kinds:
        width, height = random_size(rng)
        if kind == "video":
            width, height = int(rng.integers(33, 300)), int(rng.integers(33, 300))
        frames = [make_picture(rng, width, height) for _ in range(int(rng.integers(2, 7)) if kind == "video" else 1)]
        media.append((kind, frames))
        parts.append({"type": "text", "text": "".join(rng.choice(list("abc de\n"), int(rng.integers(1, 12))))})
        parts.append({"type": "video", "video": [data_uri(frame) for frame in frames], "fps": 2} if kind == "video"
                     else {"type": "image_url", "image_url": {"url": data_uri(frames[0])}})
    parts.append({"type": "text", "text": "What colour is it?"})
    return parts, media


class Server:
    def __init__(self, program, model):
        self.process = subprocess.Popen([program, "serve", model, "--port", "0", "--context", "8192", "--quiet"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.wait()

    def wait(self):
        while True:
            try:
                return urllib.request.urlopen(self.url + "/ready").close()
            except urllib.error.HTTPError:
                pass

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request))

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Checker:
    def __init__(self, arguments):
        self.build = pathlib.Path(arguments.build)
        self.model_directory = arguments.model
        self.server = Server(self.build / "sluice", arguments.model)
        self.model = Qwen3_5ForConditionalGeneration.from_pretrained(arguments.model, dtype=torch.float32).eval()
        self.processor = Qwen2VLImageProcessorPil.from_pretrained(arguments.model)
        self.worst = {"rows, relative rms": 0.0, "logprobs": 0.0}
        self.counts = {"pictures": 0, "pictures that Pillow 13 resizes in another order": 0, "tokens": 0, "near ties": 0}

    def tool(self, name, *arguments, given=None):
        return subprocess.run([self.build / name, *arguments], input=given, capture_output=True, text=True, check=True).stdout

    def seen(self, frames, kind, folder):
        """What the encoder sees of them: uint8 [frames, height, width, 3], by the program's own resize."""
        width, height = frames[0].size
        low, high = ((self.processor.size["shortest_edge"], self.processor.size["longest_edge"]) if kind == "image"
                     else (4096, 25165824))
        size = json.loads(self.tool("media_tool", given=json.dumps(
            {"op": "encoder_size", "width": width, "height": height, "frames": len(frames), "budget": [low, high]}) + "\n"))
        made = []
        for frame in frames:
            (folder / "in").write_bytes(np.asarray(frame).tobytes())
            self.tool("media_tool", given=json.dumps(
                {"op": "resize", "path": str(folder / "in"), "from": [width, height],
                 "to": [size["width"], size["height"]], "out": str(folder / "out")}) + "\n")
            made.append(np.frombuffer((folder / "out").read_bytes(), np.uint8).reshape(size["height"], size["width"], 3))
            assert (made[-1] == np.asarray(columns_first(frame, size["width"], size["height"]))).all(), "resize"
        return np.stack(made)

    def check_pixels(self, image, seen):
        """The same patches as those of the image processor."""
        self.counts["pictures"] += 1
        theirs = self.processor(images=[image], return_tensors="pt")
        patches, grid = geometry.patchify(geometry.normalise(seen[0])[None])
        assert theirs["image_grid_thw"].tolist() == [list(grid)], "grid"
        if np.abs(theirs["pixel_values"].numpy() - patches).max() > 1e-6:
            whole = image.resize((seen.shape[2], seen.shape[1]), Image.Resampling.BICUBIC)
            assert (np.asarray(whole) != seen[0]).any(), "pixels"
            self.counts["pictures that Pillow 13 resizes in another order"] += 1

    def rows(self, inputs, folder):
        """Of the built encoder, in order."""
        write_safetensors(folder / "given", {f"{i:03}": pixels for i, pixels in enumerate(inputs)})
        self.tool("vision_tool", self.model_directory, folder / "given", folder / "rows")
        made = read_safetensors(folder / "rows")
        return np.concatenate([made[name] for name in sorted(made)])

    def check(self, parts, media, folder):
        images, videos, inputs, image_grids, video_grids = [], [], [], [], []
        for kind, frames in media:
            seen = self.seen(frames, kind, folder)
            if kind == "image":
                self.check_pixels(frames[0], seen)
            elif len(seen) % 2:
                seen = np.concatenate([seen, seen[-1:]])
            groups = [seen[i:i + 2] for i in range(0, len(seen), 2)]
            patches, grid = geometry.patchify(np.stack([geometry.normalise(frame) for frame in seen]))
            (images if kind == "image" else videos).append(torch.tensor(patches, dtype=torch.float32))
            (image_grids if kind == "image" else video_grids).append(grid)
            inputs += [(kind, group) for group in groups]
        self.compare_rows(images, videos, image_grids, video_grids, inputs, folder)
        messages = [{"role": "user", "content": parts}]
        chat = {"messages": messages, "chat_template_kwargs": {"enable_thinking": False}}
        ids = self.server.post("/tokenize", chat)["tokens"]
        arguments = self.arguments_of(ids, images, videos, image_grids, video_grids)
        self.compare_positions(ids, arguments, inputs)
        answer = self.server.post("/v1/chat/completions", chat | {
            "temperature": 0, "max_tokens": NEW_TOKENS, "logprobs": True, "top_logprobs": BEST, "return_token_ids": True})
        self.compare_answer(ids, arguments, answer["choices"][0])

    def arguments_of(self, ids, images, videos, image_grids, video_grids):
        config = self.model.config
        types = [1 if i == config.image_token_id else 2 if i == config.video_token_id else 0 for i in ids]
        arguments = {"mm_token_type_ids": torch.tensor([types])}
        if images:
            arguments |= {"pixel_values": torch.cat(images), "image_grid_thw": torch.tensor(image_grids)}
        if videos:
            arguments |= {"pixel_values_videos": torch.cat(videos), "video_grid_thw": torch.tensor(video_grids)}
        return arguments

    def compare_rows(self, images, videos, image_grids, video_grids, inputs, folder):
        with torch.no_grad():
            for kind, pixels, grids in (("image", images, image_grids), ("video", videos, video_grids)):
                if pixels:
                    theirs = self.model.model.visual(torch.cat(pixels), torch.tensor(grids)).pooler_output
                    ours = self.rows([group for of, group in inputs if of == kind], folder)
                    theirs = (torch.cat(theirs) if isinstance(theirs, (tuple, list)) else theirs).numpy()
                    assert ours.shape == theirs.shape, "rows"
                    rms = float(np.sqrt(((ours - theirs) ** 2).mean() / (theirs ** 2).mean()))
                    self.worst["rows, relative rms"] = max(self.worst["rows, relative rms"], rms)

    def compare_positions(self, ids, arguments, inputs):
        theirs, _ = self.model.model.get_rope_index(
            torch.tensor([ids]), arguments["mm_token_type_ids"], arguments.get("image_grid_thw"),
            arguments.get("video_grid_thw"))
        config, spans, last = self.model.config, [], 0
        for at, token in enumerate(ids):
            if token in (config.image_token_id, config.video_token_id) and token != last:
                height, width = inputs[len(spans)][1].shape[1:3]
                spans.append([at, height // 16, width // 16])
            last = token
        assert len(spans) == len(inputs), "spans"
        ours = json.loads(self.tool("vision_tool", "positions", json.dumps(spans), str(len(ids))))
        assert theirs[:, 0].T.tolist() == ours, "positions"

    def compare_answer(self, ids, arguments, choice):
        tokens = list(choice["token_ids"])
        with torch.no_grad():
            whole = ids + tokens[:-1]
            types = torch.zeros(1, len(whole), dtype=torch.long)
            types[:, :len(ids)] = arguments["mm_token_type_ids"]
            logits = self.model(input_ids=torch.tensor([whole]), **arguments | {"mm_token_type_ids": types}).logits[0]
        theirs = torch.log_softmax(logits[len(ids) - 1:].float(), -1).numpy()
        for row, entry, token in zip(theirs, choice["logprobs"]["content"], tokens):
            self.counts["tokens"] += 1
            self.worst["logprobs"] = max(self.worst["logprobs"], abs(float(row[token]) - entry["logprob"]))
            best = int(row.argmax())
            if best != token:
                assert row[best] - row[token] < LOGPROBS_MAX, f"greedy token {token}, want {best}"
                self.counts["near ties"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(ROOT / "models" / "tiny"))
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    checker = Checker(arguments)
    failed = 0
    try:
        for case in range(arguments.cases):
            parts, media = random_case(np.random.default_rng([arguments.seed, case]))
            with tempfile.TemporaryDirectory() as folder:
                try:
                    checker.check(parts, media, pathlib.Path(folder))
                except AssertionError as wrong:
                    failed += 1
                    print(f"case {case}: {wrong}: {[(kind, len(frames), frames[0].size) for kind, frames in media]}")
    finally:
        checker.server.stop()
    for what, value in (checker.worst | checker.counts).items():
        print(f"{what}: {value:.5f}" if isinstance(value, float) else f"{what}: {value}")
    failed += checker.worst["rows, relative rms"] > ROWS_RMS_MAX
    failed += checker.worst["logprobs"] > LOGPROBS_MAX
    print(f"{arguments.cases} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
