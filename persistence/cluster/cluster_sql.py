"""The statements of a cluster. Each change is guarded: it names what its author believes, and changes nothing
if that is no longer so.

All times are milliseconds of the database's clock. Neither a lease nor a testimony is ever set back, also if
that clock is.
"""

from __future__ import annotations

from sqlalchemy import text

from rekindle.actors.cluster.facts.tenures import Tenure

NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"

READ_NOW = text(f"SELECT {NOW}")

# ── the life of a node ───────────────────────────────────────────────────────────────────

LOCK_NODE = text(f"SELECT *, {NOW} AS now_ms FROM rekindle_node WHERE id = :id FOR UPDATE")

# Two machines of one name that join at once must see each other.
LOCK_NAME = text("SELECT pg_advisory_xact_lock(hashtext('rekindle node ' || :name))")

NAMESAKE = text(
    "SELECT id FROM rekindle_node WHERE name = :name AND id <> :id AND state NOT IN ('lost', 'left') LIMIT 1"
)

ADD_NODE = text(
    """INSERT INTO rekindle_node (id, name, address, boot_id, life, version, labels, capacity, engine_node,
        state, state_reason, state_by, held, incarnation, renewals, lease_until_ms, testified_at_wall_ms,
        members, run)
    VALUES (:id, :name, :address, :boot_id, :life, :version, :labels, :capacity, :engine_node,
        'up', '', '', 'up', 1, 0, 0, 0, '[]', :run) ON CONFLICT (id) DO NOTHING"""
)

BEGIN_LIFE = text(
    """UPDATE rekindle_node SET name = :name, address = :address, boot_id = :boot_id, life = :life,
        version = :version, labels = :labels, capacity = :capacity, engine_node = :engine_node, run = :run,
        incarnation = incarnation + 1,
        state = CASE WHEN state IN ('lost', 'left') THEN held ELSE state END,
        held = 'up',
        state_reason = CASE WHEN held = 'up' AND state IN ('lost', 'left') THEN '' ELSE state_reason END
    WHERE id = :id"""
)

RENEW = text(
    f"""UPDATE rekindle_node SET renewals = :number, members = :members,
        lease_until_ms = greatest(lease_until_ms, {NOW} + :lease_ms),
        testified_at_wall_ms = CASE WHEN :testify
            THEN greatest(testified_at_wall_ms, least({NOW}, :not_after_ms)) ELSE testified_at_wall_ms END
    WHERE id = :node_id AND incarnation = :incarnation AND renewals < :number
        AND state NOT IN ('lost', 'left') AND {NOW} <= :not_after_ms
    RETURNING *, {NOW} AS now_ms"""
)

DECLARE_LOST = text(
    f"""UPDATE rekindle_node AS n SET state = 'lost', state_reason = :reason, state_by = '',
        held = CASE WHEN state IN ('cordoned', 'suspect', 'convicted', 'paroled', 'draining')
            THEN state ELSE 'up' END
    WHERE id = :node_id AND incarnation = :incarnation AND renewals = :renewals
        AND state NOT IN ('lost', 'left') AND lease_until_ms < {NOW}
        AND jsonb_array_length(CAST(n.members AS jsonb)) - (
            SELECT count(*) FROM rekindle_node AS w
            WHERE w.id <> n.id AND CAST(n.members AS jsonb) ? w.id
                AND w.testified_at_wall_ms > n.lease_until_ms
        ) < jsonb_array_length(CAST(n.members AS jsonb)) / 2 + 1
    RETURNING n.id"""
)

FREE_ASSIGNMENTS = text(
    f"""UPDATE rekindle_assignment SET node_id = NULL, phase = 'unplaced', reason = :reason, since_ms = {NOW}
    WHERE node_id = :node_id RETURNING *"""
)

END_TENURES = text(
    f"""UPDATE rekindle_tenure SET ended_ms = {NOW}, how = 'lost'
    WHERE node_id = :node_id AND ended_ms IS NULL"""
)

SET_NODE_STATE = text(
    f"""UPDATE rekindle_node SET state = :state, state_reason = :reason, state_by = :by,
        drain_until_ms = {NOW} + CAST(:deadline_ms AS bigint)
    WHERE id = :node_id AND state = ANY(:only_from) AND (
        :state <> 'left' OR NOT EXISTS (SELECT 1 FROM rekindle_assignment WHERE node_id = :node_id)
    ) RETURNING id"""
)

# By an operator, who knows that the machine is gone: the guards are its lease and its state only.
GIVE_UP_NODE = text(
    f"""UPDATE rekindle_node SET state = 'lost', state_reason = :reason, state_by = :by
    WHERE id = :node_id AND lease_until_ms < {NOW} RETURNING id"""
)

FORGET_NODE = text("DELETE FROM rekindle_node WHERE id = :node_id AND state IN ('lost', 'left') RETURNING id")

# ── where workers run ────────────────────────────────────────────────────────────────────

# The lock of the row of the node: it must not leave or be lost while a worker is placed on it.
PLACE_WORKER = text(
    f"""UPDATE rekindle_assignment AS a SET epoch = greatest(a.epoch + 1, {NOW}), node_id = n.id,
        phase = 'placed', reason = :reason, since_ms = {NOW}, target = NULL
    FROM (SELECT * FROM rekindle_node WHERE id = :node_id FOR UPDATE) AS n
    WHERE a.component_id = :component_id AND a.epoch = :epoch AND a.node_id IS NULL
        AND n.incarnation = :incarnation AND n.lease_until_ms > {NOW}
        AND (n.state = 'up' OR (n.state = 'paroled'
            AND NOT EXISTS (SELECT 1 FROM rekindle_assignment AS c WHERE c.node_id = n.id)))
    RETURNING a.*"""
)

BEGIN_RELEASE = text(
    f"""UPDATE rekindle_assignment SET phase = 'releasing', reason = :reason, since_ms = {NOW},
        target = :target
    WHERE component_id = :component_id AND epoch = :epoch AND phase = 'placed' RETURNING *"""
)

GIVE_BACK = text(
    f"""UPDATE rekindle_assignment SET node_id = NULL, phase = 'unplaced', reason = :reason, since_ms = {NOW},
        refused = CASE WHEN CAST(:refused AS text) = '' THEN refused ELSE CAST(CAST(refused AS jsonb)
            || jsonb_build_object(CAST(:node_id AS text), CAST(:refused AS text)) AS text) END
    WHERE component_id = :component_id AND epoch = :epoch AND node_id = :node_id RETURNING *"""
)

NOTE_UNPLACED = text(
    """UPDATE rekindle_assignment SET reason = :reason
    WHERE component_id = :component_id AND epoch = :epoch AND node_id IS NULL RETURNING *"""
)

LOCK_WORKER = text("SELECT pg_advisory_xact_lock(hashtext('rekindle worker ' || :component_id))")

READ_TENURE = text("SELECT * FROM rekindle_tenure WHERE component_id = :component_id AND epoch = :epoch")

_TENURE = Tenure.__struct_fields__

KEEP_TENURE = text(
    f"""INSERT INTO rekindle_tenure ({", ".join(_TENURE)})
    VALUES ({", ".join(f":{each}" for each in _TENURE)})
    ON CONFLICT (component_id, epoch) DO UPDATE SET
        {", ".join(f"{each} = excluded.{each}" for each in _TENURE[2:])}"""
)

# ── what should run ──────────────────────────────────────────────────────────────────────

PUT_WISH = text(
    """INSERT INTO rekindle_wish AS w
        (component_id, group_name, spec, place, wanted, revision, pinned, min_healthy, once, unit, beside,
        after)
    VALUES (:component_id, :group_name, :spec, :place, :wanted, 1, :pinned, :min_healthy, :once, :unit,
        :beside, :after)
    ON CONFLICT (component_id) DO UPDATE SET group_name = excluded.group_name, spec = excluded.spec,
        place = excluded.place, pinned = excluded.pinned, min_healthy = excluded.min_healthy,
        once = excluded.once, unit = excluded.unit, beside = excluded.beside, after = excluded.after,
        wanted = CASE WHEN w.wanted = 'done' AND w.spec = excluded.spec AND excluded.wanted = 'run'
            THEN 'done' ELSE excluded.wanted END,
        revision = w.revision + CASE WHEN w.spec = excluded.spec THEN 0 ELSE 1 END"""
)

ADD_ASSIGNMENT = text(
    f"""INSERT INTO rekindle_assignment
        (component_id, epoch, node_id, phase, reason, since_ms, target, refused)
    VALUES (:component_id, 0, NULL, 'unplaced', 'new', {NOW}, NULL, '{{}}')
    ON CONFLICT (component_id) DO UPDATE SET refused = '{{}}' RETURNING *"""
)

WANT_WORKER = text(
    "UPDATE rekindle_wish SET wanted = :wanted WHERE component_id = :component_id RETURNING component_id"
)

TASK_IS_DONE = text(
    """UPDATE rekindle_wish AS w SET wanted = 'done'
    WHERE w.component_id = :component_id AND w.once = 1 AND w.wanted IN ('run', 'pause') AND EXISTS (
        SELECT 1 FROM rekindle_assignment AS a WHERE a.component_id = w.component_id AND a.epoch = :epoch
    )"""
)

REMOVE_WISH = text(
    """DELETE FROM rekindle_wish AS w WHERE component_id = :component_id AND NOT EXISTS (
        SELECT 1 FROM rekindle_assignment AS a
        WHERE a.component_id = w.component_id AND a.node_id IS NOT NULL
    ) RETURNING component_id"""
)

# The epoch stays, so that a worker that comes back gets a larger one.
UNPLACE_REMOVED = text(
    "UPDATE rekindle_assignment SET reason = 'removed' WHERE component_id = :component_id AND node_id IS NULL"
)

# ── reading ──────────────────────────────────────────────────────────────────────────────

# Not a lock of a session: the session of a frozen leader lasts, and no other one would follow it. An end that
# is further away than any leader sets it was written before the clock of the database was set back.
LEADER = text(
    f"""SELECT split_part(value, ':', 1) FROM rekindle_meta
    WHERE key = 'cluster leader' AND CAST(split_part(value, ' ', 2) AS bigint) >= {NOW}"""
)

LEAD = text(
    f"""INSERT INTO rekindle_meta AS m (key, value)
    VALUES ('cluster leader', CAST(:leader AS text) || ' ' || ({NOW} + :term_ms))
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
        WHERE split_part(m.value, ' ', 1) = :leader
            OR CAST(split_part(m.value, ' ', 2) AS bigint) NOT BETWEEN {NOW} AND {NOW} + :term_ms
    RETURNING key"""
)

ALL_NODES = text("SELECT * FROM rekindle_node ORDER BY name, id")

LIVING_NODES = text("SELECT * FROM rekindle_node WHERE state NOT IN ('lost', 'left') ORDER BY name, id")

ALL_WISHES = text("SELECT * FROM rekindle_wish ORDER BY component_id")

ALL_ASSIGNMENTS = text(
    """SELECT a.* FROM rekindle_assignment AS a WHERE a.node_id IS NOT NULL
        OR EXISTS (SELECT 1 FROM rekindle_wish AS w WHERE w.component_id = a.component_id)
    ORDER BY component_id"""
)

LATEST_TENURES = text(
    """SELECT DISTINCT ON (component_id) * FROM rekindle_tenure ORDER BY component_id, epoch DESC"""
)

ALL_TENURES = text("SELECT * FROM rekindle_tenure ORDER BY component_id, epoch")

OWN_ASSIGNMENTS = text("SELECT * FROM rekindle_assignment WHERE node_id = :node_id ORDER BY component_id")

OWN_WISHES = text("SELECT * FROM rekindle_wish WHERE component_id = ANY(:ids)")

OWN_TENURES = text(
    "SELECT * FROM rekindle_tenure WHERE component_id = ANY(:ids) ORDER BY component_id, epoch"
)

# ── the history of the nodes ─────────────────────────────────────────────────────────────

SHIP_EVENT = text(
    """INSERT INTO rekindle_shipped_event (node_id, number, at_wall_ms, type, component_id, payload)
    VALUES (:node_id, :number, :at_wall_ms, :type, :component_id, :payload)
    ON CONFLICT (node_id, number) DO NOTHING"""
)

SHIPPED_UP_TO = text("SELECT coalesce(max(number), 0) FROM rekindle_shipped_event WHERE node_id = :node_id")

# The times of a node become those of the database: `shift_ms` is how far that is ahead. The first news of a
# life say when it began. What a conviction has found stays.
KEEP_LIFE = text(
    """INSERT INTO rekindle_node_life AS l (node_id, component_id, generation, epoch, began_ms, ended_ms,
        cause, fault, counted, died, is_hard)
    VALUES (:node_id, :component_id, :generation, :epoch, :began_ms + :shift_ms, :ended_ms + :shift_ms,
        :cause, :fault, :counted, :died, :is_hard)
    ON CONFLICT (node_id, component_id, generation) DO UPDATE SET
        epoch = greatest(l.epoch, excluded.epoch), ended_ms = coalesce(l.ended_ms, excluded.ended_ms),
        cause = CASE WHEN l.ended_ms IS NULL THEN excluded.cause ELSE l.cause END,
        fault = CASE WHEN l.ended_ms IS NULL THEN coalesce(excluded.fault, l.fault) ELSE l.fault END,
        counted = greatest(l.counted, excluded.counted), died = greatest(l.died, excluded.died),
        is_hard = greatest(l.is_hard, excluded.is_hard)"""
)

FORGET_EVENTS = text(
    """DELETE FROM rekindle_shipped_event
    WHERE node_id = :node_id AND at_wall_ms < :before_ms AND number < :up_to"""
)

FORGET_LIVES = text("DELETE FROM rekindle_node_life WHERE node_id = :node_id AND ended_ms < :before_ms")

# ── suspects ─────────────────────────────────────────────────────────────────────────────

_RULING = f"""INSERT INTO rekindle_ruling (node_id, number, at_ms, kind, why, given_by, body)
    SELECT n.id, {{number}}, {NOW}, :kind, :why, :given_by, :body
    FROM rekindle_node AS n WHERE n.id = :node_id"""

GIVE_RULING = text(
    _RULING.format(number="CAST(:number AS bigint)")
    + """ AND n.state = ANY(:only_from) AND coalesce((SELECT max(r.number) FROM rekindle_ruling AS r
        WHERE r.node_id = n.id), 0) = CAST(:number AS bigint) - 1 RETURNING number"""
)

OVERRULE = text(
    _RULING.format(
        number="(SELECT coalesce(max(r.number), 0) + 1 FROM rekindle_ruling AS r WHERE r.node_id = n.id)"
    )
)

# A node that is lost returns to the state that its case has by then.
SET_CASE_STATE = text(
    """UPDATE rekindle_node SET
        state = CASE WHEN state = ANY(:own) THEN :state ELSE state END,
        held = CASE WHEN state IN ('lost', 'left') AND held = ANY(:own) THEN :state ELSE held END,
        state_reason = CASE WHEN state = ANY(:own) THEN :reason ELSE state_reason END,
        state_by = CASE WHEN state = ANY(:own) THEN '' ELSE state_by END
    WHERE id = :node_id"""
)

RULINGS_OF = text("SELECT * FROM rekindle_ruling WHERE node_id = :node_id ORDER BY number")

LATEST_RULINGS = text("SELECT DISTINCT ON (node_id) * FROM rekindle_ruling ORDER BY node_id, number DESC")

BLAME_NODE = text(
    """UPDATE rekindle_node_life SET fault = 'node'
    WHERE node_id = :node_id AND died = 1 AND fault IN ('worker', 'unknown') AND ended_ms >= :since_ms
        AND ended_ms <= coalesce(CAST(:until_ms AS bigint), ended_ms)
    RETURNING component_id, epoch"""
)

REFUND = text(
    f"""UPDATE rekindle_tenure AS t SET
        lifted_ms = coalesce(t.lifted_ms, {NOW}),
        refunded = greatest(t.refunded, (SELECT count(*) FROM rekindle_node_life AS l
            WHERE l.component_id = t.component_id AND l.epoch = t.epoch AND l.node_id = t.node_id
                AND l.fault = 'node' AND l.died = 1 AND l.counted = 1))
    WHERE t.component_id = :component_id AND t.epoch = :epoch AND t.node_id = :node_id"""
)

# The last process of a node that was lost has no end of its own: it ended with its tenure, or when the next
# one began.
RECENT_LIVES = text(
    """WITH known AS (
        SELECT l.*,
            lead(l.began_ms) OVER (PARTITION BY l.component_id ORDER BY l.epoch, l.generation) AS next_ms
        FROM rekindle_node_life AS l WHERE l.ended_ms IS NULL OR l.ended_ms >= :since_ms
    ), cut AS (
        SELECT k.*, CASE
            WHEN k.ended_ms IS NOT NULL OR k.next_ms IS NOT NULL
                THEN greatest(k.began_ms, least(k.ended_ms, k.next_ms))
            WHEN a.component_id IS NULL THEN greatest(k.began_ms, coalesce(t.ended_ms, k.began_ms))
        END AS end_ms
        FROM known AS k
        LEFT JOIN rekindle_assignment AS a
            ON a.component_id = k.component_id AND a.epoch = k.epoch AND a.node_id = k.node_id
        LEFT JOIN rekindle_tenure AS t ON t.component_id = k.component_id AND t.epoch = k.epoch
    )
    SELECT node_id, component_id, generation, epoch, began_ms, end_ms AS ended_ms, cause, fault, counted,
        died, is_hard
    FROM cut WHERE end_ms IS NULL OR end_ms >= :since_ms ORDER BY component_id, epoch, generation"""
)

LIVES_OF = text(
    "SELECT * FROM rekindle_node_life WHERE component_id = :component_id ORDER BY epoch, generation"
)

# ── the name of the cluster ──────────────────────────────────────────────────────────────

NAME_CLUSTER = text(
    "INSERT INTO rekindle_meta (key, value) VALUES ('cluster', :name) ON CONFLICT (key) DO NOTHING"
)

SET_META = text(
    """INSERT INTO rekindle_meta AS m (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE m.value <> excluded.value RETURNING key"""
)

CLUSTER_NAME = text("SELECT value FROM rekindle_meta WHERE key = 'cluster'")

KEEP_SECRET = text(
    """INSERT INTO rekindle_meta (key, value) VALUES ('cluster_secret', :shown)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
)
"""What is kept says whether two secrets are the same, and not what they are."""

KNOWN_SECRET = text("SELECT value FROM rekindle_meta WHERE key = 'cluster_secret'")

OTHER_HOLDERS = text(
    f"""SELECT name FROM rekindle_node WHERE id <> :node_id AND state NOT IN ('lost', 'left')
        AND lease_until_ms > {NOW} ORDER BY name"""
)
