"""A deterministic mixed corpus: what tokenizers get wrong, in random company."""
import random

WORDS = ("the river opens gate water value return model think answer state block cache token Zürich naïve café Ærø "
         "I'm you'll we've they'd it's can't 'S 'LL don’t ſ'ſ K'RE 3.14 0x1F 1e-9 v1.2.3 e.g. U.S. foo_bar camelCase "
         "привет мир Ελληνικά שלום مرحبا नमस्ते ไทย ภาษา 한국어 조선말 日本語 テスト 漢字 中文 简体 繁體 ﬁ ﬀ ① ½ Ⅷ ٣ ३ 〇").split()
CODE = ("for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];\n}\n", "def f(x):\n    return {\"k\": [x, None, True]}\n",
        "<div class=\"a\">\r\n  <p>&amp; text</p>\r\n</div>\r\n", "SELECT * FROM t WHERE a <> 'b' -- c\n", "#!/bin/sh\nset -eu\n",
        "template <typename T> auto f(T&& t) -> decltype(auto) { return std::forward<T>(t); }", "a->b::c<d>[e]{f}(g);;\n\n\n",
        "\\frac{a}{b} $$x^2$$ `code` **bold** ~~no~~ | a | b |\n|---|---|\n", "{\"a\": 1, \"b\": [\"\\u00e9\", \"\\n\"]}")
EMOJI = ("👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇨🇭", "❤️", "1️⃣", "😀", "🧑🏿‍🚀", "☕", "🤷‍♀️")
CONTROL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
           "<|image_pad|>", "<tts_text_bos>", "<tts_text_bos_single>", "<|audio_pad|>", "<|im_start", "|im_end|>",
           "<|im_<|im_end|>end|>", "<think", "<|fim_prefix|>", "</tool_response>", "<<think>>")
SPACES = (" ", "  ", "\t", "\n", "\r\n", "\r", "\n\n\n", " \n ", "\u00a0", "\u3000", "\u2028", "\x0b", "\x0c", "\x1c", "\x85",
          " " * 17, "\u200b", "\ufeff", "\t\t  \n")
MARKS = [chr(c) for c in (*range(0x300, 0x370), *range(0x591, 0x5B0), *range(0x64B, 0x653), 0x93C, 0x94D, 0x20D0, 0x3099,
                          0xFE0F, 0x1AB0, 0x1D165, 0xE0100)]


def random_character(rng):
    while True:
        limit = rng.choice((0x80, 0x250, 0x3000, 0x10000, 0x110000))
        code = rng.randrange(limit)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def piece(rng):
    kind = rng.randrange(12)
    if kind < 4:
        word = rng.choice(WORDS)
        return rng.choice((word, " " + word, word.upper(), word.capitalize() + rng.choice(",.;:!?")))
    if kind == 4:
        return rng.choice(CODE)
    if kind == 5:
        return rng.choice(EMOJI)
    if kind == 6:
        return rng.choice(CONTROL)
    if kind == 7:
        return rng.choice(SPACES) * rng.randrange(1, 4)
    if kind == 8:
        return rng.choice("aeoAEOUcn가각かハअत") + "".join(rng.choices(MARKS, k=rng.randrange(1, 5)))
    if kind == 9:
        return chr(rng.randrange(0x4E00, 0x9FFF)) * rng.randrange(1, 4)
    if kind == 10:
        return str(rng.randrange(10 ** rng.randrange(1, 12)))
    return "".join(random_character(rng) for _ in range(rng.randrange(1, 12)))


def text(rng, pieces):
    return "".join(piece(rng) for _ in range(pieces))


def texts(seed, count, pieces_max):
    rng = random.Random(seed)
    return [text(rng, rng.randrange(1, pieces_max)) for _ in range(count)]
