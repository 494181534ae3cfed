package counters

// The schema belongs to this package, because the database need not be the store's. Its names end in a version
// number: nodes of two versions that run side by side break nothing of each other's. They count together in the same
// table of counters. Each counts the nodes that write to its own table of nodes.
//
// A counter is a row. slots holds the amounts of 61 seconds; the place of a second is its remainder by 61. last is
// the last charged second, total the sum of slots. The tables are unlogged: after a crash the counters begin anew.
// The row with the empty key is no counter: its total is the epoch of the counters, which is lost with them. Its last
// is the beginning of the epoch, in microseconds. A node's epoch is the one in which the counters know its charges.
const schemaSQL = `
CREATE UNLOGGED TABLE IF NOT EXISTS durward_counters_1 (
	key bytea NOT NULL PRIMARY KEY,
	last bigint NOT NULL,
	total bigint NOT NULL,
	slots bigint[] NOT NULL
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02);

CREATE UNLOGGED TABLE IF NOT EXISTS durward_nodes_3 (
	node text NOT NULL PRIMARY KEY,
	seen numeric NOT NULL,
	epoch bigint NOT NULL
);

CREATE OR REPLACE FUNCTION durward_counters_now_1() RETURNS numeric LANGUAGE sql VOLATILE AS $$
	SELECT extract(epoch FROM clock_timestamp()) - 1700000000
$$;

-- A counter as it is at a second: what no longer counts is out of it. One from a later second than the clock's is of a
-- clock that was set back: for a minute its time stands still, beyond that it begins anew.
CREATE OR REPLACE FUNCTION durward_counters_at_1(c durward_counters_1, now bigint) RETURNS durward_counters_1 LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF now - c.last > 60 OR c.last - now > 61 THEN
		c.last := now; c.total := 0; c.slots := array_fill(0::bigint, ARRAY[61]);
	ELSE
		WHILE c.last < now LOOP
			c.last := c.last + 1;
			c.total := c.total - c.slots[c.last % 61 + 1];
			c.slots[c.last % 61 + 1] := 0;
		END LOOP;
	END IF;
	RETURN c;
END $$;

CREATE OR REPLACE FUNCTION durward_counters_epoch_1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
	SELECT total FROM durward_counters_1 WHERE key = ''
$$;

-- Makes the steps of many requests one after the other: keys are all counters, in order; epochs says for each step in
-- which it may be made, ends where its charges end; places, amounts and limits are of charges, places in keys. made is NULL
-- for a step of another epoch.
CREATE OR REPLACE FUNCTION durward_counters_charge_2(epochs bigint[], keys bytea[], ends int[], places int[], amounts bigint[], limits bigint[],
	OUT at bigint, OUT made boolean[], OUT used bigint[], OUT waits bigint[]) LANGUAGE plpgsql AS $$
DECLARE
	rows durward_counters_1[] := '{}';
	c durward_counters_1;
	totals bigint[] := '{}';
	added bigint[];
	now numeric;
	epoch bigint;
	first int := 1;
	k int;
	ok boolean;
	need bigint;
	over bigint;
	till bigint;
BEGIN
	INSERT INTO durward_counters_1 (key, last, total, slots)
		SELECT u, 0, 0, array_fill(0::bigint, ARRAY[61]) FROM unnest(keys) u ORDER BY u ON CONFLICT (key) DO NOTHING;
	FOR c IN SELECT t.* FROM durward_counters_1 t WHERE t.key = ANY(keys) ORDER BY t.key FOR UPDATE LOOP
		rows := rows || c;
	END LOOP;
	IF cardinality(rows) <> cardinality(keys) THEN
		RAISE EXCEPTION 'a counter was forgotten meanwhile' USING ERRCODE = 'serialization_failure';
	END IF;
	SELECT t.total INTO epoch FROM durward_counters_1 t WHERE t.key = ''; -- cheaper than the function
	now := durward_counters_now_1(); -- with all locks held: nobody charges a second that has passed
	at := floor(now);
	FOR i IN 1..cardinality(keys) LOOP
		rows[i] := durward_counters_at_1(rows[i], floor(now)::bigint);
		totals := totals || (rows[i]).total;
		at := greatest(at, (rows[i]).last);
	END LOOP;
	added := array_fill(0::bigint, ARRAY[cardinality(keys)]);
	used := array_fill(0::bigint, ARRAY[cardinality(places)]);
	waits := used;
	made := '{}';
	FOR s IN 1..cardinality(ends) LOOP
		IF epochs[s] IS DISTINCT FROM epoch THEN
			made := array_append(made, NULL);
			first := ends[s] + 1;
			CONTINUE;
		END IF;
		ok := true;
		FOR i IN first..ends[s] LOOP
			k := places[i];
			used[i] := totals[k];
			need := greatest(amounts[i], 1);
			IF totals[k] + need > limits[i] THEN
				ok := false;
				waits[i] := 61000000;
				IF need <= limits[i] THEN
					over := totals[k] + need - limits[i];
					c := rows[k];
					till := c.last;
					FOR second IN (c.last - 60)..(c.last - 1) LOOP
						over := over - c.slots[second % 61 + 1];
						IF over <= 0 THEN
							till := second;
							EXIT;
						END IF;
					END LOOP;
					waits[i] := greatest(least(61000000, ceil((till + 61 - now) * 1000000)), 1);
				END IF;
			END IF;
			totals[k] := totals[k] + amounts[i];
		END LOOP;
		FOR i IN first..ends[s] LOOP
			IF ok THEN
				added[places[i]] := added[places[i]] + amounts[i];
			ELSE
				totals[places[i]] := totals[places[i]] - amounts[i];
			END IF;
		END LOOP;
		FOR i IN first..ends[s] LOOP
			used[i] := totals[places[i]];
		END LOOP;
		made := made || ok;
		first := ends[s] + 1;
	END LOOP;
	FOR i IN 1..cardinality(keys) LOOP
		IF added[i] > 0 THEN
			c := rows[i];
			c.slots[c.last % 61 + 1] := c.slots[c.last % 61 + 1] + added[i];
			UPDATE durward_counters_1 t SET last = c.last, total = totals[i], slots = c.slots WHERE t.key = keys[i];
		END IF;
	END LOOP;
END $$;

-- Corrects one counter after the other; keys are in order, and may be there more than once. false: those of the epoch are
-- lost.
CREATE OR REPLACE FUNCTION durward_counters_correct_2(epoch bigint, keys bytea[], seconds bigint[], deltas bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	c durward_counters_1;
	now bigint;
	place int;
	back bigint;
BEGIN
	IF epoch IS DISTINCT FROM durward_counters_epoch_1() THEN
		RETURN false;
	END IF;
	FOR i IN 1..cardinality(keys) LOOP
		IF deltas[i] > 0 THEN
			INSERT INTO durward_counters_1 (key, last, total, slots)
				VALUES (keys[i], 0, 0, array_fill(0::bigint, ARRAY[61])) ON CONFLICT (key) DO NOTHING;
		END IF;
		SELECT t.* INTO c FROM durward_counters_1 t WHERE t.key = keys[i] FOR UPDATE;
		CONTINUE WHEN NOT FOUND;
		now := floor(durward_counters_now_1());
		c := durward_counters_at_1(c, now);
		IF deltas[i] > 0 THEN
			place := c.last % 61 + 1;
			back := -deltas[i];
		ELSIF seconds[i] BETWEEN c.last - 60 AND c.last THEN
			place := seconds[i] % 61 + 1;
			back := least(c.slots[place], -deltas[i]);
		ELSE
			CONTINUE;
		END IF;
		c.slots[place] := c.slots[place] - back;
		UPDATE durward_counters_1 t SET last = c.last, total = c.total - back, slots = c.slots WHERE t.key = keys[i];
	END LOOP;
	RETURN true;
END $$;

-- Charges what was let through so many seconds ago; keys are in order, and may be there more than once. false is as above.
CREATE OR REPLACE FUNCTION durward_counters_restore_1(epoch bigint, keys bytea[], ages bigint[], amounts bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	c durward_counters_1;
	place int;
BEGIN
	IF epoch IS DISTINCT FROM durward_counters_epoch_1() THEN
		RETURN false;
	END IF;
	FOR i IN 1..cardinality(keys) LOOP
		INSERT INTO durward_counters_1 (key, last, total, slots)
			VALUES (keys[i], 0, 0, array_fill(0::bigint, ARRAY[61])) ON CONFLICT (key) DO NOTHING;
		SELECT t.* INTO c FROM durward_counters_1 t WHERE t.key = keys[i] FOR UPDATE;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'a counter was forgotten meanwhile' USING ERRCODE = 'serialization_failure';
		END IF;
		c := durward_counters_at_1(c, floor(durward_counters_now_1())::bigint);
		place := (c.last - ages[i]) % 61 + 1;
		c.slots[place] := c.slots[place] + amounts[i];
		UPDATE durward_counters_1 t SET last = c.last, total = c.total + amounts[i], slots = c.slots WHERE t.key = keys[i];
	END LOOP;
	RETURN true;
END $$`

const (
	// schemaLockSQL makes nodes that start at the same time create the schema one after the other.
	schemaLockSQL = `SELECT pg_advisory_xact_lock(7238117)`
	// existsSQL tells whether the schema already exists.
	existsSQL = `SELECT to_regclass('durward_counters_1') IS NOT NULL AND to_regclass('durward_nodes_3') IS NOT NULL
		AND to_regprocedure('durward_counters_restore_1(bigint,bytea[],bigint[],bigint[])') IS NOT NULL`

	nowSQL     = `SELECT (durward_counters_now_1() * 1000000)::bigint`
	chargeSQL  = `SELECT at, made, used, waits FROM durward_counters_charge_2($1, $2, $3, $4, $5, $6)`
	correctSQL = `SELECT durward_counters_correct_2($1, $2, $3, $4)`
	restoreSQL = `SELECT durward_counters_restore_1($1, $2, $3, $4)`
	// readSQL and groupSQL return counters as they were last written, and the present time in microseconds.
	readSQL  = `SELECT key, last, slots, (durward_counters_now_1() * 1000000)::bigint FROM durward_counters_1 WHERE key = ANY($1)`
	groupSQL = `SELECT key, last, slots, (durward_counters_now_1() * 1000000)::bigint FROM durward_counters_1 WHERE key >= $1 AND key <= $2`
	beatSQL  = `WITH mine AS (INSERT INTO durward_nodes_3 (node, seen, epoch) VALUES ($1, durward_counters_now_1(), $3)
			ON CONFLICT (node) DO UPDATE SET seen = excluded.seen, epoch = excluded.epoch RETURNING node),
		gone AS (DELETE FROM durward_nodes_3 WHERE node <> $1 AND seen < durward_counters_now_1() - 120),
		begun AS (INSERT INTO durward_counters_1 (key, last, total, slots) SELECT '', (durward_counters_now_1() * 1000000)::bigint, $4::bigint, '{}' WHERE durward_counters_epoch_1() IS NULL
			ON CONFLICT (key) DO UPDATE SET last = durward_counters_1.last RETURNING total, last),
		known AS (SELECT total, last FROM begun UNION ALL SELECT total, last FROM durward_counters_1 WHERE key = '' LIMIT 1),
		present AS MATERIALIZED (SELECT coalesce((SELECT total FROM known), durward_counters_epoch_1()) AS epoch,
			coalesce((SELECT last FROM known), (durward_counters_now_1() * 1000000)::bigint) AS last), -- one that began meanwhile
		living AS (SELECT epoch FROM durward_nodes_3 WHERE node <> $1 AND seen >= durward_counters_now_1() - $2::float8::numeric
			UNION ALL SELECT $3)
		SELECT p.epoch, (durward_counters_now_1() * 1000000)::bigint - p.last, count(*), count(*) FILTER (WHERE l.epoch IN (p.epoch, -1))
		FROM present p CROSS JOIN living l GROUP BY p.epoch, p.last`
	// sweepSQL examines a range of counters, deletes those that were not charged for two minutes, and returns the
	// last key of the range.
	sweepSQL = `WITH stretch AS (SELECT key, last FROM durward_counters_1 WHERE key > $1 ORDER BY key LIMIT 5000),
		idle AS (SELECT t.key FROM durward_counters_1 t JOIN stretch s ON s.key = t.key WHERE abs(t.last - durward_counters_now_1()) > 120 FOR UPDATE OF t SKIP LOCKED),
		gone AS (DELETE FROM durward_counters_1 WHERE key IN (SELECT key FROM idle))
		SELECT (SELECT key FROM stretch ORDER BY key DESC LIMIT 1), count(*) FROM stretch`
)
