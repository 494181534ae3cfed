package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// steppedStore is a store before whose answers to a verification something happens.
type steppedStore struct {
	*memory
	calls []string // so far
	step  func(call string)
}

func (s *steppedStore) called(call string) {
	if slices.Contains(s.calls, call) {
		call += " again"
	}
	s.calls = append(s.calls, call)
	s.step(call)
}

func (s *steppedStore) AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error) {
	s.called("chains")
	return s.memory.AuditChains(ctx, node)
}

func (s *steppedStore) AuditChunks(ctx context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	s.called("chunks")
	return s.memory.AuditChunks(ctx, f)
}

func (s *steppedStore) AuditRecords(ctx context.Context, f storage.AuditFilter) ([]storage.AuditRecord, error) {
	s.called("records")
	return s.memory.AuditRecords(ctx, f)
}

func (s *steppedStore) AuditCheckpoints(ctx context.Context, node string) ([]storage.AuditCheckpoint, error) {
	s.called("checkpoints")
	return s.memory.AuditCheckpoints(ctx, node)
}

// TestVerifyBeside checks that whatever a gateway does between two steps of a verification, the verification finds nothing,
// and notes which segments it has not read.
func TestVerifyBeside(t *testing.T) {
	const elsewhere = " keeps its journal elsewhere: what it has not shipped yet is not verified"
	meanwhile := func(segment string) string {
		return ", segment " + segment + " was written meanwhile and is not verified"
	}
	uncovered := func(n int) string {
		return fmt.Sprintf(", whose journal is not here: the last records of the store itself, %d in all, are covered by no checkpoint", n)
	}
	for name, c := range map[string]struct {
		before    string // the answer of the store before which it happens
		happens   string // a letter for each step, see below
		notes     []string
		storeOnly []string // the notes when the store alone is verified
	}{
		"nothing":                                 {"checkpoints", "", nil, []string{uncovered(1), elsewhere}},
		"records are written":                     {"checkpoints", "ro", nil, []string{uncovered(2), elsewhere}},
		"records are shipped":                     {"checkpoints", "ros", nil, []string{uncovered(2), elsewhere}},
		"a checkpoint is shipped":                 {"checkpoints", "rocs", nil, []string{elsewhere}},
		"the segment ends":                        {"checkpoints", "rt", nil, []string{uncovered(1), elsewhere}},
		"the segment ends and is removed":         {"checkpoints", "rts", nil, nil},
		"another one begins":                      {"checkpoints", "rtsrs", []string{meanwhile("00000002")}, []string{elsewhere}},
		"another one ends":                        {"checkpoints", "rtsrts", nil, nil},
		"records are shipped later":               {"chains", "rs", nil, []string{uncovered(1), elsewhere}},
		"a checkpoint is shipped later":           {"chains", "rcs", nil, []string{uncovered(1), elsewhere}},
		"the segment ends and is removed later":   {"chains", "rts", nil, []string{uncovered(1), elsewhere}},
		"another one begins later":                {"chains", "rtsrs", []string{meanwhile("00000002")}, []string{uncovered(1), elsewhere, meanwhile("00000002")}},
		"another one ends later":                  {"chains", "rtsrts", []string{meanwhile("00000002")}, []string{uncovered(1), elsewhere, meanwhile("00000002")}},
		"two others begin later":                  {"chains", "rtsrtsrs", []string{meanwhile("00000002"), meanwhile("00000003")}, []string{uncovered(1), elsewhere, meanwhile("00000002"), meanwhile("00000003")}},
		"the store's own records follow":          {"records", "oo", nil, []string{uncovered(3), elsewhere}},
		"the store's own records follow later":    {"chains again", "oo", nil, []string{uncovered(1), elsewhere}},
		"the segment is removed at last":          {"checkpoints again", "ts", nil, []string{uncovered(1), elsewhere}},
		"records are shipped, and then no more":   {"chains again", "rs", nil, []string{uncovered(1), elsewhere}},
		"a segment ends and another one at last":  {"checkpoints again", "rtsrts", nil, []string{uncovered(1), elsewhere}},
		"the segment ends and is removed halfway": {"chunks", "rts", nil, []string{uncovered(1), elsewhere}},
	} {
		for _, storeOnly := range []bool{false, true} {
			root, store := t.TempDir(), new(memory)
			j := openJournal(t, testOptions(t, root))
			leaveAlone(j) // checkpoints are steps
			ship, trail := newShipper(j, store), &Trail{journal: j, store: store}
			steps := map[rune]func() error{
				'r': func() error { return j.Append(acme, intent("create_issue")) },
				'o': func() error {
					return store.RecordAudit(storage.WithAudit(t.Context(), trail.Audited(acme, *intent("policy.update"))))
				},
				'c': j.Checkpoint,
				't': func() error { return turn(j) },
				's': func() error { return ship.ship(t.Context()) },
			}
			do := func(what string) {
				for _, step := range what {
					if err := steps[step](); err != nil {
						t.Fatal(err)
					}
				}
			}
			do("rrocsros")
			happened := false
			stepped := &steppedStore{memory: store, step: func(call string) {
				if call == c.before {
					do(c.happens)
					happened = true
				}
			}}
			journals, want := verify.Journals{Dir: root, All: true}, c.notes
			if storeOnly {
				journals, want = verify.Journals{}, c.storeOnly
			}
			report, err := verify.Log(t.Context(), journals, stepped, sharedKeys())
			if err != nil || len(report.Findings) > 0 || !happened {
				t.Errorf("%s, store only: %v: %v, %v, happened: %v", name, storeOnly, report.Findings, err, happened)
			}
			var notes []string
			for _, note := range report.Notes {
				notes = append(notes, strings.TrimPrefix(note, "node "+j.node))
			}
			if diff := cmp.Diff(want, notes); diff != "" {
				t.Errorf("%s, store only: %v: notes: %s", name, storeOnly, diff)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
