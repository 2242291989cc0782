"""Real coding agents at work, against a model that plays its part: not part of ./test.

    npm install --prefix DIR @anthropic-ai/claude-code @openai/codex opencode-ai @qwen-code/qwen-code \
        cline @continuedev/cli
    tests/http/agents.py --bin DIR/node_modules/.bin [AGENT...]

Each agent is asked to change a file. The model (scripted_turns.py) has it read the file, edit it and run a command, then
says that it is done. Checked are the file, the agent's exit status and last words, and that every turn but the first found
at least 90 % of its prompt computed. What is in the agent's own prompts, tools and headers is the agent's: nothing is
recorded. The agents run without asking anybody: use a machine where they may.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripted_turns import call, write_model_of_turns  # noqa: E402
from server_process import ServerProcess  # noqa: E402

TASK = "Change the port in the notes."
ANSWER = "The file is changed: the port is new."
NOTES, OLD, NEW = "notes.txt", "port old", "port new"
CONTEXT = 131072
SECONDS_MAX = 900
CACHED_SHARE_MIN = 0.9
ANSWERED = re.compile(r"answer id=\S+ .*prompt=(\d+) cached=(\d+)")


@dataclass
class Agent:
    """calls: of its own tools, one a turn. settings: files of the home folder."""
    calls: list
    command: list
    environment: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)


def agents(url, work):
    """By name; they run in the folder work, which has the file of notes."""
    notes = f"{work}/{NOTES}"
    change, show = f"sed -i 's/{OLD}/{NEW}/' {notes}", f"cat {notes}"
    opencode = {"provider": {"sluice": {"npm": "@ai-sdk/openai-compatible", "name": "Sluice",
                                        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
                                        "models": {"qwen3.6": {"limit": {"context": CONTEXT, "output": 16384}}}}},
                "model": "sluice/qwen3.6"}
    codex = ('model = "qwen3.6"\nmodel_provider = "sluice"\n[model_providers.sluice]\nname = "Sluice"\n'
             f'base_url = "{url}/v1"\nwire_api = "responses"\n')
    cline = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": {
        "settings": {"provider": "openai-compatible", "apiKey": "none", "model": "qwen3.6", "baseUrl": f"{url}/v1"},
        "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}}
    continue_ = {"name": "local", "version": "1.0.0", "schema": "v1", "models": [
        {"name": "Sluice", "provider": "openai", "model": "qwen3.6", "apiBase": f"{url}/v1", "apiKey": "none", "roles": ["chat"],
         "capabilities": ["tool_use"]}]}
    return {
        "claude": Agent(
            [call("Read", file_path=notes),
             call("Edit", file_path=notes, old_string=OLD, new_string=NEW),
             call("Bash", description="Show the file", command=show)],
            ["-p", TASK, "--permission-mode", "bypassPermissions"],
            {"IS_SANDBOX": "1", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "none", "ANTHROPIC_MODEL": "qwen3.6",
             "ANTHROPIC_DEFAULT_HAIKU_MODEL": "qwen3.6", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}),
        "opencode": Agent(
            [call("read", filePath=notes),
             call("edit", filePath=notes, oldString=OLD, newString=NEW),
             call("bash", description="Show the file", command=show)],
            ["run", TASK], settings={".config/opencode/opencode.json": json.dumps(opencode)}),
        "qwen": Agent(
            [call("read_file", file_path=notes),
             call("edit", file_path=notes, old_string=OLD, new_string=NEW),
             call("run_shell_command", description="Show the file", is_background="false", command=show)],
            ["--auth-type", "openai", "-y", "-p", TASK],
            {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "qwen3.6"}),
        "codex": Agent(
            [call("exec_command", cmd=show), call("exec_command", cmd=change), call("exec_command", cmd=show)],
            ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK],
            settings={".codex/config.toml": codex}),
        "cline": Agent(
            [call("read_files", files=json.dumps([{"path": notes}])),
             call("editor", path=notes, old_text=OLD, new_text=NEW),
             call("run_commands", commands=json.dumps([show]))],
            ["-P", "openai-compatible", "-m", "qwen3.6", TASK],
            settings={".cline/data/settings/providers.json": json.dumps(cline)}),
        "cn": Agent(  # of Continue
            [call("Read", filepath=notes),
             call("MultiEdit", file_path=notes, edits=json.dumps([{"old_string": OLD, "new_string": NEW}])),
             call("Bash", command=show)],
            ["-p", "--auto", TASK],
            settings={".continue/config.yaml": json.dumps(continue_)}),
    }


def attempt(name, bin_folder, folder):
    """What went wrong, as a list of sentences; prints what there was to see."""
    work, home, model = (folder / part for part in ("work", "home", "model"))
    for made in (work, home, model):
        made.mkdir()
    (work / NOTES).write_text(f"the port is 8080\n{OLD}\n")
    write_model_of_turns(model, agents("", work)[name].calls, ANSWER, after="\n\n", context=CONTEXT)
    server = ServerProcess("--context", CONTEXT, "--thinking", "forbid", "--messages-thinking", "off", model=model)
    try:
        agent = agents(server.url, work)[name]
        for path, text in agent.settings.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        done = subprocess.run([str(bin_folder / name), *agent.command], cwd=work, text=True, timeout=SECONDS_MAX,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, "PWD": str(work), "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"),
                                   **agent.environment})
    finally:
        server.stop()
    turns = [tuple(map(int, found.groups())) for found in map(ANSWERED.search, server.log) if found]
    longest = max((prompt for prompt, _ in turns), default=0)
    turns = [turn for turn in turns if 2 * turn[0] > longest]  # not the titles that some have made beside
    print(f"{name}: exit status {done.returncode}, turns (prompt, cached): {turns}")
    wrong = [f"turn {i + 1} found {cached} of {prompt} tokens" for i, (prompt, cached) in enumerate(turns)
             if i > 0 and cached < CACHED_SHARE_MIN * prompt]
    if (work / NOTES).read_text() != f"the port is 8080\n{NEW}\n":
        wrong.append("the file was not changed")
    if done.returncode != 0 or ANSWER not in done.stdout or len(turns) != 4:
        wrong.append(f"it did not come to its end:\n{done.stdout[-2000:]}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of the agents' programs")
    parser.add_argument("agents", nargs="*", default=list(agents("", "")))
    arguments = parser.parse_args()
    failed = False
    for name in arguments.agents:
        with tempfile.TemporaryDirectory() as folder:
            for wrong in attempt(name, arguments.bin, Path(folder)):
                print(f"{name}: {wrong}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
