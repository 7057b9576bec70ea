"""Pure: the words for the codes of stop and rest reasons."""

from __future__ import annotations

from ...supervision.worker import Rest, StopReason


def stop_reason_words(code: str) -> str:
    """Why a worker is stopped; text that is not a code is returned unchanged.

    Databases of older versions hold sentences instead of codes.
    """
    try:
        reason = StopReason(code)
    except ValueError:
        return code
    match reason:
        case StopReason.OPERATOR:
            return "an operator stopped it"
        case StopReason.RESTART:
            return "an operator restarted it"
        case StopReason.PAUSE:
            return "it was paused"
        case StopReason.CHANGE:
            return "its configuration changed"
        case StopReason.REMOVAL:
            return "it was removed"
        case StopReason.RECYCLE:
            return "it is due for a new process"
        case StopReason.SHUTDOWN:
            return "the supervisor is shutting down"
        case StopReason.REFUSED:
            return "it is marked as failed"
        case StopReason.GROUP:
            return "another worker of its group died"
        case StopReason.REPLACED:
            return "its next run replaces this one"
        case StopReason.MOVE:
            return "the cluster no longer wants it on this node"
        case StopReason.FENCED:
            return "the node lost its lease"


def rest_words(rest: Rest) -> str:
    """Why a worker does not run."""
    match rest:
        case Rest.NEW:
            return "not started yet"
        case Rest.STOPPED:
            return "stopped"
        case Rest.PAUSED:
            return "paused"
        case Rest.RESET:
            return "reset"
        case Rest.LEFT:
            return "not restarted"
        case Rest.DONE:
            return "finished"
        case Rest.HELD:
            return "held back"
        case Rest.GROUP:
            return "its group is given up"
        case Rest.SCHEDULED:
            return "waits for its next run"
