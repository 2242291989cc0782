"""Writes a checkpoint that plays a part in a conversation: another script for each of its turns.

Like scripted_model.py, with one working layer: its attention finds which of MARKERS are anywhere before, each with a
head of its own, and that chooses how the answer begins. A script says the marker of its turn, so the next turn is the
next script's whatever a client puts between them.
"""
import json
import random
import shutil
import struct
from pathlib import Path

from scripted_model import HIDDEN, PIECE, Vocabulary, write_safetensors
from test_data import EMBEDDED, TEXT_FILES, random_config

from shapes import list_tensors  # where test_data looks

MARKERS = [" Viktor", " Petra", " Dora"]  # single tokens that no client's own prompt has
IM_END = "<|im_end|>"
PIECE_MAX = 24  # characters of a token of the scripts
ONE_AT, PRESENT_AT, CODES_AT = 0, 1, 16  # dimensions: always 1; 1 where a marker is (then: where one was); signs
QUERY_AT, HEAD_DIM = 200, 256  # beyond the turned dimensions of a head
CHOICE = 60.0  # how much the turn's own successor is preferred


def call(name, **arguments):
    """The text of a call. Without the model's own token for its beginning no grammar leads it: a token has one successor,
    and that is not the one it would be led to."""
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def write_model_of_turns(directory, calls, answer, after, context):
    """One call per marker, then the answer. after: the text of the last token of every prompt."""
    directory = Path(directory)
    vocabulary = Vocabulary()
    kept = {vocabulary.spelled(text) for text in [after, *MARKERS]}
    vocabulary.learnt_last = [token for token in vocabulary.learnt_last if token not in kept]
    first, *markers = [vocabulary.ids[vocabulary.spelled(text)] for text in [after, *MARKERS]]
    end = vocabulary.added[IM_END]
    used = kept.copy()
    turns = [[first, *pieces_of(vocabulary, "It goes on,", used), marker, *pieces_of(vocabulary, f".\n\n{text}", used), end]
             for marker, text in zip(markers, calls, strict=True)]
    turns.append([first, *pieces_of(vocabulary, answer, used), end])

    config = random_config()
    config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = False
    config["text_config"].update(hidden_size=HIDDEN, max_position_embeddings=context, num_attention_heads=4)
    size = config["text_config"]["vocab_size"]
    codes, head = next(drawn for drawn in (draw(seed, size, turns, markers) for seed in range(100))
                       if says(*drawn, turns, markers))
    for name in TEXT_FILES:
        shutil.copy(EMBEDDED / name, directory / name)
    (directory / "tokenizer.json").write_text(json.dumps(vocabulary.described), encoding="utf-8")
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    values = {"model.language_model.embed_tokens.weight": codes, "lm_head.weight": head, **attention(len(markers))}
    write_safetensors(directory / "model.safetensors", list_tensors(config, "F32"),
                      {name: [[bfloat16(x) for x in row] for row in rows] for name, rows in values.items()})


def pieces_of(vocabulary, text, used):
    """Ids of tokens of which none is spelled like one in `used` or comes twice; `used` grows by them."""
    out = []
    for piece in cut(vocabulary.spelled(text), used):
        if piece in vocabulary.ids:
            vocabulary.learnt_last = [token for token in vocabulary.learnt_last if token != piece]
        else:
            vocabulary.replace_last(piece)
        out.append(vocabulary.ids[piece])
        used.add(piece)
    return out


def cut(text, used):
    """Pieces of the text, none of them in `used` or twice; None if there is no such cut."""
    if not text:
        return []
    for size in range(PIECE, min(PIECE_MAX, len(text)) + 1):
        piece = text[:size]
        rest = None if piece in used else cut(text[size:], used | {piece})
        if rest is not None:
            return [piece, *rest]
    return None


def draw(seed, size, turns, markers):
    """Rows of the embedding and of the head."""
    rng = random.Random(seed)
    codes = [[1.0] + [0.0] * (CODES_AT - 1) + [rng.choice((1.0, -1.0)) for _ in range(HIDDEN - CODES_AT)]
             for _ in range(size)]
    for i, marker in enumerate(markers):
        codes[marker][PRESENT_AT + i] = 1.0
    head = [[0.0] * HIDDEN for _ in range(size)]
    successors = {}
    for turn, tokens in enumerate(turns):
        for token, successor in zip(tokens, tokens[1:]):
            successors.setdefault(token, {}).setdefault(successor, []).append(turn)
    for token, choices in successors.items():
        for successor, at in choices.items():
            for d in range(CODES_AT, HIDDEN):
                head[successor][d] += codes[token][d]
            if len(choices) > 1:
                prefer(head[successor], at, len(markers))
    return codes, head


def prefer(row, turns, markers):
    """Adds CHOICE in these turns and takes it in the others. The turn is how many markers there were."""
    wanted = [CHOICE if turn in turns else -CHOICE for turn in range(markers + 1)]
    row[ONE_AT] += wanted[0]
    for i in range(markers):
        row[seen_at(i)] += wanted[i + 1] - wanted[i]


def seen_at(marker):
    return PRESENT_AT + 8 + marker


def says(codes, head, turns, markers):
    """Whether every token's best successor is the script's, by a good margin."""
    candidates = {token for tokens in turns for token in tokens}
    for turn, tokens in enumerate(turns):
        present = turn
        for token, successor in zip(tokens, tokens[1:]):
            present = max(present, markers.index(token) + 1) if token in markers[:turn + 1] else present
            hidden = codes[token][:]
            for i in range(present):
                hidden[seen_at(i)] = 1.0
            scores = {c: sum(a * b for a, b in zip(head[c], hidden)) for c in candidates}
            best = scores.pop(successor)
            if best < max(scores.values()) + CHOICE / 4:
                return False
    return True


def attention(markers):
    """Head i of the last layer looks for marker i and writes whether it was there."""
    prefix = "model.language_model.layers.3.self_attn."
    q = [[0.0] * HIDDEN for _ in range(4 * 2 * HEAD_DIM)]  # a head's queries, then its gates
    k, v = ([[0.0] * HIDDEN for _ in range(HEAD_DIM)] for _ in range(2))
    o = [[0.0] * (4 * HEAD_DIM) for _ in range(HIDDEN)]
    for i in range(markers):
        q[i * 2 * HEAD_DIM + QUERY_AT + i][ONE_AT] = 1.0
        k[QUERY_AT + i][PRESENT_AT + i] = 1.0
        v[i][PRESENT_AT + i] = 1.0
        o[seen_at(i)][i * HEAD_DIM + i] = 2.0  # a gate of zero lets half through
    return {prefix + "q_proj.weight": q, prefix + "k_proj.weight": k, prefix + "v_proj.weight": v,
            prefix + "o_proj.weight": o}


def bfloat16(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
