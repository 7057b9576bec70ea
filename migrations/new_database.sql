CREATE TABLE rekindle_alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT rekindle_alembic_version_pkc PRIMARY KEY (version_num)
)

CREATE TABLE rekindle_alert (
	id BIGINT NOT NULL,
	component_id TEXT,
	kind TEXT NOT NULL,
	severity TEXT NOT NULL,
	opened_at_wall_ms BIGINT NOT NULL,
	resolved_at_wall_ms BIGINT,
	body TEXT NOT NULL,
	CONSTRAINT pk_rekindle_alert PRIMARY KEY (id)
)

CREATE TABLE rekindle_assignment (
	component_id TEXT NOT NULL,
	epoch BIGINT NOT NULL,
	node_id TEXT,
	phase TEXT NOT NULL,
	reason TEXT NOT NULL,
	since_ms BIGINT NOT NULL,
	target TEXT,
	refused TEXT NOT NULL,
	CONSTRAINT pk_rekindle_assignment PRIMARY KEY (component_id)
)

CREATE TABLE rekindle_audit (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	at_wall_ms BIGINT NOT NULL,
	gateway TEXT NOT NULL,
	uid BIGINT,
	pid BIGINT,
	claimed_user TEXT,
	action TEXT NOT NULL,
	target TEXT NOT NULL,
	detail TEXT NOT NULL,
	result TEXT NOT NULL,
	reason TEXT NOT NULL
)

CREATE TABLE rekindle_batch (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	total INTEGER NOT NULL,
	done INTEGER NOT NULL,
	failed INTEGER NOT NULL,
	callback_id BIGINT,
	created_at_wall_ms BIGINT NOT NULL
)

CREATE TABLE rekindle_bundle (
	component_id TEXT NOT NULL,
	generation BIGINT NOT NULL,
	at_wall_ms BIGINT NOT NULL,
	finding TEXT NOT NULL,
	crash TEXT NOT NULL,
	details TEXT NOT NULL,
	CONSTRAINT pk_rekindle_bundle PRIMARY KEY (component_id, generation)
)
 WITHOUT ROWID

CREATE TABLE rekindle_death (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	component_id TEXT NOT NULL,
	generation BIGINT NOT NULL,
	died_at_wall_ms BIGINT NOT NULL,
	cause TEXT NOT NULL,
	exit_code INTEGER,
	signal INTEGER,
	uptime_ms BIGINT NOT NULL,
	job TEXT,
	action TEXT NOT NULL,
	reason TEXT NOT NULL,
	delay_ms BIGINT NOT NULL, work_item TEXT, released TEXT,
	CONSTRAINT uq_rekindle_death_component_id_generation UNIQUE (component_id, generation)
)

CREATE TABLE rekindle_event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	schema_version INTEGER NOT NULL,
	at_wall_ms BIGINT NOT NULL,
	type TEXT NOT NULL,
	component_id TEXT,
	payload TEXT NOT NULL
)

CREATE TABLE rekindle_generation (
	component_id TEXT NOT NULL,
	reserved BIGINT NOT NULL,
	started BIGINT NOT NULL,
	started_at_wall_ms BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	CONSTRAINT pk_rekindle_generation PRIMARY KEY (component_id)
)

CREATE TABLE rekindle_health (
	component_id TEXT NOT NULL,
	generation BIGINT NOT NULL,
	status TEXT NOT NULL,
	pid INTEGER,
	current_job TEXT,
	last_heartbeat_wall_ms BIGINT,
	updated_at_wall_ms BIGINT NOT NULL,
	CONSTRAINT pk_rekindle_health PRIMARY KEY (component_id)
)

CREATE TABLE "rekindle_job" (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	queue TEXT NOT NULL,
	payload TEXT NOT NULL,
	priority INTEGER NOT NULL,
	not_before_wall_ms BIGINT NOT NULL,
	state TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	crash_count INTEGER NOT NULL,
	claimed_by TEXT,
	claimed_generation BIGINT,
	created_at_wall_ms BIGINT NOT NULL,
	started_at_wall_ms BIGINT,
	finished_at_wall_ms BIGINT,
	result TEXT,
	error TEXT,
	toxic_since_wall_ms BIGINT,
	error_count INTEGER DEFAULT '0' NOT NULL,
	max_retries INTEGER,
	alone INTEGER DEFAULT '0' NOT NULL,
	claimed_run TEXT
, crash_retries INTEGER, unique_key TEXT, checkpoint TEXT, timeout_ms BIGINT, retry_delay_ms BIGINT, max_retry_delay_ms BIGINT, expires_at_wall_ms BIGINT, cancel_requested_at_wall_ms BIGINT, errors TEXT, progress TEXT, "key" TEXT, waits_for INTEGER, followed INTEGER DEFAULT '0' NOT NULL, failed_by BIGINT, batch_id BIGINT, batch_counts TEXT, traceparent TEXT, claimed_node TEXT, claimed_epoch BIGINT, lost_count INTEGER DEFAULT '0' NOT NULL)

CREATE TABLE rekindle_job_after (
	after_id BIGINT NOT NULL,
	job_id BIGINT NOT NULL,
	CONSTRAINT pk_rekindle_job_after PRIMARY KEY (after_id, job_id)
)

CREATE TABLE rekindle_job_crash (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	job_id BIGINT NOT NULL,
	attempt INTEGER NOT NULL,
	at_wall_ms BIGINT NOT NULL,
	component_id TEXT NOT NULL,
	generation BIGINT NOT NULL,
	cause TEXT NOT NULL,
	exit_code INTEGER,
	signal INTEGER,
	output TEXT NOT NULL
, began_at_wall_ms BIGINT)

CREATE TABLE rekindle_job_tally (
	queue TEXT NOT NULL,
	state TEXT NOT NULL,
	part INTEGER NOT NULL,
	many BIGINT NOT NULL,
	busy_ms BIGINT NOT NULL,
	CONSTRAINT pk_rekindle_job_tally PRIMARY KEY (queue, state, part)
)

CREATE TABLE rekindle_meta (
	"key" TEXT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT pk_rekindle_meta PRIMARY KEY ("key")
)

CREATE TABLE rekindle_node (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	address TEXT NOT NULL,
	boot_id TEXT NOT NULL,
	life TEXT NOT NULL,
	version TEXT NOT NULL,
	labels TEXT NOT NULL,
	capacity TEXT NOT NULL,
	engine_node TEXT NOT NULL,
	state TEXT NOT NULL,
	state_reason TEXT NOT NULL,
	state_by TEXT NOT NULL,
	held TEXT NOT NULL,
	incarnation BIGINT NOT NULL,
	renewals BIGINT NOT NULL,
	lease_until_ms BIGINT NOT NULL,
	testified_at_wall_ms BIGINT NOT NULL,
	members TEXT NOT NULL, drain_until_ms BIGINT, run TEXT DEFAULT '' NOT NULL,
	CONSTRAINT pk_rekindle_node PRIMARY KEY (id)
)

CREATE TABLE rekindle_node_life (
	node_id TEXT NOT NULL,
	component_id TEXT NOT NULL,
	generation BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	began_ms BIGINT NOT NULL,
	ended_ms BIGINT,
	cause TEXT NOT NULL,
	fault TEXT,
	counted BIGINT NOT NULL,
	died BIGINT NOT NULL,
	is_hard BIGINT NOT NULL,
	CONSTRAINT pk_rekindle_node_life PRIMARY KEY (node_id, component_id, generation)
)

CREATE TABLE rekindle_node_report (
	node_id TEXT NOT NULL,
	at_ms BIGINT NOT NULL,
	written_ms BIGINT NOT NULL,
	report TEXT NOT NULL,
	CONSTRAINT pk_rekindle_node_report PRIMARY KEY (node_id)
)

CREATE TABLE rekindle_order (
	id TEXT NOT NULL,
	component_id TEXT NOT NULL,
	node_id TEXT NOT NULL,
	from_node TEXT NOT NULL,
	action TEXT NOT NULL,
	arguments TEXT NOT NULL,
	given_by TEXT NOT NULL,
	given_ms BIGINT NOT NULL,
	until_ms BIGINT NOT NULL,
	state TEXT NOT NULL,
	result TEXT NOT NULL,
	ended_ms BIGINT,
	CONSTRAINT pk_rekindle_order PRIMARY KEY (id)
)

CREATE TABLE rekindle_periodic (
	name TEXT NOT NULL,
	queue TEXT NOT NULL,
	schedule TEXT NOT NULL,
	last_due_wall_ms BIGINT NOT NULL,
	next_due_wall_ms BIGINT,
	last_job_id BIGINT,
	missed BIGINT NOT NULL,
	CONSTRAINT pk_rekindle_periodic PRIMARY KEY (name)
)

CREATE TABLE rekindle_queue (
	name TEXT NOT NULL,
	paused_at_wall_ms BIGINT,
	paused_until_wall_ms BIGINT,
	pause_reason TEXT,
	concurrency INTEGER,
	rate INTEGER,
	rate_period_ms BIGINT,
	key_concurrency INTEGER,
	key_rate INTEGER,
	key_rate_period_ms BIGINT,
	bucket_full_us BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_rekindle_queue PRIMARY KEY (name)
)

CREATE TABLE rekindle_queue_key (
	queue TEXT NOT NULL,
	"key" TEXT NOT NULL,
	bucket_full_us BIGINT NOT NULL,
	CONSTRAINT pk_rekindle_queue_key PRIMARY KEY (queue, "key")
)

CREATE TABLE rekindle_ruling (
	node_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	at_ms BIGINT NOT NULL,
	kind TEXT NOT NULL,
	why TEXT NOT NULL,
	given_by TEXT NOT NULL,
	body TEXT NOT NULL,
	CONSTRAINT pk_rekindle_ruling PRIMARY KEY (node_id, number)
)

CREATE TABLE rekindle_run (
	component_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	state TEXT NOT NULL,
	"trigger" TEXT NOT NULL,
	due_wall_ms BIGINT NOT NULL,
	last_due_wall_ms BIGINT,
	times BIGINT NOT NULL,
	started_at_wall_ms BIGINT,
	ended_at_wall_ms BIGINT,
	attempts INTEGER NOT NULL,
	exit_code INTEGER,
	signal INTEGER,
	reason TEXT,
	detail TEXT NOT NULL,
	CONSTRAINT pk_rekindle_run PRIMARY KEY (component_id, number)
)
 WITHOUT ROWID

CREATE TABLE rekindle_shipped_event (
	node_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	at_wall_ms BIGINT NOT NULL,
	type TEXT NOT NULL,
	component_id TEXT,
	payload TEXT NOT NULL,
	CONSTRAINT pk_rekindle_shipped_event PRIMARY KEY (node_id, number)
)

CREATE TABLE rekindle_tenure (
	component_id TEXT NOT NULL,
	epoch BIGINT NOT NULL,
	node_id TEXT NOT NULL,
	began_ms BIGINT NOT NULL,
	ended_ms BIGINT,
	how TEXT,
	restarts BIGINT NOT NULL,
	streak BIGINT NOT NULL,
	last_restart_ms BIGINT,
	recent_deaths_ms TEXT NOT NULL,
	failed_at_wall_ms BIGINT,
	failure_reason TEXT,
	refunded BIGINT NOT NULL,
	reset_at_wall_ms BIGINT,
	last_generation BIGINT NOT NULL,
	noted BIGINT NOT NULL, lifted_ms BIGINT, ready_ms BIGINT, done_ms BIGINT, timetable TEXT,
	CONSTRAINT pk_rekindle_tenure PRIMARY KEY (component_id, epoch)
)

CREATE TABLE rekindle_usage (
	component_id TEXT NOT NULL,
	at_wall_ms BIGINT NOT NULL,
	generation BIGINT NOT NULL,
	memory_mb FLOAT NOT NULL,
	peak_memory_mb FLOAT NOT NULL,
	cpu_percent FLOAT,
	threads INTEGER NOT NULL,
	descriptors INTEGER,
	CONSTRAINT pk_rekindle_usage PRIMARY KEY (component_id, at_wall_ms)
)
 WITHOUT ROWID

CREATE TABLE rekindle_wish (
	component_id TEXT NOT NULL,
	group_name TEXT NOT NULL,
	spec TEXT NOT NULL,
	place TEXT NOT NULL,
	wanted TEXT NOT NULL,
	revision BIGINT NOT NULL,
	pinned TEXT,
	min_healthy INTEGER, once INTEGER DEFAULT '0' NOT NULL, unit TEXT DEFAULT '' NOT NULL, beside TEXT DEFAULT '[]' NOT NULL, "after" TEXT DEFAULT '{}' NOT NULL,
	CONSTRAINT pk_rekindle_wish PRIMARY KEY (component_id)
)

CREATE TABLE rekindle_worker_restart_policy (
	component_id TEXT NOT NULL,
	restart_count INTEGER NOT NULL,
	streak_count INTEGER NOT NULL,
	last_restart_wall_ms BIGINT,
	failed_at_wall_ms BIGINT,
	failure_reason TEXT,
	updated_at_wall_ms BIGINT NOT NULL, reset_at_wall_ms BIGINT, failed_fingerprint TEXT, restarts_before_reset BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_rekindle_worker_restart_policy PRIMARY KEY (component_id),
	CONSTRAINT ck_rekindle_worker_restart_policy_restart_count CHECK (restart_count >= 0),
	CONSTRAINT ck_rekindle_worker_restart_policy_streak_count CHECK (streak_count >= 0)
)

CREATE INDEX ix_rekindle_death_signal ON rekindle_death (signal)

CREATE INDEX ix_rekindle_event_component_id_id ON rekindle_event (component_id, id)

CREATE INDEX ix_rekindle_job_after_job_id ON rekindle_job_after (job_id)

CREATE INDEX ix_rekindle_job_batch_id ON rekindle_job (batch_id) WHERE batch_id IS NOT NULL

CREATE INDEX ix_rekindle_job_crash_job_id ON rekindle_job_crash (job_id)

CREATE INDEX ix_rekindle_job_due ON rekindle_job (queue, not_before_wall_ms) WHERE state = 'pending'

CREATE INDEX ix_rekindle_job_expiring ON rekindle_job (expires_at_wall_ms) WHERE state = 'pending' AND expires_at_wall_ms IS NOT NULL

CREATE INDEX ix_rekindle_job_failed_by ON rekindle_job (failed_by) WHERE failed_by IS NOT NULL

CREATE INDEX ix_rekindle_job_keyed ON rekindle_job (queue, "key", priority, not_before_wall_ms, id) WHERE state = 'pending' AND key IS NOT NULL

CREATE INDEX ix_rekindle_job_pending ON rekindle_job (queue, priority, not_before_wall_ms, id) WHERE state = 'pending'

CREATE INDEX ix_rekindle_job_running ON rekindle_job (claimed_by, claimed_generation) WHERE state = 'running'

CREATE INDEX ix_rekindle_job_toxic ON rekindle_job (toxic_since_wall_ms) WHERE state = 'toxic'

CREATE INDEX ix_rekindle_job_traced ON rekindle_job (finished_at_wall_ms, id) WHERE traceparent IS NOT NULL

CREATE INDEX ix_rekindle_job_unique ON rekindle_job (queue, unique_key) WHERE unique_key IS NOT NULL

CREATE INDEX ix_rekindle_node_life_component_id_epoch ON rekindle_node_life (component_id, epoch)

CREATE INDEX ix_rekindle_node_life_ended_ms ON rekindle_node_life (ended_ms)

CREATE INDEX ix_rekindle_order_node_id ON rekindle_order (node_id, state)

CREATE INDEX ix_rekindle_shipped_event_component_id ON rekindle_shipped_event (component_id)

CREATE TRIGGER rekindle_job_deleted AFTER DELETE ON rekindle_job
        WHEN OLD.waits_for IS NOT NULL BEGIN DELETE FROM rekindle_job_after WHERE job_id = OLD.id; END

CREATE TRIGGER rekindle_job_ended AFTER UPDATE OF state ON rekindle_job WHEN NEW.followed = 1 AND OLD.state IN ('pending', 'running', 'waiting') AND NEW.state NOT IN ('pending', 'running', 'waiting') BEGIN
UPDATE rekindle_job SET waits_for = waits_for - 1,
    state = CASE WHEN waits_for = 1 AND state = 'waiting' THEN 'pending' ELSE state END
WHERE NEW.state = 'done'
    AND id IN (SELECT link.job_id FROM rekindle_job_after AS link WHERE link.after_id = NEW.id);
UPDATE rekindle_job SET state = 'cancelled', failed_by = NEW.id,
    finished_at_wall_ms = NEW.finished_at_wall_ms,
    error = 'job ' || NEW.id || ', which it comes after, ' || CASE NEW.state WHEN 'error' THEN 'has failed' WHEN 'expired' THEN 'has expired' ELSE 'is ' || NEW.state END
WHERE NEW.state <> 'done' AND state = 'waiting' AND id IN (
    WITH RECURSIVE later(id) AS (
        SELECT link.job_id FROM rekindle_job_after AS link WHERE link.after_id = NEW.id
        UNION
        SELECT link.job_id FROM rekindle_job_after AS link JOIN later ON link.after_id = later.id
    )
    SELECT later.id FROM later
);
UPDATE rekindle_batch SET
    done = done + CASE WHEN id = NEW.batch_id AND NEW.state = 'done' THEN 1 ELSE 0 END,
    failed = failed + CASE WHEN id = NEW.batch_id AND NEW.state <> 'done' THEN 1 ELSE 0 END +
(SELECT count(*) FROM rekindle_job AS job
 WHERE job.failed_by = NEW.id AND job.state = 'cancelled' AND job.batch_id = rekindle_batch.id)
WHERE id = NEW.batch_id OR id IN (
SELECT job.batch_id FROM rekindle_job AS job WHERE job.failed_by = NEW.id AND job.batch_id IS NOT NULL);
UPDATE rekindle_job SET state = 'pending', batch_counts = (
    SELECT '{"id":' || batch.id || ', "total":' || batch.total || ', "done":' || batch.done
        || ', "failed":' || batch.failed || '}'
    FROM rekindle_batch AS batch WHERE batch.callback_id = rekindle_job.id
)
WHERE state = 'waiting' AND id IN (
    SELECT batch.callback_id FROM rekindle_batch AS batch
    WHERE batch.done + batch.failed = batch.total AND (batch.id = NEW.batch_id OR batch.id IN (
SELECT job.batch_id FROM rekindle_job AS job WHERE job.failed_by = NEW.id AND job.batch_id IS NOT NULL))
); END

CREATE TRIGGER rekindle_job_reopened AFTER UPDATE OF state ON rekindle_job WHEN NEW.followed = 1 AND OLD.state NOT IN ('pending', 'running', 'waiting') AND OLD.state <> 'done' AND NEW.state IN ('pending', 'running', 'waiting') BEGIN
UPDATE rekindle_batch SET
    failed = failed - CASE WHEN id = NEW.batch_id THEN 1 ELSE 0 END -
(SELECT count(*) FROM rekindle_job AS job
 WHERE job.failed_by = NEW.id AND job.state = 'cancelled' AND job.batch_id = rekindle_batch.id)
WHERE id = NEW.batch_id OR id IN (
SELECT job.batch_id FROM rekindle_job AS job WHERE job.failed_by = NEW.id AND job.batch_id IS NOT NULL);
UPDATE rekindle_job
SET state = 'waiting', failed_by = NULL, error = NULL, finished_at_wall_ms = NULL
WHERE failed_by = NEW.id AND state = 'cancelled'; END

CREATE TRIGGER rekindle_job_tally_added AFTER INSERT ON rekindle_job WHEN NEW.state NOT IN ('pending', 'running') BEGIN INSERT INTO rekindle_job_tally (queue, state, part, many, busy_ms)
        SELECT NEW.queue, NEW.state, 0, 1, (CASE WHEN NEW.state = 'done' AND NEW.finished_at_wall_ms > NEW.started_at_wall_ms
    THEN NEW.finished_at_wall_ms - NEW.started_at_wall_ms ELSE 0 END)
        WHERE NEW.state NOT IN ('pending', 'running')
        ON CONFLICT (queue, state, part) DO UPDATE SET
            many = rekindle_job_tally.many + excluded.many,
            busy_ms = rekindle_job_tally.busy_ms + excluded.busy_ms; END

CREATE TRIGGER rekindle_job_tally_changed AFTER UPDATE OF state ON rekindle_job WHEN OLD.state <> NEW.state AND (OLD.state NOT IN ('pending', 'running') OR NEW.state NOT IN ('pending', 'running')) BEGIN INSERT INTO rekindle_job_tally (queue, state, part, many, busy_ms)
        SELECT OLD.queue, OLD.state, 0, -1, -(CASE WHEN OLD.state = 'done' AND OLD.finished_at_wall_ms > OLD.started_at_wall_ms
    THEN OLD.finished_at_wall_ms - OLD.started_at_wall_ms ELSE 0 END)
        WHERE OLD.state NOT IN ('pending', 'running')
        ON CONFLICT (queue, state, part) DO UPDATE SET
            many = rekindle_job_tally.many + excluded.many,
            busy_ms = rekindle_job_tally.busy_ms + excluded.busy_ms; INSERT INTO rekindle_job_tally (queue, state, part, many, busy_ms)
        SELECT NEW.queue, NEW.state, 0, 1, (CASE WHEN NEW.state = 'done' AND NEW.finished_at_wall_ms > NEW.started_at_wall_ms
    THEN NEW.finished_at_wall_ms - NEW.started_at_wall_ms ELSE 0 END)
        WHERE NEW.state NOT IN ('pending', 'running')
        ON CONFLICT (queue, state, part) DO UPDATE SET
            many = rekindle_job_tally.many + excluded.many,
            busy_ms = rekindle_job_tally.busy_ms + excluded.busy_ms; END

CREATE TRIGGER rekindle_job_tally_deleted AFTER DELETE ON rekindle_job WHEN OLD.state NOT IN ('pending', 'running') BEGIN INSERT INTO rekindle_job_tally (queue, state, part, many, busy_ms)
        SELECT OLD.queue, OLD.state, 0, -1, -(CASE WHEN OLD.state = 'done' AND OLD.finished_at_wall_ms > OLD.started_at_wall_ms
    THEN OLD.finished_at_wall_ms - OLD.started_at_wall_ms ELSE 0 END)
        WHERE OLD.state NOT IN ('pending', 'running')
        ON CONFLICT (queue, state, part) DO UPDATE SET
            many = rekindle_job_tally.many + excluded.many,
            busy_ms = rekindle_job_tally.busy_ms + excluded.busy_ms; END

INSERT INTO rekindle_alembic_version (version_num) VALUES ('0027')
