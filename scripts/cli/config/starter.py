"""The file that `rekindle config init` gives: it passes `rekindle config check` and runs."""

STARTER = """\
# Rekindle: which workers to run, and how.
#
#   rekindle config check FILE    says everything that is wrong with it
#   rekindle config show FILE     shows what every worker gets, presets expanded
#   rekindle run FILE             runs the workers until Ctrl-C
#
# Editors that know JSON Schema complete this file (`rekindle config schema > rekindle.schema.json`):
#:schema ./rekindle.schema.json

# Relative paths start at this file's folder.
state_dir = ".rekindle"
# database = "postgresql://rekindle@localhost/rekindle"   # default: rekindle.db in the state directory
max_concurrent_starts = 4                                 # a mass crash does not become a herd

# A dashboard for browsers on this machine; `rekindle dashboard` prints a link to it.
# [http]
# listen = "127.0.0.1:8377"

# What holds for every worker that does not say otherwise: first the preset, then these, then its own.
[defaults]
preset = "steady"                 # steady, patient, notify or plugin
# inherit_env = ["HOME", "LANG"]  # further variables handed down from the supervisor

[defaults.restart]
jitter = 0.2                      # chance takes up to a fifth off each delay
# max_lifetime = "none"           # "none" lifts a limit

# A worker is a function of an importable module, run in a process of its own ...
[worker.tag]
python = "rekindle.cli.demo_workers:tag"
count = 2                         # worker:tag:0 and worker:tag:1
# min_healthy = 1                 # how many a rolling restart leaves up (default: all but one)

# ... or a command: a list of words, never a shell string.
[worker.clock]
command = ["sh", "-c", "while :; do date; sleep 5; done"]
after = ["tag"]                   # starts when every tag worker is healthy, stops before them
# cwd = "clock"
# user = "nobody"                 # only root may say so
# reports_health = true           # it writes health frames to the descriptor $REKINDLE_FD

[worker.clock.env]
TZ = "UTC"

[worker.clock.restart]
initial_delay_s = 2               # then 4, 8 ... seconds,
max_delay_s = 30                  # never more than these
max_in_window = 5                 # it is given up after 5 restarts
window_s = 300                    # within 5 minutes

[worker.clock.stop]
# signal = "SIGINT"               # what tells it to end (default: SIGTERM)
ask_s = 5                         # seconds to end by itself before it is killed
"""
