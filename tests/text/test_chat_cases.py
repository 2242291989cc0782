"""The frozen chat cases, byte for byte: with models/tiny's own template (and its variants for Qwen3.5)
and with the published templates where a package with them can be had."""
import pytest

import chat_cases
from conftest import ROOT

TINY = ROOT / "models" / "tiny"


@pytest.fixture(scope="module")
def tools(start_tool, small_tokenizer, tmp_path_factory):
    """One text_tool per variant of the template that chat_cases.json knows."""
    source = (TINY / "chat_template.jinja").read_text(encoding="utf-8")

    def variant(name, old, new):
        assert source.count(old) == 1
        directory = tmp_path_factory.mktemp(name)
        (directory / "chat_template.jinja").write_text(source.replace(old, new), encoding="utf-8")
        return start_tool(small_tokenizer, directory)

    off = "'<think>\\n\\n</think>\\n\\n' if enable_thinking is defined and enable_thinking is false else '<think>\\n'"
    on = "'<think>\\n' if enable_thinking is defined and enable_thinking is true else '<think>\\n\\n</think>\\n\\n'"
    as_json = "value if value is string else value | tojson"
    as_text = "value | tojson if value is mapping or (value is sequence and value is not string) else value | string"
    return {
        "qwen3.6": start_tool(small_tokenizer, TINY),
        "qwen3.5-small": variant("small", off, on),
        "qwen3.5-large": variant("large", as_json, as_text),
    }


@pytest.mark.parametrize("case", chat_cases.DATA["cases"], ids=lambda case: f"{case['template']}: {case['name']}")
def test_own_template(tools, case):
    chat_cases.check(tools[case["template"]], case, published=False)


@pytest.mark.parametrize("name, package_name", [("qwen3.6", "qwen3.6"), ("qwen3.5-large", "qwen3.5")])
def test_published_template(start_tool, small_tokenizer, published_templates, name, package_name):
    tool = start_tool(small_tokenizer, published_templates[package_name])
    cases = chat_cases.cases(name)
    assert cases
    for case in cases:
        chat_cases.check(tool, case, published=True)
