"""Many machines: the layer of actors above a System, and the rules that they ask.

    facts/              pure: nodes, wishes, assignments, tenures, promises
    cluster_messages    pure: what agents, coordinators, the store and the engine tell each other
    cluster_ports       pure: the store, the peers and the engine as protocols
    rules/              pure: lease, promises, placement, moves, counters, fencing, suspects

A system without `[cluster]` imports nothing of this.
"""
