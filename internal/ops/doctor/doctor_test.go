package doctor

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage/postgres"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// good returns a database without anything to say about.
func good(change func(*postgres.Facts)) postgres.Facts {
	f := postgres.Facts{ServerVersion: 170002, Encoding: "UTF8", User: "durward", SynchronousCommit: "on", SynchronousNames: "ANY 1 (a, b)",
		Fsync: "on", FullPageWrites: "on", MaxConnections: 100, RoleConnections: -1, DatabaseConnections: -1,
		Database: "durward", Owner: "durward", Schema: "public", MayCreate: true, SchemaVersion: 3, OldestWriter: 3, KnownVersion: 3}
	if change != nil {
		change(&f)
	}
	return f
}

func TestFindings(t *testing.T) {
	t.Parallel()
	lost := errors.New("the file is missing")
	for _, c := range []struct {
		name string
		got  []Finding
		want []string // severity, and a piece of the finding
	}{
		{"a good database", Database(good(nil), 20), nil},
		{"too old", Database(good(func(f *postgres.Facts) { f.ServerVersion = 130009 }), 20), []string{"error PostgreSQL 13"}},
		{"encoding", Database(good(func(f *postgres.Facts) { f.Encoding = "SQL_ASCII" }), 20), []string{"error SQL_ASCII"}},
		{"standby", Database(good(func(f *postgres.Facts) { f.Standby = true }), 20), []string{"error standby"}},
		{"pooler", Database(good(func(f *postgres.Facts) { f.Pooled = true }), 20), []string{"error pooler"}},
		{"superuser", Database(good(func(f *postgres.Facts) { f.Bypasses = true }), 20), []string{"warning BYPASSRLS"}},
		{"open", Database(good(func(f *postgres.Facts) { f.OpenToAll = true }), 20), []string{"warning every role"}},
		{"fsync", Database(good(func(f *postgres.Facts) { f.Fsync = "off" }), 20), []string{"error fsync"}},
		{"full_page_writes", Database(good(func(f *postgres.Facts) { f.FullPageWrites = "off" }), 20), []string{"error full_page_writes"}},
		{"commits that do not wait", Database(good(func(f *postgres.Facts) { f.SynchronousCommit = "off" }), 20), []string{"warning synchronous_commit is off"}},
		{"commits that wait here only", Database(good(func(f *postgres.Facts) { f.SynchronousCommit = "local" }), 20), []string{"warning synchronous_commit is local"}},
		{"no standby", Database(good(func(f *postgres.Facts) { f.SynchronousNames = "" }), 20), []string{"note synchronous_standby_names"}},
		{"few connections", Database(good(func(f *postgres.Facts) { f.MaxConnections = 39 }), 20), []string{"warning max_connections is 39"}},
		{"few for the user", Database(good(func(f *postgres.Facts) { f.RoleConnections = 23 }), 24), []string{"warning user durward may have 23"}},
		{"few for the database", Database(good(func(f *postgres.Facts) { f.DatabaseConnections = 23 }), 24), []string{"warning the database takes 23"}},
		{"as many as it takes", Database(good(func(f *postgres.Facts) { f.RoleConnections, f.DatabaseConnections = 24, 24 }), 24), nil},
		{"somebody else's", Database(good(func(f *postgres.Facts) {
			f.MayCreate, f.Owner, f.SchemaVersion, f.OldestWriter = false, "postgres", 0, 0
		}), 20), []string{"error belongs to postgres", "note empty"}},
		{"somebody else's, made", Database(good(func(f *postgres.Facts) { f.MayCreate, f.Owner = false, "postgres" }), 20), []string{"note belongs to postgres"}},
		{"another program's", Database(good(func(f *postgres.Facts) { f.ForeignTables, f.SchemaVersion, f.OldestWriter = 4, 0, 0 }), 20), []string{"error 4 tables of another program"}},
		{"counters", Counters(good(nil), 4), nil},
		{"counters on a standby", Counters(good(func(f *postgres.Facts) { f.Standby = true }), 4), []string{"error standby"}},
		{"few for counters", Counters(good(func(f *postgres.Facts) { f.RoleConnections, f.DatabaseConnections = 9, 3 }), 4), []string{"warning 3 connections"}},
		{"counters on an old one", Counters(good(func(f *postgres.Facts) { f.ServerVersion = 130009 }), 4), []string{"error PostgreSQL 13"}},
		{"half a copy", Database(good(func(f *postgres.Facts) { f.Arriving = true }), 20), []string{"error not been copied"}},
		{"empty", Database(good(func(f *postgres.Facts) { f.SchemaVersion, f.OldestWriter = 0, 0 }), 20), []string{"note empty"}},
		{"older", Database(good(func(f *postgres.Facts) { f.SchemaVersion, f.OldestWriter = 2, 2 }), 20), []string{"note version 2"}},
		{"newer", Database(good(func(f *postgres.Facts) { f.SchemaVersion = 4 }), 20), []string{"note version 4"}},
		{"too new", Database(good(func(f *postgres.Facts) { f.SchemaVersion, f.OldestWriter = 4, 4 }), 20), []string{"error newer durward"}},

		{"clocks agree", Clock("x", now.Add(-500*time.Millisecond), now, time.Second, 0), nil},
		{"a slow answer proves nothing", Clock("x", now.Add(-9*time.Second), now, 9*time.Second, time.Second), nil},
		{"behind", Clock("the database", now.Add(3*time.Second), now, 0, 0), []string{"warning the database are 3s apart"}},
		{"ahead", Clock("the database", now.Add(-time.Minute), now, 0, 0), []string{"error 1m0s apart"}},

		{"private", Private(File{Path: "a", Mode: 0o600, What: "x"}, File{Path: "b", Mode: fs.ModeDir | 0o700, What: "y"}), nil},
		{"open", Private(File{Path: "a", Mode: 0o640, What: "the key"}, File{Path: "b", Mode: fs.ModeDir | 0o755, What: "y"}), []string{"warning a (the key) has mode 0640", "warning b"}},

		{"mounted", Private(File{Path: "a", Mode: 0o440, Given: true}, File{Path: "b", Mode: 0o440, Fixed: true}), nil},
		{"mounted, and open", Private(File{Path: "a", Mode: 0o444, What: "the key", Given: true}, File{Path: "b", Mode: 0o444, What: "the key", Given: true, Fixed: true}),
			[]string{"warning a (the key) has mode 0444", "note b (the key) has mode 0444"}},

		{"no master key", MasterKeys(nil, []string{"one"}), []string{"error no master key"}},
		{"one master key", MasterKeys([]MasterKey{{"{env.A}", "one", nil}}, []string{"one", "one"}), nil},
		{"a new store", MasterKeys([]MasterKey{{"{env.A}", "one", nil}, {"{env.B}", "two", nil}}, nil), nil},
		{"lost", MasterKeys([]MasterKey{{"{env.A}", "", lost}}, []string{"one"}), []string{"error {env.A}", "error not configured"}},
		{"lost, as its error says", MasterKeys([]MasterKey{{"{env.A}", "", errors.New("{env.A} is not set")}}, nil), []string{"error {env.A} is not set"}},
		{"another", MasterKeys([]MasterKey{{"{env.A}", "two", nil}}, []string{"one"}), []string{"error not configured"}},
		{"rotating", MasterKeys([]MasterKey{{"{env.B}", "two", nil}, {"{env.A}", "one", nil}}, []string{"one"}), []string{"note still wrapped by master key one"}},
		{"rotated", MasterKeys([]MasterKey{{"{env.B}", "two", nil}, {"{env.A}", "one", nil}}, []string{"two"}), []string{"note {env.A} wraps nothing"}},
		{"twice", MasterKeys([]MasterKey{{"{env.A}", "one", nil}, {"{env.B}", "one", nil}}, []string{"one"}), []string{"note the same key"}},

		{"room", Disk("/d", 50<<30, 100<<30), nil},
		{"a large disk", Disk("/d", 5<<30, 1000<<30), nil},
		{"a small disk", Disk("/d", 512<<20, 1<<30), nil},
		{"getting full", Disk("/d", 900<<20, 20<<30), []string{"warning 900 MiB (4 %)"}},
		{"a large disk, nearly full", Disk("/d", 900<<20, 1000<<30), []string{"error 900 MiB"}},
		{"full", Disk("/d", 1<<20, 1<<30), []string{"error 1 MiB"}},
		{"unknown", Disk("/d", 0, 0), nil},

		{"no backlog", Backlog("/a", 3, 10<<20), nil},
		{"a backlog", Backlog("/a", 9, 100<<20), []string{"warning 9 segments"}},
		{"a large backlog", Backlog("/a", 90, 2<<30), []string{"error 90 segments"}},

		{"a good issuer", Identity(Issuer{Name: "https://id", Says: "https://id", Keys: 2, Date: now, At: now}), nil},
		{"not allowed", Identity(Issuer{Name: "https://id", Err: lost, Advice: "allow its range"}), []string{"error a gateway that starts refuses"}},
		{"gone", Identity(Issuer{Name: "https://id", Err: lost}), []string{"error missing"}},
		{"another name", Identity(Issuer{Name: "https://id", Says: "https://id/", Keys: 2}), []string{`error calls itself "https://id/"`}},
		{"no keys", Identity(Issuer{Name: "https://id", Says: "https://id"}), []string{"error no keys"}},
		{"another time", Identity(Issuer{Name: "https://id", Says: "https://id", Keys: 1, Date: now.Add(time.Hour), At: now}), []string{"error 59m59s apart"}},
	} {
		if len(c.got) != len(c.want) {
			t.Errorf("%s: %+v", c.name, c.got)
			continue
		}
		for i, want := range c.want {
			severity, piece, _ := strings.Cut(want, " ")
			if f := c.got[i]; string(f.Severity) != severity || !strings.Contains(f.Found, piece) || f.Mend == "" {
				t.Errorf("%s: %+v; want %s", c.name, f, want)
			}
		}
	}
}

// TestMendsOfAFirstInstall checks that a restore is not advised where nothing was ever stored.
func TestMendsOfAFirstInstall(t *testing.T) {
	t.Parallel()
	missing := []MasterKey{{"{file./key}", "", errors.New("the file is missing")}}
	if mend := MasterKeys(missing, nil)[0].Mend; !strings.Contains(mend, "openssl rand") || strings.Contains(mend, "restore") {
		t.Errorf("a first install: %s", mend)
	}
	if mend := MasterKeys(missing, []string{"one"})[0].Mend; !strings.Contains(mend, "restore") || strings.Contains(mend, "openssl") {
		t.Errorf("a store with data keys: %s", mend)
	}
	if mend := Identity(Issuer{Name: "https://id", Err: errors.New("refused"), Advice: "allow its range"})[0].Mend; mend != "Allow its range." {
		t.Errorf("an issuer that egress refuses: %s", mend)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	var r Report
	r.Add("configuration")
	r.Add("disk", Finding{Severity: Note, Found: "half", Mend: "Wait."})
	if r.Failed() {
		t.Error("a note is no failure")
	}
	r.Add("store", Finding{Severity: Error, Found: "gone <&>", Mend: "Bring it back."})
	var text, object strings.Builder
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&object)); err != nil || !r.Failed() {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`ok       configuration
error    store: gone <&>
         Bring it back.
note     disk: half
         Wait.
1 passed, 1 error, 0 warnings, 1 note
`, text.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(`{
  "failed": true,
  "passed": [
    "configuration"
  ],
  "findings": [
    {
      "severity": "note",
      "check": "disk",
      "found": "half",
      "mend": "Wait."
    },
    {
      "severity": "error",
      "check": "store",
      "found": "gone <&>",
      "mend": "Bring it back."
    }
  ]
}
`, object.String()); diff != "" {
		t.Error(diff)
	}
}
