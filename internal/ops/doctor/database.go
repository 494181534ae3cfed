package doctor

import (
	"fmt"

	"github.com/durward-gateway/durward/storage/postgres"
)

// oldestServer is the first version of PostgreSQL that works.
const oldestServer = 140000

// Database checks a PostgreSQL database, of which this node opens up to conns connections.
func Database(f postgres.Facts, conns int) []Finding {
	var r report
	r.server(f)
	r.access(f)
	r.durability(f)
	r.room(f, conns)
	r.creation(f)
	r.contents(f)
	return r
}

// report collects the findings about a database.
type report []Finding

func (r *report) add(s Severity, found, mend string) {
	*r = append(*r, Finding{Severity: s, Found: found, Mend: mend})
}

// server checks the server, and the way to it.
func (r *report) server(f postgres.Facts) {
	if f.ServerVersion < oldestServer {
		r.add(Error, fmt.Sprintf("the server is PostgreSQL %d, which is too old", f.ServerVersion/10000), "Use PostgreSQL 14 or later.")
	}
	if f.Encoding != "UTF8" {
		r.add(Error, "the database keeps text in "+f.Encoding+", which cannot hold every name", "Make the database with ENCODING 'UTF8' and copy the data into it.")
	}
	if f.Standby {
		r.add(Error, "the server is a standby: durward goes past it, and answers 503 when it finds no primary",
			"Name all servers in the address.")
	}
	if f.Pooled {
		r.add(Error, "a pooler in transaction or statement mode is between: credentials can be refreshed twice at a time, and other nodes' changes are not heard",
			"Set pool_mode = session for durward, or connect to the server itself.")
	}
}

// access checks who else may read the database, or hold its locks.
func (r *report) access(f postgres.Facts) {
	if f.Bypasses {
		r.add(Warning, "the user "+f.User+" is a superuser or has BYPASSRLS: row-level security, the second wall between organizations, does not hold it",
			"Connect as a user that owns durward's database and is nothing else: CREATE ROLE durward LOGIN; ALTER DATABASE ... OWNER TO durward.")
	}
	if f.OpenToAll {
		r.add(Warning, "every role of the server may connect to the database: it can hold the locks that writes wait for, and send notifications",
			"REVOKE CONNECT ON DATABASE ... FROM PUBLIC. Its owner may connect all the same.")
	}
}

// durability checks that a crash loses nothing that was stored.
func (r *report) durability(f postgres.Facts) {
	if f.Fsync == "off" || f.FullPageWrites == "off" {
		r.add(Error, "fsync or full_page_writes is off: a crash of the server's machine loses what was stored, or all of it", "Switch both on in postgresql.conf and restart the server.")
	}
	switch {
	case f.SynchronousCommit == "off":
		r.add(Warning, "synchronous_commit is off by default; durward's sessions switch it on for themselves", "ALTER DATABASE ... SET synchronous_commit = 'on'.")
	case f.SynchronousNames == "":
		r.add(Note, "synchronous_standby_names is empty: what was acknowledged is on one machine's disk, and lost with it or with a failover",
			"With a standby, set synchronous_standby_names. Without one, keep base backups and the WAL elsewhere.")
	case f.SynchronousCommit == "local":
		r.add(Warning, "synchronous_commit is local: commits do not wait for the standbys that synchronous_standby_names names", "Set synchronous_commit to on or remote_apply.")
	}
}

// room checks that there is room for the connections of this node.
func (r *report) room(f postgres.Facts, conns int) {
	if f.MaxConnections < 2*conns {
		r.add(Warning, fmt.Sprintf("max_connections is %d and this node alone opens up to %d: a second node, or an administrator, may find none left", f.MaxConnections, conns),
			"Raise max_connections, or lower max_conns in `store postgres`.")
	}
	if f.RoleConnections >= 0 && f.RoleConnections < conns {
		r.add(Warning, fmt.Sprintf("the user %s may have %d connections and this node alone opens up to %d: requests are refused when they are needed", f.User, f.RoleConnections, conns),
			fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT -1, or as many as all nodes open.", f.User))
	}
	if f.DatabaseConnections >= 0 && f.DatabaseConnections < conns {
		r.add(Warning, fmt.Sprintf("the database takes %d connections and this node alone opens up to %d: requests are refused when they are needed", f.DatabaseConnections, conns),
			fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT -1, or as many as all nodes open.", f.Database))
	}
}

// creation checks that the gateway may make its tables.
func (r *report) creation(f postgres.Facts) {
	if !f.MayCreate && f.ForeignTables == 0 {
		found := fmt.Sprintf("the user %s may make no tables in the schema %q: the database belongs to %s", f.User, f.Schema, f.Owner)
		if f.SchemaVersion < f.KnownVersion {
			r.add(Error, found+", and a gateway that has to make or change its schema does not start",
				fmt.Sprintf("ALTER DATABASE %s OWNER TO %s; or GRANT CREATE ON SCHEMA public TO %s.", f.Database, f.User, f.User))
		} else {
			r.add(Note, found+". The next version of the schema has to be made by somebody who may", "With `migrate off` on the nodes this may be meant.")
		}
	}
}

// contents checks that the tables are those of this durward.
func (r *report) contents(f postgres.Facts) {
	switch {
	case f.Arriving:
		r.add(Error, "another store has not been copied into it as a whole: no gateway starts on it", "Start `durward migrate-store` again; it goes on where it was.")
	case f.ForeignTables > 0:
		r.add(Error, fmt.Sprintf("it has %d tables of another program: no gateway starts on it", f.ForeignTables), "Make a database for durward alone: CREATE DATABASE ... OWNER ....")
	case f.SchemaVersion == 0:
		r.add(Note, "it is empty: no gateway has run on it", "The first start makes the schema.")
	case f.OldestWriter > f.KnownVersion:
		r.add(Error, fmt.Sprintf("a newer durward has changed the schema: writing takes version %d, this durward knows %d and would only read", f.OldestWriter, f.KnownVersion),
			"Use the durward of the other nodes.")
	case f.SchemaVersion > f.KnownVersion:
		r.add(Note, fmt.Sprintf("its schema has version %d, this durward knows %d; both can be used side by side", f.SchemaVersion, f.KnownVersion), "Upgrade the other nodes' durward here too.")
	case f.SchemaVersion < f.KnownVersion:
		r.add(Note, fmt.Sprintf("its schema has version %d, this durward brings it to %d when it starts", f.SchemaVersion, f.KnownVersion), "With `migrate off`, start one node with `migrate on` first.")
	}
}

// Counters checks a database that keeps only the counters of rate limits, and to which a node has up to conns
// connections.
func Counters(f postgres.Facts, conns int) []Finding {
	var r report
	if f.ServerVersion < oldestServer {
		r.add(Error, fmt.Sprintf("the server is PostgreSQL %d, which is too old", f.ServerVersion/10000), "Use PostgreSQL 14 or later.")
	}
	if f.Standby {
		r.add(Error, "the server is a standby: it only reads, and each node counts alone", "Name all servers in the address.")
	}
	if least := min(f.MaxConnections, atLeast(f.RoleConnections, f.MaxConnections), atLeast(f.DatabaseConnections, f.MaxConnections)); least < conns {
		r.add(Warning, fmt.Sprintf("%d connections are allowed and this node alone opens up to %d", least, conns), "Raise max_connections, or the limit of the role or the database.")
	}
	return r
}

// atLeast returns a bound of connections; a bound of -1 means none.
func atLeast(bound, without int) int {
	if bound < 0 {
		return without
	}
	return bound
}
