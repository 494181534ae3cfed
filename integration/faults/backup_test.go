package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestBackup checks backups of a gateway on the embedded store that is used meanwhile (Z-B01). Most are killed (SIGKILL):
// they leave no archive or a whole one, and the gateway does not notice. In every tenth cycle the gateway is killed too. What
// was acknowledged before a backup began is there after its restore, on another machine as far as the gateway can tell:
// objects of the API, which are in the store, and calls, which may be in the journal.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := startSite(t, plan{nodes: 1})
	w := newBackupWriters(s)
	archives := t.TempDir()
	whole, cycles := 0, number(t, "FAULT_BACKUPS", 10)
	for cycle := range cycles {
		w.begin()
		to := filepath.Join(archives, fmt.Sprint(cycle, ".tar.gz"))
		before := w.acknowledged()
		backup := s.nodes[0].command("backup", "--config", "Caddyfile", "--to", to)
		if cycle%2 == 0 {
			after := time.NewTimer(time.Duration(rand.Int64N(int64(400 * time.Millisecond))))
			select {
			case <-backup.Exited:
			case <-after.C:
				_ = backup.Command.Process.Signal(syscall.SIGKILL)
			}
		}
		<-backup.Exited
		if cycle%10 == 9 {
			s.nodes[0].Kill()
			s.nodes[0].start()
			s.nodes[0].ready()
		}
		w.end()
		if _, err := os.Stat(to); err != nil {
			if backup.Err == nil {
				t.Fatalf("cycle %d: the backup was written, and is not there:\n%s", cycle, &backup.Output)
			}
			continue
		}
		whole++
		if backup.Err != nil && cycle%2 != 0 {
			t.Fatalf("cycle %d: %v:\n%s", cycle, backup.Err, &backup.Output)
		}
		w.restored([]string{to}, plan{}, before)
		if t.Failed() {
			t.Fatalf("cycle %d", cycle)
		}
	}
	if whole < cycles/2 {
		t.Errorf("%d of %d backups are whole", whole, cycles)
	}
	t.Logf("%d backups, %d whole, %d objects and %d calls acknowledged, none lost", cycles, whole, w.objects.Load(), w.calls.Load())
}

// TestBackupPostgres follows the runbook for two nodes on PostgreSQL that are used meanwhile: `durward backup` on each, then
// pg_dump; pg_restore on another server, `durward restore` on two other machines. In every second cycle a node is killed while
// the database is dumped. What was acknowledged before the first backup began is there, and the audit log is whole.
func TestBackupPostgres(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	s := startSite(t, plan{nodes: 2, database: database.URL()})
	w := newBackupWriters(s)
	folder, cycles := t.TempDir(), max(2, number(t, "FAULT_BACKUPS", 10)/10)
	for cycle := range cycles {
		w.begin()
		before := w.acknowledged()
		var archives []string
		for i, n := range s.nodes {
			to := filepath.Join(folder, fmt.Sprint(cycle, "-", i, ".tar.gz"))
			backup := n.command("backup", "--config", "Caddyfile", "--to", to)
			if <-backup.Exited; backup.Err != nil {
				t.Fatalf("cycle %d: %v:\n%s", cycle, backup.Err, &backup.Output)
			}
			archives = append(archives, to)
		}
		dump := filepath.Join(folder, fmt.Sprint(cycle, ".dump"))
		var dumping sync.WaitGroup
		dumping.Go(func() { database.Dump(t, dump) })
		if victim := s.nodes[1]; cycle%2 == 1 {
			victim.Kill()
			victim.start()
			victim.ready()
		}
		dumping.Wait()
		w.end()
		other := pgtest.NewServer(t)
		other.Restore(t, dump)
		w.restored(archives, plan{database: other.URL()}, before, "--database", "{env.DURWARD_DATABASE_URL}")
		if t.Failed() {
			t.Fatalf("cycle %d", cycle)
		}
	}
	t.Logf("%d backups, %d objects and %d calls acknowledged, none lost", cycles, w.objects.Load(), w.calls.Load())
}

// TestDatabaseAlone restores a dump of PostgreSQL without archives of the nodes: the audit log is whole, but for the last seconds
// that only the nodes' files had.
func TestDatabaseAlone(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	s := startSite(t, plan{nodes: 2, database: database.URL()})
	w := newBackupWriters(s)
	w.begin()
	n, client, token := s.nodes[0], newClient(t), s.token(admin)
	var calls struct{ Pagination struct{ Total int64 } }
	eventually(t, "calls to be in the database", func() bool {
		n.read(client, token, "/api/audit?limit=1&kind=call&tool=echo", &calls)
		return calls.Pagination.Total > 0
	})
	dump := filepath.Join(t.TempDir(), "dump")
	database.Dump(t, dump)
	w.end()
	other := pgtest.NewServer(t)
	other.Restore(t, dump)
	s.add(plan{database: other.URL()}, "alone")
	alone := s.nodes[2]
	s.nodes = s.nodes[:2]
	alone.start()
	alone.ready()
	alone.Stop(t)
	verification := alone.command("audit", "verify", "--master-key", "{env.DURWARD_TEST_KEY}", "--database", "{env.DURWARD_DATABASE_URL}")
	if <-verification.Exited; verification.Err != nil {
		t.Errorf("audit verify: %v:\n%s", verification.Err, &verification.Output)
	}
}

// TestBackupHeldUp suspends a backup when it has copied the store, until the journal has a checkpoint of records that the store
// got since. The restored audit log is whole: the journal ends where the store does.
func TestBackupHeldUp(t *testing.T) {
	t.Parallel()
	s := startSite(t, plan{nodes: 1})
	w := newBackupWriters(s)
	to := filepath.Join(t.TempDir(), "held.tar.gz")
	for held := false; !held; {
		w.begin()
		before := w.acknowledged()
		backup := s.nodes[0].command("backup", "--config", "Caddyfile", "--to", to)
		eventually(t, "the store to be copied", func() bool {
			info, err := os.Stat(to + ".part.db")
			return err == nil && info.Size() > 0 || exited(backup)
		})
		_ = backup.Command.Process.Signal(syscall.SIGSTOP)
		if held = !exited(backup); held {
			atLeast := s.nodes[0].checkpoints()
			eventually(t, "two more checkpoints", func() bool { return s.nodes[0].checkpoints() >= atLeast+2 })
		}
		_ = backup.Command.Process.Signal(syscall.SIGCONT)
		if <-backup.Exited; backup.Err != nil {
			t.Fatalf("%v:\n%s", backup.Err, &backup.Output)
		}
		w.end()
		w.restored([]string{to}, plan{}, before)
		if err := os.Remove(to); err != nil {
			t.Fatal(err)
		}
	}
}

func exited(p *rig.Process) bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}

// checkpoints counts the checkpoints in the node's journal.
func (n *node) checkpoints() (count int) {
	files, err := filepath.Glob(filepath.Join(n.directory, "audit", "*", "*.ndjson"))
	if err != nil {
		n.site.t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			n.site.t.Fatal(err)
		}
		count += bytes.Count(text, []byte(`{"checkpoint":`))
	}
	return count
}

// command runs the binary in the directory of a node, with its environment.
func (n *node) command(arguments ...string) *rig.Process {
	return rig.Start(n.site.t, nil, n.directory, n.env, rig.Durward(n.site.t), arguments...)
}

// backupWriters write while backups are made: directory entries, numbered from 1 on, and calls.
type backupWriters struct {
	site           *site
	server         server
	objects, calls atomic.Int64
	asked          atomic.Int64 // directory entries that were asked for
	stop           chan struct{}
	all            sync.WaitGroup
}

func newBackupWriters(s *site) *backupWriters {
	return &backupWriters{site: s, server: s.nodes[0].newServer("Backed up", nil, everything)}
}

// begin lets both writers write. After a write that was not acknowledged they wait a moment: the gateway is being started.
func (w *backupWriters) begin() {
	w.stop = make(chan struct{})
	w.write(&w.objects, func(client *http.Client, token string) bool {
		entry := members{"name": fmt.Sprintf("backup-%d", w.asked.Add(1)), "protocol": "mcp", "provider": "none", "requires_auth": false, "url": w.site.upstream.server.URL + "/mcp"}
		return wrote(w.site.nodes[0].send(client, http.MethodPost, "/api/server-directory", token, entry))
	})
	w.write(&w.calls, func(client *http.Client, token string) bool {
		return w.site.nodes[len(w.site.nodes)-1].call(client, token, w.server, "echo").passed()
	})
	atLeast := w.objects.Load() + 3
	eventually(w.site.t, "some writes to be acknowledged", func() bool { return w.objects.Load() >= atLeast })
}

func (w *backupWriters) write(acknowledged *atomic.Int64, one func(*http.Client, string) bool) {
	client, token := newClient(w.site.t), w.site.token(admin)
	w.all.Go(func() {
		for {
			select {
			case <-w.stop:
				return
			default:
			}
			if one(client, token) {
				acknowledged.Add(1)
			} else {
				<-time.After(afterFailure)
			}
		}
	})
}

func (w *backupWriters) end() {
	close(w.stop)
	w.all.Wait()
}

// counts holds numbers of what was acknowledged.
type counts struct{ objects, calls int64 }

func (w *backupWriters) acknowledged() counts { return counts{w.objects.Load(), w.calls.Load()} }

// restored restores archives, each into the directory of a new node, starts the nodes, and compares them with what had been
// acknowledged before the backup began. verify holds the words of `audit verify` that name the store.
func (w *backupWriters) restored(archives []string, p plan, before counts, verify ...string) {
	t := w.site.t
	t.Helper()
	whole := w.site.nodes
	for i := range archives {
		w.site.add(p, fmt.Sprint("restored", i+1))
	}
	nodes := w.site.nodes[len(whole):]
	w.site.nodes = whole
	for i, n := range nodes {
		restore := n.command("restore", "--config", "Caddyfile", "--from", archives[i])
		<-restore.Exited
		if restore.Err != nil {
			t.Errorf("%s: %v:\n%s", filepath.Base(archives[i]), restore.Err, &restore.Output)
			return
		}
	}
	for _, n := range nodes {
		n.start()
	}
	for _, n := range nodes {
		n.ready()
	}
	n, client, token := nodes[0], newClient(t), w.site.token(admin)
	var entries, calls struct{ Pagination struct{ Total int64 } }
	n.read(client, token, "/api/server-directory?limit=1&search=backup-", &entries)
	if entries.Pagination.Total < before.objects {
		t.Errorf("%s: %d directory entries are there, %d were acknowledged before it began", filepath.Base(archives[0]), entries.Pagination.Total, before.objects)
	}
	eventually(t, "the journals' records to be in the restored store", func() bool {
		n.read(client, token, "/api/audit?limit=1&kind=call&tool=echo", &calls)
		return calls.Pagination.Total >= before.calls
	})
	for _, n := range nodes {
		n.Stop(t)
	}
	for i, n := range nodes {
		words := append([]string{"audit", "verify", "--data", n.directory, "--master-key", "{env.DURWARD_TEST_KEY}"}, verify...)
		verification := n.command(words...)
		<-verification.Exited
		if verification.Err != nil {
			t.Errorf("%s: audit verify: %v:\n%s", filepath.Base(archives[i]), verification.Err, &verification.Output)
		}
		if err := os.RemoveAll(n.directory); err != nil {
			t.Error(err)
		}
	}
}
