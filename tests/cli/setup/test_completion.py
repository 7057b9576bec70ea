"""What a shell completes, by click's own protocol and in a real bash."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, Client

COMPLETE = "_REKINDLE_COMPLETE"


def completed(client: Client, line: str) -> list[str]:
    """What the last word of a line may become."""
    words = line.split(" ")
    asked = {COMPLETE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    answer = replace(client, environment=asked)()
    assert (answer.code, answer.err) == (0, "")
    return [each.partition(",")[2] for each in answer.lines if each]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_rekindle(no_supervisor: Client, shell: str) -> None:
    answer = no_supervisor("completion", shell)
    assert answer.code == 0
    assert f"{COMPLETE}={shell}_complete" in answer.out


def test_worker_ids_complete_from_the_running_supervisor(every_state: Client) -> None:
    assert completed(every_state, "rekindle stop worker:w") == ["worker:web:0", "worker:web:1"]
    assert completed(every_state, "rekindle explain worker:sp") == ["worker:spent:0"]


def test_a_worker_that_is_named_already_is_not_offered_again(every_state: Client) -> None:
    assert completed(every_state, "rekindle stop worker:web:0 worker:w") == ["worker:web:1"]


def test_group_names_complete(every_state: Client) -> None:
    assert completed(every_state, "rekindle scale ch") == ["chatty"]
    assert completed(every_state, "rekindle restart --rolling we") == ["web"]


def test_the_state_directory_on_the_line_is_the_one_that_is_asked(
    every_state: Client, no_supervisor: Client
) -> None:
    assert completed(no_supervisor, f"rekindle stop --state {every_state.state} worker:f") == [
        "worker:flaky:0"
    ]


def test_without_a_supervisor_nothing_is_offered_and_nothing_is_printed(no_supervisor: Client) -> None:
    assert completed(no_supervisor, "rekindle stop work") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes_an_id_and_keeps_its_word_breaks(every_state: Client, tmp_path: Path) -> None:
    program = tmp_path / "rekindle"
    program.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    script = (
        f'PATH="{tmp_path}:$PATH"; eval "$(rekindle completion bash)";'
        "[[ $COMP_WORDBREAKS == *:* ]] || exit 9;"
        "COMP_LINE='rekindle stop worker:web:'; COMP_POINT=${#COMP_LINE}; _rekindle_completion rekindle;"
        'echo "${COMPREPLY[@]}";'
        "COMP_LINE='rekindle stop we'; COMP_POINT=${#COMP_LINE}; _rekindle_completion rekindle;"
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], env=every_state.variables, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "0 1\nweb\n")
