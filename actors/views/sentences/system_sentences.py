"""Pure: the words of the events about more than the life of one worker."""

from __future__ import annotations

from rekindle.worker.plain_text import counted, span

from ...facts.alert import Happening
from ...messages import (
    ActorReplaced,
    AlertChanged,
    BreakerClosed,
    BreakerOpened,
    EventsLost,
    GatewayLost,
    GatewayRestored,
    LogInterrupted,
    LogResumed,
    PauseBegan,
    PauseEnded,
    RecordSetAside,
    StartsHindered,
    StartsResumed,
    StoodDown,
    StoreDegraded,
    StoreRecovered,
    SupervisionStalled,
    SupervisorUpgraded,
    UpgradeFailed,
)
from .sentence import Level, Sentence

SystemEvent = (
    BreakerOpened
    | BreakerClosed
    | PauseBegan
    | PauseEnded
    | AlertChanged
    | ActorReplaced
    | SupervisionStalled
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | EventsLost
    | RecordSetAside
    | SupervisorUpgraded
    | UpgradeFailed
    | GatewayLost
    | GatewayRestored
    | LogInterrupted
    | LogResumed
    | StartsHindered
    | StartsResumed
)
"""Events about more than the life of one worker."""


def system_sentence(event: SystemEvent) -> Sentence:
    """What an event about more than the life of one worker says."""
    match event:
        case BreakerOpened(breaker=breaker, reason=reason, workers=workers):
            held = f"{counted(len(workers), 'worker', 'workers')} held back"
            return Sentence("breaker", f"breaker {breaker} opened, {held}: {reason}", Level.ERROR)
        case BreakerClosed(breaker=breaker, open_for_s=open_s, workers=workers):
            back = f"{counted(len(workers), 'worker restarts', 'workers restart')}"
            text = f"breaker {breaker} closed after {span(open_s * 1000)}, {back}"
            return Sentence("breaker", text, Level.SUCCESS)
        case PauseBegan(component_id=id_, reason=reason, for_s=for_s):
            lasts = "" if for_s is None else f" for {span(for_s * 1000)}"
            return Sentence("pause", f"{_whole(id_)}is paused{lasts}" + (f": {reason}" if reason else ""))
        case PauseEnded(component_id=id_):
            return Sentence("pause", f"{_whole(id_)}is no longer paused", Level.SUCCESS)
        case AlertChanged():
            return _alert_changed(event)
        case ActorReplaced(actor=actor, error=error):
            text = f"internal error in {actor}, the actor was restarted: {error}"
            return Sentence("internal", text, Level.ERROR)
        case SupervisionStalled(for_s=for_s, part=part):
            text = f"supervision stalled: the {part} did nothing for {span(for_s * 1000)}"
            return Sentence("internal", text, Level.WARNING)
        case StoreDegraded(reason=reason):
            return Sentence("store", f"store unavailable, continuing in memory: {reason}", Level.WARNING)
        case StoreRecovered():
            return Sentence("store", "store available again", Level.SUCCESS)
        case StoodDown(reason=reason):
            return Sentence("store", f"another supervisor took over the store: {reason}", Level.CRITICAL)
        case EventsLost(count=count, first_id=first, last_id=last):
            text = f"{count} events (#{first} to #{last}) were lost while the store was unavailable"
            return Sentence("gap", text, Level.WARNING)
        case RecordSetAside(kind=kind, error=error):
            return Sentence(
                "store", f"a record ({kind}) cannot be written and is set aside: {error}", Level.ERROR
            )
        case GatewayLost(gateway=gateway, reason=reason):
            return Sentence("gateway", f"gateway {gateway} does not deliver: {reason}", Level.WARNING)
        case GatewayRestored(gateway=gateway, detail=detail):
            return Sentence("gateway", f"gateway {gateway} delivers again: {detail}", Level.SUCCESS)
        case SupervisorUpgraded(old=old, new=new, blind_ms=blind_ms):
            text = f"the supervisor was upgraded from {old} to {new} in {span(blind_ms)}; all workers ran on"
            return Sentence("upgrade", text, Level.SUCCESS)
        case UpgradeFailed(reason=reason, version=version):
            return Sentence("upgrade", f"the upgrade failed, and {version} is back: {reason}", Level.ERROR)
        case LogInterrupted(file=file, reason=reason):
            return Sentence("log", f"the log file {file} cannot be written: {reason}", Level.WARNING)
        case LogResumed(file=file, dropped=dropped):
            lost = f"{counted(dropped, 'line is', 'lines are')} missing" if dropped else "no line is missing"
            return Sentence("log", f"the log file {file} is written again; {lost}", Level.SUCCESS)
        case StartsHindered(reason=reason):
            text = f"could not be started, the machine has no room: {reason}"
            return Sentence("scarcity", f"{text}; not counted, and tried again each second", Level.ERROR)
        case StartsResumed():
            return Sentence("scarcity", "every start that waited for room is done", Level.SUCCESS)


def _alert_changed(event: AlertChanged) -> Sentence:
    alert, what = event.alert, f"alert {event.alert.id} {event.happening}"
    match event.happening:
        case Happening.REPEATED:
            return Sentence("alert", f"{what}, {alert.occurrences} times now: {alert.message}", Level.TRACE)
        case Happening.AMENDED:
            return Sentence("alert", f"{what}: {alert.message}", Level.TRACE)
        case Happening.ACKNOWLEDGED:
            return Sentence("alert", f"{what} by {alert.acknowledged_by}: {alert.message}")
        case Happening.OPENED:
            return Sentence("alert", f"{what}: {alert.message}")
        case Happening.ESCALATED:
            return Sentence("alert", f"{what}: {alert.message}", Level.ERROR)
        case Happening.RESOLVED:
            return Sentence("alert", f"{what}: {alert.message}", Level.SUCCESS)


def _whole(component_id: str | None) -> str:
    return "the whole system " if component_id is None else ""
