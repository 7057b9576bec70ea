"""Pure: the words of the events about rollouts."""

from __future__ import annotations

from ...messages import RolloutAdvanced, RolloutEnded, RolloutEvent, RolloutStarted
from .sentence import Level, Sentence


def rollout_sentence(event: RolloutEvent) -> Sentence:
    """What an event about a rollout says."""
    match event:
        case RolloutStarted(group=group, workers=workers, spares=spares, detail=detail):
            why = f" because {detail}" if detail else ""
            beside = f"with {', '.join(spares)} beside"
            return Sentence("rollout", f"rollout of {group}: {', '.join(workers)}, {beside}{why}")
        case RolloutAdvanced(group=group, step=step, workers=workers, detail=detail):
            problem = f": {detail}" if detail else ""
            level = Level.ERROR if detail else Level.INFO
            return Sentence("rollout", f"rollout of {group}: {_step(step, workers)}{problem}", level)
        case RolloutEnded(group=group, problem=problem) if problem:
            return Sentence("rollout", f"rollout of {group} was ended: {problem}", Level.ERROR)
        case RolloutEnded(group=group, replaced=replaced):
            text = f"rollout of {group} is complete: {', '.join(replaced) or 'nothing'} replaced"
            return Sentence("rollout", text, Level.SUCCESS)


def _step(step: str, workers: tuple[str, ...]) -> str:
    named = ", ".join(workers)
    one = len(workers) == 1
    match step:
        case "raise":
            return f"{named} {'starts' if one else 'start'} with the new version"
        case "replace":
            return f"{named} {'gets its new process' if one else 'get their new processes'}"
        case "replaced":
            return f"the new {'process of ' if one else 'processes of '}{named} {'is' if one else 'are'} well"
        case "put_back":
            return f"{named} {'goes' if one else 'go'} back to the old version"
        case _:
            return f"{named} {'stops' if one else 'stop'}"
