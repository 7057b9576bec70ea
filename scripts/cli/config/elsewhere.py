"""What the settings of other supervisors are called here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_CGROUP = 'limits of its control group are set by cgroup, such as cgroup = { memory_max = "512M" }'
_LIMITS = "resource limits are set by rlimits, such as rlimits = { nofile = 4096 }"
_COUNT = "the number of workers is called count"
_DIRECTORY = "the working directory is called cwd"
_ENVIRONMENT = "environment variables are set by env, and inherited by inherit_env"
_OUTPUT = 'the log file of both streams is set by log, such as log = { file = "logs/{name}.log" }'
_RESTART = 'restarts are set by restart, such as restart = { restart_on = "on_failure" }'

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "autorestart": _RESTART,
        "autostart": "every worker of the file is started; count = 0 keeps a group down",
        "depends_on": "what must be healthy first is called after",
        "directory": _DIRECTORY,
        "environment": _ENVIRONMENT,
        "instances": _COUNT,
        "log_file": _OUTPUT,
        "numprocs": _COUNT,
        "numprocesses": _COUNT,
        "priority": "the order of starts is set by after",
        "redirect_stderr": _OUTPUT,
        "replicas": _COUNT,
        "startretries": "the limit of restarts is restart.max_in_window",
        "stderr_logfile": _OUTPUT,
        "stdout_logfile": _OUTPUT,
        "stopsignal": "the signal is set by stop.signal",
        "stopwaitsecs": "the time to stop is set by stop.ask_s",
        "LimitNOFILE": _LIMITS,
        "minfds": _LIMITS,
        "ulimits": _LIMITS,
        "oom_score": "how likely the kernel kills it for lack of memory is set by oom_score_adj",
        "mem_limit": _CGROUP,
        "memory_max": _CGROUP,
        "memory_high": _CGROUP,
        "cpu_max": _CGROUP,
        "pids_max": _CGROUP,
        "envfile": "files of environment variables are set by env_file",
        "environment_file": "files of environment variables are set by env_file",
        "working_dir": _DIRECTORY,
        "working_directory": _DIRECTORY,
        "workingdirectory": _DIRECTORY,
    }
)
"""By the key of supervisord, circus, PM2, Docker Compose or systemd."""
