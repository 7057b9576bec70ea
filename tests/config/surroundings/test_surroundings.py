"""The settings of a worker's surroundings: their meaning, their refusals, and how they are shown."""

from __future__ import annotations

from dataclasses import replace

from tests.config.files import good, refused

from rekindle.actors.spec.spec_changes import compare
from rekindle.actors.spec.surroundings import CgroupPolicy, Rlimits, Surroundings
from rekindle.cli.config.config_text import as_document, as_text

WEB = '[worker.web]\ncommand = ["serve"]\n'
ALL = f"""{WEB}
umask = "027"
nice = 5
ionice = "idle"
oom_score_adj = -100
groups = ["adm"]
stdin = "songs.txt"
rlimits = {{ nofile = 4096, as = "2G", core = "unlimited", nproc = "10:20" }}
cgroup = {{ memory_max = "512M", cpu_max = 1.5, pids_max = 100 }}
"""


def test_every_setting_reaches_the_worker_and_is_shown_as_it_was_set() -> None:
    config = good(ALL)
    assert config.specs()[0].surroundings == Surroundings(
        umask="027",
        nice=5,
        ionice="idle",
        oom_score_adj=-100,
        groups=("adm",),
        stdin="/srv/app/songs.txt",
        rlimits=Rlimits(nofile=4096, address_space="2G", core="unlimited", nproc="10:20"),
        cgroup=CgroupPolicy(memory_max="512M", cpu_max=1.5, pids_max=100),
    )
    assert good(as_text(config)).specs() == config.specs()
    assert as_document(config)["workers"][0]["rlimits"]["as"] == "2G"


def test_the_defaults_apply_limit_by_limit() -> None:
    text = (
        f"[defaults]\numask = '077'\nrlimits = {{ core = 0, nofile = 64 }}\n{WEB}rlimits = {{ nofile = 128 }}"
    )
    surroundings = good(text).specs()[0].surroundings
    assert surroundings == Surroundings(umask="077", rlimits=Rlimits(core=0, nofile=128))


def test_all_problems_are_told_at_once() -> None:
    told = refused(
        WEB + 'umask = "089"\nnice = 20\nionice = "idl"\noom_score_adj = 1001\ngroups = "adm"\nstdin = ""\n'
        'rlimits = { nofile = "20:10", as = "2X", open = 1 }'
    )
    limit = 'must be a number, a size such as "512M", "unlimited" or "SOFT:HARD"'
    keys = "nofile, nproc, core, as, data, stack, memlock, fsize, cpu, nice, rtprio, sigpending, msgqueue"
    priority = 'must be "idle", "best-effort", "best-effort:0" to ":7" or "realtime:0" to ":7"'
    here = "worker.web"
    assert told == [
        f'workers.toml:3: {here}.umask = "089": must be three octal digits, such as "027"',
        f"workers.toml:4: {here}.nice = 20: must be between -20 and 19",
        f'workers.toml:5: {here}.ionice = "idl": {priority}',
        f"workers.toml:6: {here}.oom_score_adj = 1001: must be between -1000 and 1000",
        f'workers.toml:7: {here}.groups = "adm": must be a list of words or "none"',
        f'workers.toml:8: {here}.stdin = "": must be "null" or a file',
        f"workers.toml:9: {here}.rlimits.open = 1: is not a known key; known keys: {keys}",
        f'workers.toml:9: {here}.rlimits.as = "2X": {limit}',
        f'workers.toml:9: {here}.rlimits.nofile = "20:10": has a soft limit above its hard limit',
    ]


def test_an_empty_table_is_a_control_group_without_limits() -> None:
    config = good(f"{WEB}cgroup = {{}}\n")
    assert config.specs()[0].surroundings.cgroup == CgroupPolicy()
    assert good(as_text(config)).specs() == config.specs()


def test_limits_of_a_control_group_that_are_none_are_refused() -> None:
    told = refused(
        WEB + 'cgroup = { memory_max = "much", cpu_max = 0, pids_max = 0, mem = 1 }\nmemory_max = "1G"'
    )
    assert len(told) == 5
    assert "limits of its control group are set by cgroup" in told[-1]


def test_a_change_of_the_surroundings_takes_effect_in_a_new_process() -> None:
    spec = good(WEB).specs()[0]
    changed = replace(spec, surroundings=Surroundings(nice=1))
    assert compare({spec.id: spec}, [changed]).restarted == (spec.id,)


def test_the_files_of_a_control_group() -> None:
    policy = CgroupPolicy(memory_max="512M", memory_high=1000, cpu_max=0.5, pids_max=7)
    assert policy.files() == {
        "memory.max": "536870912", "memory.high": "1000", "cpu.max": "50000 100000", "pids.max": "7"
    }  # fmt: skip
