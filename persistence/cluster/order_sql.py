"""The statements of operators on any node: orders to workers elsewhere, and what nodes say of theirs."""

from __future__ import annotations

from sqlalchemy import text

from .cluster_sql import NOW

# The channel of a node carries the id of each order that is for it, or that it gave and that is over.
_TELL = "pg_notify('rekindle_' || :channel, :id)"

TELL = text(f"SELECT {_TELL}")

GIVE_ORDER = text(
    f"""INSERT INTO rekindle_order (id, component_id, node_id, from_node, action, arguments, given_by,
        given_ms, until_ms, state, result, ended_ms)
    VALUES (:id, :component_id, :node_id, :from_node, :action, :arguments, :given_by,
        {NOW}, {NOW} + :patience_ms, 'pending', '', NULL)"""
)

# Two lives of one agent take an order once.
TAKE_ORDERS = text(
    f"""UPDATE rekindle_order SET state = CASE WHEN until_ms >= {NOW} THEN 'taken' ELSE 'expired' END
    WHERE node_id = :node_id AND state = 'pending' RETURNING *"""
)

END_ORDER = text(
    f"""UPDATE rekindle_order SET state = :state, result = :result, ended_ms = {NOW}
    WHERE id = :id AND state = 'taken' RETURNING from_node"""
)

WITHDRAW_ORDER = text(
    f"""UPDATE rekindle_order SET state = 'expired', ended_ms = {NOW}
    WHERE id = :id AND state = 'pending' RETURNING id"""
)

FORGET_ORDER = text("DELETE FROM rekindle_order WHERE id = :id")

READ_ORDER = text("SELECT * FROM rekindle_order WHERE id = :id")

PRUNE_ORDERS = text(f"DELETE FROM rekindle_order WHERE given_ms < {NOW} - :kept_ms")

KEEP_REPORT = text(
    f"""INSERT INTO rekindle_node_report (node_id, at_ms, written_ms, report)
    VALUES (:node_id, {NOW}, {NOW}, :report) ON CONFLICT (node_id) DO UPDATE
    SET at_ms = excluded.at_ms, written_ms = excluded.written_ms, report = excluded.report"""
)

TOUCH_REPORT = text(f"UPDATE rekindle_node_report SET at_ms = {NOW} WHERE node_id = :node_id")

OTHER_REPORTS = text(
    """SELECT r.* FROM rekindle_node_report AS r JOIN rekindle_node AS n ON n.id = r.node_id
    WHERE r.node_id <> :node_id AND n.state NOT IN ('lost', 'left')"""
)

ONE_WISH = text("SELECT * FROM rekindle_wish WHERE component_id = :component_id")

_SHIPPED = """FROM rekindle_shipped_event
    WHERE component_id = :component_id AND node_id <> ALL(:except_nodes)"""

SHIPPED_OF = text(
    f"""SELECT node_id, number AS id, at_wall_ms, type, component_id, payload {_SHIPPED}
        AND at_wall_ms >= :since_wall_ms AND (CAST(:type AS text) IS NULL OR type = :type)
    ORDER BY at_wall_ms DESC, number DESC LIMIT :limit"""
)

SHIPPED_LIVES = text(
    f"""SELECT node_id, count(*) AS deaths,
        coalesce(sum(CAST(CAST(payload AS jsonb) ->> 'uptime_ms' AS bigint)), 0) AS uptime_ms {_SHIPPED}
        AND type = 'worker_died' GROUP BY node_id"""
)
