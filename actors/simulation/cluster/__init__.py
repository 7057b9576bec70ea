"""The virtual cluster: the shipped Agent and Coordinator on N virtual nodes, on one virtual clock.

cluster_moves     pure: what can be done to a cluster, and what a seed draws
cluster_tables    the tables that all nodes share, with the guards of the real statements
virtual_database  their reach: delays, cuts, answers that are lost after the change was made
virtual_network   promises between agents, delayed, lost and doubled
virtual_node      a machine: its agent, its guardian, its workers; it dies, freezes and pauses
cluster_rules     pure: what must hold in every history; it shares no code with what it checks
cluster_run       one run: a scenario, a seed, the loop
"""
