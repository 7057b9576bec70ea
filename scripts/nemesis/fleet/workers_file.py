"""The file of the twenty workers, in variants for a reload."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .witness import FOLDER

GROUPS = {"beat": 4, "plain": 3, "deaf": 1, "fragile": 2, "clerk": 3, "loner": 2, "guest": 1, "scaled": 4}
"""How many workers of each group the file asks for: twenty in all."""

SCALED = "scaled"
MOST_SCALED = 6
QUEUE = "work"
LIMITED = "limited"
AT_A_TIME, KEY_AT_A_TIME, RATE = 3, 1, 5
"""The limits of that queue: jobs at a time, of one key at a time, and jobs that start in a second."""
PLAIN = Path(__file__).with_name("plain_worker.py")

_SETTINGS = """\
state_dir = {state}
database = {database}

[defaults]
inherit_env = [{folder}]
health = {{ staleness_s = 2, max_misses = 3, heartbeat_interval_s = 0.5, startup_timeout_s = 60 }}
stop = {{ ask_s = 2, term_s = 1, kill_s = 5 }}

[defaults.restart]
max_in_window = "none"
max_lifetime = "none"
initial_delay_s = 0.2
max_delay_s = 1
min_delay_s = 0
"""

_GROUPS = """
[worker.beat]
python = "scripts.nemesis.fleet.functions:beat"
count = {beat}
warm = true
standby = 1

[worker.plain]
command = {plain_command}
count = {plain}
env = {{ VARIANT = "{variant}" }}

[worker.deaf]
command = {deaf_command}
count = {deaf}
stop = {{ ask_s = 0.5, term_s = 0.5, kill_s = 5 }}

[worker.fragile]
python = "scripts.nemesis.fleet.functions:beat"
count = {fragile}
restart = {{ max_in_window = 3, window_s = 60 }}

[worker.clerk]
python = "scripts.nemesis.fleet.functions:clerk"
count = {clerk}
warm = true
jobs = {{ queues = ["work", "limited"], cancel_grace_s = 1 }}

[worker.loner]
python = "scripts.nemesis.fleet.functions:clerk"
count = {loner}
jobs = {{ queues = ["limited", "work"], cancel_grace_s = 1, isolate_suspects = true, crash_retries = 2 }}

[worker.guest]                    # without the address of the database
python = "scripts.nemesis.fleet.functions:clerk"
count = {guest}
jobs = {{ queues = ["work", "limited"], cancel_grace_s = 1, via = "supervisor" }}

[worker.scaled]
command = {plain_command}
count = {scaled}
"""

_QUEUE = f"""
[queue.{LIMITED}]
concurrency = {AT_A_TIME}
key_concurrency = {KEY_AT_A_TIME}
rate = "{RATE}/s"
"""

_EXTRA = """
[worker.extra]
command = {plain_command}
"""


def file_text(state: Path, database: str, variant: int) -> str:
    """The TOML text; another variant changes one group, and adds or removes another."""
    interpreter = [sys.executable, "-S", str(PLAIN)]
    settings = _SETTINGS.format(
        state=json.dumps(str(state)), database=json.dumps(database), folder=json.dumps(FOLDER)
    )
    groups = _GROUPS + _QUEUE + (_EXTRA if variant % 2 else "")
    return settings + groups.format(
        **GROUPS,
        variant=variant,
        plain_command=json.dumps(interpreter),
        deaf_command=json.dumps([*interpreter, "deaf"]),
    )
