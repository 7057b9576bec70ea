"""The file that `rekindle config init` prints: it passes `rekindle config check` and runs."""

STARTER = """\
# Rekindle: which workers to run, and how.
#
#   rekindle config check FILE    lists all problems of the file
#   rekindle config show FILE     shows the settings of every worker, presets expanded
#   rekindle run FILE             runs the workers until Ctrl-C
#
# Editors with JSON Schema support complete this file (`rekindle config schema > rekindle.schema.json`):
#:schema ./rekindle.schema.json

# Relative paths are relative to the folder of this file.
state_dir = ".rekindle"
# database = "postgresql://rekindle@localhost/rekindle"   # default: rekindle.db in the state directory
max_concurrent_starts = 4                                 # limits the load after a mass crash

# A dashboard for browsers on this machine; `rekindle dashboard` prints a link to it.
# [http]
# listen = "127.0.0.1:8377"

# Defaults for every worker: they override the preset, and the settings of a worker override them.
[defaults]
preset = "service"                # service, steady, patient, notify or plugin
# log = { file = "logs/{name}-{n}.log" }   # keeps what workers write; `rekindle output` reads it back
# inherit_env = ["DATABASE_URL", "AWS_*"]  # further variables to inherit from the supervisor

[defaults.restart]
jitter = 0.2                      # shortens each delay at random by up to a fifth
# max_in_window = "none"          # "none" removes a limit

# A worker is a function of an importable module, run in a process of its own ...
[worker.tag]
python = "rekindle.cli.demo_workers:tag"
count = 2                         # worker:tag:0 and worker:tag:1
# min_healthy = 1                 # a rolling restart keeps this many healthy (default: all but one)

# ... or a command: a list of words, never a shell string.
[worker.clock]
command = ["sh", "-c", "while :; do date; sleep 5; done"]
after = ["tag"]                   # starts when every tag worker is healthy, stops before them
# cwd = "clock"
# user = "nobody"                 # only root may set it
# reports_health = true           # it writes health frames to the descriptor $REKINDLE_FD

[worker.clock.env]
TZ = "UTC"

[worker.clock.restart]
initial_delay_s = 2               # then 4, 8 ... seconds,
max_delay_s = 30                  # at most this many
max_in_window = 5                 # it is failed after 5 restarts
window_s = 300                    # within 5 minutes

# Workers that stand and fall together: if one of them dies, all restart in this order.
# [group.all]
# members = ["tag", "clock"]
# strategy = "one_for_all"        # or one_for_one, rest_for_one
# essential = true                # if the group is given up, everything stops and `rekindle run` exits

[worker.clock.stop]
# signal = "SIGINT"               # the signal that stops it (default: SIGTERM)
ask_s = 5                         # seconds to wait before it is killed
"""
