"""The file's shape, as msgspec structs: the decoder and the schema come from here.

TOML has no null, so a limit is lifted with the word "none". What a value may be beyond its
type is decided by `rekindle.actors.spec.worker_spec`; the bounds here only tell it to editors.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from rekindle.actors.facts.alert import TOLD, Happening
from rekindle.actors.gateways.settings.nats_settings import Payload
from rekindle.actors.spec.worker_spec import OnExhausted, PauseMode, RestartOn, WindowMode

Count = int | Literal["none"]
Number = float | Literal["none"]


def about(text: str, **schema: object) -> Meta:
    """A description, and what else editors are told."""
    return Meta(description=text, extra_json_schema=schema)


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table that holds the settings it names and no others."""


class Restart(Table, frozen=True):
    """When a dead worker is started again, how long after, and when to give up."""

    enabled: Annotated[bool, about("Whether it is restarted at all.")] | UnsetType = UNSET
    restart_on: Annotated[RestartOn, about("Which exits lead to a restart.")] | UnsetType = UNSET
    max_in_window: Annotated[Count, about("Restarts within the window.", minimum=1)] | UnsetType = UNSET
    window_s: Annotated[float, about("The window, in seconds.", exclusiveMinimum=0)] | UnsetType = UNSET
    window_mode: Annotated[WindowMode, about("How the window counts.")] | UnsetType = UNSET
    max_lifetime: Annotated[Count, about("Restarts in all, until a reset.", minimum=1)] | UnsetType = UNSET
    max_consecutive: Annotated[Count, about("Restarts in a row.", minimum=1)] | UnsetType = UNSET
    initial_delay_s: Annotated[float, about("The first delay, in seconds.", minimum=0)] | UnsetType = UNSET
    multiplier: Annotated[float, about("By how much each delay grows.", minimum=1)] | UnsetType = UNSET
    max_delay_s: Annotated[float, about("No delay is longer.", minimum=0)] | UnsetType = UNSET
    min_delay_s: Annotated[float, about("No delay is shorter.", minimum=0)] | UnsetType = UNSET
    immediate_first: Annotated[bool, about("The first restart waits for nothing.")] | UnsetType = UNSET
    jitter: (
        Annotated[float, about("The share of a delay that chance may take off.", minimum=0, maximum=1)]
        | UnsetType
    ) = UNSET
    reset_after_healthy_s: (
        Annotated[Number, about("Health for this long clears the streak.", minimum=0)] | UnsetType
    ) = UNSET
    on_exhausted: Annotated[OnExhausted, about("What happens at a limit.")] | UnsetType = UNSET
    give_up_exit_codes: (
        Annotated[tuple[int, ...], about("Exit codes after which it is failed at once.")] | UnsetType
    ) = UNSET
    clear_failed_on_change: (
        Annotated[bool, about("A failed one is tried afresh when its code or configuration changed.")]
        | UnsetType
    ) = UNSET


class Health(Table, frozen=True):
    """How long silence is tolerated from a worker that reports its health."""

    startup_timeout_s: (
        Annotated[float, about("Until the first healthy frame.", exclusiveMinimum=0)] | UnsetType
    ) = UNSET
    staleness_s: (
        Annotated[Number, about('Silence that counts as a miss; "none": not watched.', exclusiveMinimum=0)]
        | UnsetType
    ) = UNSET
    max_misses: Annotated[int, about("Misses in a row that end it.", minimum=1)] | UnsetType = UNSET
    heartbeat_interval_s: (
        Annotated[float, about("How often it is told to report.", exclusiveMinimum=0)] | UnsetType
    ) = UNSET
    recovery_min_s: Annotated[Number, about("The least recovery time.", minimum=0)] | UnsetType = UNSET
    recovery_max_s: Annotated[Number, about("The longest recovery time.", exclusiveMinimum=0)] | UnsetType = (
        UNSET
    )
    progress_timeout_s: (
        Annotated[
            Number,
            about('Ends it if its work does not move for so long; "none": not asked.', exclusiveMinimum=0),
        ]
        | UnsetType
    ) = UNSET
    max_bad_frames: (
        Annotated[int, about("More frames than this that make no sense end it.", minimum=1)] | UnsetType
    ) = UNSET


class Stop(Table, frozen=True):
    """The stop ladder: ask, then SIGTERM, then SIGKILL; seconds that each step waits."""

    signal: Annotated[int | str, about("Sent instead of SIGTERM: SIGINT, INT or 2.")] | UnsetType = UNSET
    ask_s: (
        Annotated[float, about("After it was asked (a plain command: after SIGTERM).", minimum=0)] | UnsetType
    ) = UNSET
    term_s: Annotated[float, about("After SIGTERM.", minimum=0)] | UnsetType = UNSET
    kill_s: Annotated[float, about("After SIGKILL.", minimum=0)] | UnsetType = UNSET
    last_s: Annotated[float, about("Until it is reported as unkillable.", minimum=0)] | UnsetType = UNSET


class Limits(Table, frozen=True):
    """What a worker, and everything that it starts, may use together."""

    warn_cpu_percent: (
        Annotated[Number, about("Warns above this share of one core.", exclusiveMinimum=0)] | UnsetType
    ) = UNSET
    kill_cpu_percent: (
        Annotated[Number, about("Ends it above this share of one core.", exclusiveMinimum=0)] | UnsetType
    ) = UNSET
    warn_memory_mb: Annotated[Number, about("Warns above this.", exclusiveMinimum=0)] | UnsetType = UNSET
    kill_memory_mb: Annotated[Number, about("Ends it above this.", exclusiveMinimum=0)] | UnsetType = UNSET
    warn_threads: Annotated[Count, about("Warns above this.", exclusiveMinimum=0)] | UnsetType = UNSET
    kill_threads: Annotated[Count, about("Ends it above this.", exclusiveMinimum=0)] | UnsetType = UNSET
    warn_descriptors: Annotated[Count, about("Warns above this.", exclusiveMinimum=0)] | UnsetType = UNSET
    kill_descriptors: Annotated[Count, about("Ends it above this.", exclusiveMinimum=0)] | UnsetType = UNSET
    interval_s: Annotated[float, about("Seconds between looks.", exclusiveMinimum=0)] | UnsetType = UNSET
    violations: Annotated[int, about("This many in a row end it.", minimum=1)] | UnsetType = UNSET


class Recycle(Table, frozen=True):
    """When a worker that is well gets a new process; never counted as a restart."""

    after_jobs: Annotated[Count, about("Jobs done.", minimum=1)] | UnsetType = UNSET
    after_s: Annotated[Number, about("Seconds of life.", exclusiveMinimum=0)] | UnsetType = UNSET
    above_memory_mb: Annotated[Number, about("Memory in use.", exclusiveMinimum=0)] | UnsetType = UNSET
    jitter: (
        Annotated[
            float, about("The share of jobs and seconds that chance may take off.", minimum=0, maximum=1)
        ]
        | UnsetType
    ) = UNSET
    min_healthy: (
        Annotated[Count, about("How many others of the group must be healthy (all).", minimum=0)] | UnsetType
    ) = UNSET
    interval_s: (
        Annotated[float, about("Seconds between looks at its memory.", exclusiveMinimum=0)] | UnsetType
    ) = UNSET


class Jobs(Table, frozen=True):
    """Which queues a worker serves, and what becomes of a job that crashed it or raised."""

    queues: Annotated[tuple[str, ...], about("The queues that it serves, in this order.")] | UnsetType = UNSET
    concurrency: Annotated[int, about("How many jobs at a time (1).", minimum=1)] | UnsetType = UNSET
    crash_retries: (
        Annotated[Count, about('How often a job is requeued after a crash; "none": always.', minimum=0)]
        | UnsetType
    ) = UNSET
    isolate_suspects: (
        Annotated[bool, about("A job that crashed a worker runs alone; a second crash convicts it.")]
        | UnsetType
    ) = UNSET
    error_retries: (
        Annotated[int, about("How often a job that raised is retried (0).", minimum=0)] | UnsetType
    ) = UNSET
    retry_delay_s: (
        Annotated[float, about("Before the first retry; doubles each time.", minimum=0)] | UnsetType
    ) = UNSET
    max_retry_delay_s: Annotated[float, about("No delay is longer.", minimum=0)] | UnsetType = UNSET


class Release(Table, frozen=True):
    """What is done about the work item of a worker that died."""

    enabled: Annotated[bool, about("Whether anything is done.")] | UnsetType = UNSET
    command: (
        Annotated[
            tuple[str, ...],
            about(
                "A program and its arguments; {work_item}, {component_id}, {exit_code}, {signal},"
                " {generation} stand for what is known."
            ),
        ]
        | UnsetType
    ) = UNSET
    recipe: Annotated[Literal["br", "none"], about("A ready-made way instead of a command.")] | UnsetType = (
        UNSET
    )
    call: Annotated[str, about("A function instead: 'package.module:function'.")] | UnsetType = UNSET
    work_item: Annotated[str, about("The item of a worker that names no job of its own.")] | UnsetType = UNSET
    cwd: Annotated[str, about("Where the tool runs (the worker's directory).")] | UnsetType = UNSET
    timeout_s: (
        Annotated[float, about("After this long the tool is cut off.", exclusiveMinimum=0)] | UnsetType
    ) = UNSET


class Breaker(Table, frozen=True):
    """When restarts of the workers that name this breaker are held back, and how they come back."""

    deaths: (
        Annotated[Count, about("So many different workers dying within the window open it.", minimum=1)]
        | UnsetType
    ) = UNSET
    window_s: Annotated[float, about("The window, in seconds.", exclusiveMinimum=0)] | UnsetType = UNSET
    canary_delay_s: (
        Annotated[float, about("Until the first canary tries; doubled after each that dies.", minimum=0)]
        | UnsetType
    ) = UNSET
    canary_max_delay_s: Annotated[float, about("No wait is longer.", minimum=0)] | UnsetType = UNSET
    hold_s: (
        Annotated[float, about("A canary that is healthy for this long closes it.", minimum=0)] | UnsetType
    ) = UNSET
    probe_tcp: Annotated[str, about("host:port that must be reachable.")] | UnsetType = UNSET
    probe_command: (
        Annotated[tuple[str, ...], about("A program that exits with 0 while all is well.")] | UnsetType
    ) = UNSET
    probe_interval_s: Annotated[float, about("Between two probes.", exclusiveMinimum=0)] | UnsetType = UNSET
    probe_timeout_s: (
        Annotated[float, about("After this long a probe has failed.", exclusiveMinimum=0)] | UnsetType
    ) = UNSET


class Settings(Table, frozen=True):
    """What may stand in the defaults and in every worker."""

    preset: (
        Annotated[Literal["steady", "patient", "notify", "plugin"], about("The policies to start from.")]
        | UnsetType
    ) = UNSET
    reports_health: Annotated[bool, about("The command writes health frames.")] | UnsetType = UNSET
    pdeathsig: Annotated[bool, about("The kernel kills the command with its supervisor.")] | UnsetType = UNSET
    env: Annotated[dict[str, str], about("Its environment variables.")] | UnsetType = UNSET
    inherit_env: (
        Annotated[tuple[str, ...], about("Variables handed down from the supervisor.")] | UnsetType
    ) = UNSET
    cwd: Annotated[str, about("Its working directory, relative to this file.")] | UnsetType = UNSET
    user: Annotated[str, about("Whom it runs as; only root may say so.")] | UnsetType = UNSET
    breaker: Annotated[str, about("The breaker that it shares with others.")] | UnsetType = UNSET
    pause_mode: Annotated[PauseMode, about("What a pause does to the process.")] | UnsetType = UNSET
    restart: Restart = Restart()
    health: Health = Health()
    stop: Stop = Stop()
    limits: Limits = Limits()
    recycle: Recycle = Recycle()
    jobs: Jobs = Jobs()
    release: Release = Release()


class Defaults(Settings, frozen=True):
    """Settings of every worker that does not say otherwise."""


class Worker(Settings, frozen=True):
    """A group of like workers: `worker:NAME:0`, `worker:NAME:1` and so on."""

    command: (
        Annotated[tuple[str, ...], about("The program and its arguments, never a shell string.", minItems=1)]
        | UnsetType
    ) = UNSET
    python: (
        Annotated[str, about("A function to run instead of a command: 'package.module:function'.")]
        | UnsetType
    ) = UNSET
    count: Annotated[int, about("How many of them (1).", minimum=0)] | UnsetType = UNSET
    min_healthy: (
        Annotated[int, about("How many a rolling restart leaves up (count - 1).", minimum=0)] | UnsetType
    ) = UNSET
    after: (
        Annotated[tuple[str, ...], about("Groups or workers that must be healthy before it starts.")]
        | UnsetType
    ) = UNSET


class Gateways(Table, frozen=True):
    """Reserved for the edges to HTTP, NATS and metrics."""


class Events(Table, frozen=True):
    """How much of the past is kept."""

    keep_days: Annotated[float, about("Older events are deleted.", exclusiveMinimum=0)] = 30.0
    keep_count: Annotated[int, about("No more events than so many are kept.", minimum=1)] = 100_000
    history_days: Annotated[
        float, about("Older deaths, orders and toxic jobs are deleted.", exclusiveMinimum=0)
    ] = 365.0
    job_days: Annotated[
        float, about("Jobs that were done or failed longer ago are deleted.", exclusiveMinimum=0)
    ] = 30.0
    job_count: Annotated[int, about("Of these none is kept whose number is further back.", minimum=1)] = (
        1_000_000
    )


class Http(Table, frozen=True):
    """HTTP over TCP, with the dashboard. The table alone turns it on."""

    listen: Annotated[str, about("ADDRESS:PORT; without TLS only an address of this machine.")] = (
        "127.0.0.1:8377"
    )
    hosts: Annotated[tuple[str, ...], about("Further names under which browsers reach it.")] = ()
    tls_cert: Annotated[str, about("A certificate (PEM), relative to this file.")] | UnsetType = UNSET
    tls_key: Annotated[str, about("The certificate's key (PEM), relative to this file.")] | UnsetType = UNSET
    behind_proxy: Annotated[bool, about("A proxy does TLS, and nobody else gets here.")] = False
    read_only: Annotated[bool, about("Nobody may give orders here, whatever token they have.")] = False
    max_clients: Annotated[int, about("How many may follow the events.", minimum=1, maximum=1024)] = 64


class AlertSink(Table, frozen=True):
    """Where alerts are sent: a command or a webhook."""

    command: (
        Annotated[tuple[str, ...], about("Words with {placeholders}; the alert comes as JSON on its input.")]
        | UnsetType
    ) = UNSET
    webhook: Annotated[str, about("An address that takes a POST of JSON.")] | UnsetType = UNSET
    secret_file: (
        Annotated[str, about("Holds the secret that signs every POST, relative to this file.")] | UnsetType
    ) = UNSET
    on: Annotated[tuple[Happening, ...], about("Which changes of an alert are sent.")] = TOLD
    least: Annotated[Literal["critical", "warning", "info"], about("Nothing below this is sent.")] = "warning"
    per_minute: Annotated[int, about("No more than this; the rest is counted.", minimum=1)] = 10
    timeout_s: Annotated[float, about("How long sending may take.", exclusiveMinimum=0)] = 10.0


class Alerts(Table, frozen=True):
    """When people are told that something is wrong, and how."""

    enabled: Annotated[bool, about("Whether alerts are kept at all.")] = True
    settle_s: Annotated[float, about("Health for this long ends a worker's alerts.", minimum=0)] = 30.0
    escalate_after_s: Annotated[
        Number, about("Told once more if nobody took note for this long.", minimum=0)
    ] = 900.0
    recent_s: Annotated[float, about("Over how long recent deaths are counted.", minimum=0)] = 3600.0
    sink: Annotated[dict[str, AlertSink], about("Where they are sent, by names of your own.")] = {}


class NatsLogin(Table, frozen=True):
    """As whom to connect to NATS. Secrets stand in files that nobody else can read (chmod 600)."""

    credentials: Annotated[str, about("A .creds file, relative to this file.")] | UnsetType = UNSET
    user: Annotated[str, about("A user; the password comes from password_file.")] | UnsetType = UNSET
    password_file: Annotated[str, about("A file with the password.")] | UnsetType = UNSET
    token_file: Annotated[str, about("A file with a token.")] | UnsetType = UNSET


class NatsTls(Table, frozen=True):
    """How the connection to NATS is encrypted."""

    required: Annotated[bool, about("Refuse a server that does not encrypt.")] = False
    ca: Annotated[str, about("The authorities to trust (PEM) instead of the system's.")] | UnsetType = UNSET
    cert: Annotated[str, about("Our certificate (PEM).")] | UnsetType = UNSET
    key: Annotated[str, about("Our certificate's key (PEM).")] | UnsetType = UNSET


class Nats(Table, frozen=True):
    """Every event, published to NATS. The table alone turns it on."""

    servers: Annotated[tuple[str, ...], about("nats://HOST:PORT, tried in turn.", minItems=1)] = (
        "nats://127.0.0.1:4222",
    )
    subject: Annotated[
        str, about("Events of workers; {type}, {id}, {name}, {component} and {event} are filled in.")
    ] = "rekindle.worker.{type}.{id}.{event}"
    system_subject: Annotated[str, about("Events that are not about one worker; {event} is filled in.")] = (
        "rekindle.system.{event}"
    )
    payload: Annotated[
        Payload, about("The whole event, or a crash as plugin hosts know it; auto: by {name}.")
    ] = Payload.AUTO
    jetstream: Annotated[bool, about("Have a stream keep every event; nothing is lost in an outage.")] = False
    stream: Annotated[str, about("The stream, made if it is missing.")] | UnsetType = UNSET
    most_waiting: Annotated[
        int, about("Without JetStream: events that wait for a server that is away.", minimum=1)
    ] = 1000
    commands: Annotated[bool, about("Take orders over NATS too, like the control socket.")] = False
    command_subject: Annotated[str, about("Orders are asked for below this subject.")] = "rekindle.command"
    login: NatsLogin = NatsLogin()
    tls: NatsTls = NatsTls()


class Metrics(Table, frozen=True):
    """Metrics for Prometheus at /metrics of the control socket and of [http]."""

    enabled: Annotated[bool, about("Whether they are counted and served.")] = True


class File(Table, frozen=True):
    """A configuration of Rekindle: which workers to run, and how."""

    state_dir: Annotated[str, about("Where state is kept (.rekindle), relative to this file.")] = ".rekindle"
    database: (
        Annotated[str, about("A path, sqlite:///… or postgresql://… (rekindle.db in the state directory).")]
        | UnsetType
    ) = UNSET
    max_concurrent_starts: (
        Annotated[int, about("How many workers may be starting at the same time.", minimum=1)] | UnsetType
    ) = UNSET
    gateways: Gateways = Gateways()
    events: Events = Events()
    http: Http | UnsetType = UNSET
    alerts: Alerts = Alerts()
    nats: Nats | UnsetType = UNSET
    metrics: Metrics | UnsetType = UNSET
    defaults: Defaults = Defaults()
    breakers: Annotated[dict[str, Breaker], about("Circuit breakers by name.")] = {}
    worker: dict[str, Worker] = {}
