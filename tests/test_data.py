"""What tests of several folders run on: the built program's folder, and data made once per build folder.

${SLUICE_BUILD:-build/release} is the CMake build folder.
"""
import fcntl
import json
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "random-model"))

from shapes import make_config  # noqa: E402

BUILD = ROOT / os.environ.get("SLUICE_BUILD", "build/release")
SLUICE = BUILD / "sluice"
EMBEDDED = ROOT / "models" / "tiny"
TEXT_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")

# The smallest model with everything the family's text models have. There are more rows than ids.
RANDOM_SIZES = dict(vocab_size=2048, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=2,
                    num_key_value_heads=1, linear_num_key_heads=1, linear_num_value_heads=2,
                    max_position_embeddings=4096, tie_word_embeddings=True)


def made_once(name, make):
    """The folder `name` of the build folder's test data; make(folder) fills it when it is not there.

    Several pytest workers ask at the same time: one makes it, the others wait. It appears whole or not at all.
    """
    folder = BUILD / "test-data" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder


def random_config():
    """config.json of the random model: its own sizes, the embedded model's ids."""
    config = make_config("0.8b", RANDOM_SIZES, mtp=False, vision=False)
    embedded = json.loads((EMBEDDED / "config.json").read_text(encoding="utf-8"))
    config["text_config"]["eos_token_id"] = embedded["text_config"]["eos_token_id"]
    return config | {name: id for name, id in embedded.items() if name.endswith("_token_id")}


def random_model():
    """A model of random weights with the embedded model's tokenizer and template: it answers with noise and
    seldom ends by itself, and it is small enough for the slowest kernels."""
    def make(folder):
        from make_model import write_model  # needs NumPy, which not every folder's tests do
        write_model(folder, random_config(), "F32", seed=1, shard_bytes_max=0)
        for name in TEXT_FILES:
            shutil.copy(EMBEDDED / name, folder / name)
    return made_once("random", make)
