package sqlite

import (
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/storagetest"
)

// M23: two processes that make policies active at once on one file, each with its own connections; what one has committed
// the other one's transaction sees.
func TestPolicyOverlapOfTwoProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "durward.db")
	var stores [2]*Store
	for i := range stores {
		s, err := Open(t.Context(), path, Options{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	c := seedConnection(t, stores[0])
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := stores[i%2].CreatePolicy(t.Context(), storage.Policy{ID: strconv.Itoa(i), OrganizationID: c.OrganizationID, Name: strconv.Itoa(i),
				ServerID: c.ServerID, Status: storage.PolicyActive})
			var overlap *storage.OverlapError
			if err == nil {
				won.Add(1)
			} else if !errors.As(err, &overlap) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d policies are active", won.Load())
	}
}

// M23: the schema itself keeps two policies from governing the same agent, whatever the code before it checks.
func TestSchemaRefusesOverlap(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := seedConnection(t, s)
	for i, status := range []storage.PolicyStatus{storage.PolicyActive, storage.PolicyDraft} {
		if _, err := s.CreatePolicy(t.Context(), storage.Policy{ID: strconv.Itoa(i), OrganizationID: c.OrganizationID, Name: strconv.Itoa(i),
			ServerID: c.ServerID, Status: status}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.writer.ExecContext(t.Context(), storagetest.Statement(t, "../records", "insertActiveSQL"), c.OrganizationID, c.ServerID, "", "1"); err == nil {
		t.Error("two policies govern all agents of one server")
	}
}
