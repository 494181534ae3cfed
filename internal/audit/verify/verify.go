// Package verify compares journals, stores and checkpoints of audit logs with each other, and finds what was tampered with.
package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// Source is the part of a store that Log reads.
type Source interface {
	AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error)
	AuditChunks(ctx context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error)
	AuditRecords(ctx context.Context, f storage.AuditFilter) ([]storage.AuditRecord, error)
	AuditCheckpoints(ctx context.Context, node string) ([]storage.AuditCheckpoint, error)
}

// Finding describes one sign of tampering: an edit, a gap, a wrong order, or missing records at an end.
type Finding struct {
	Node, Segment string
	// Organization and Sequence name the record, or the first affected one. Sequence is 0 when the finding is not about a
	// record.
	Organization string
	Sequence     int64
	// Line is the line of the segment's file, counted from 1. It is 0 when the finding is not about a line.
	Line    int
	Problem string
}

func (f Finding) String() string {
	text := "node " + f.Node
	if f.Segment != "" {
		text += ", segment " + f.Segment
	}
	if f.Line > 0 {
		text += fmt.Sprintf(", line %d", f.Line)
	}
	if f.Sequence > 0 {
		organization := f.Organization
		if organization == "" {
			organization = "the gateway itself"
		}
		text += fmt.Sprintf(", organization %s, record %d", organization, f.Sequence)
	}
	return text + ": " + f.Problem
}

// Anchor is a node's last checkpoint. An auditor who keeps it elsewhere can later check that no record up to it was
// removed, even by an attacker who can write to the disk and to the store.
type Anchor struct {
	Node   string
	Number int64
	Time   time.Time
	Hash   string
}

// Keys holds the keys with which Log checks.
type Keys struct {
	Signatures format.Verifier
	// MACs checks the MACs of records, for which it needs the master key. It is nil for auditors who must not hold that
	// key: then Log only finds missing MACs.
	MACs storage.AuditMACs
}

// Report lists the findings of Log, and counts what it has checked.
type Report struct {
	Findings []Finding
	// Notes has facts that an auditor should know and that are no sign of tampering.
	Notes                                  []string
	Records, Chunks, Segments, Checkpoints int
	Anchors                                []Anchor
	Standing                               Standing
}

// maxFindings is the most findings in a report: one edit can break many records.
const maxFindings = 1000

// ErrNothing reports that there is no audit log to verify.
var ErrNothing = errors.New("there is no audit log here")

// Journals names the place of the journals for Log.
type Journals struct {
	// Dir is the directory with a directory for each node. "" or a missing directory: there are no journals.
	Dir string
	// All reports whether every node that writes to the store has its journal in Dir. Then a missing journal is gone.
	// Else it may be on another machine.
	All bool
}

// Log checks journals and store against each other and against the signed checkpoints. It changes nothing, and may run
// beside a gateway. It returns an error when something could not be read. Signs of tampering are in the report.
func Log(ctx context.Context, journals Journals, store Source, keys Keys) (Report, error) {
	v := &verification{keys: keys, all: journals.All, here: make(map[string]bool), nodes: make(map[string]*nodeEvidence)}
	dir := journals.Dir
	// The order allows a gateway to run at the same time. A record is in the journal until it is in the store, and in the
	// store before the checkpoints that cover it.
	if err := v.readJournals(dir); err != nil {
		return v.report, err
	}
	if err := v.readCheckpoints(ctx, store); err != nil {
		return v.report, err
	}
	v.checkCheckpoints()
	if err := v.readStore(ctx, store); err != nil {
		return v.report, err
	}
	if err := v.readMeanwhile(ctx, dir, store); err != nil {
		return v.report, err
	}
	if len(v.nodes) == 0 {
		return v.report, ErrNothing
	}
	v.checkBare()
	for _, name := range slices.Sorted(maps.Keys(v.nodes)) {
		n := v.nodes[name]
		v.checkNode(n)
		for _, name := range slices.Sorted(maps.Keys(n.files)) {
			number, _ := segments.Number(name)
			if err := v.checkTail(n, filepath.Join(dir, n.name), number); err != nil {
				return v.report, fmt.Errorf("reading segment %s again: %w", name, err)
			}
		}
	}
	return v.report, nil
}

type verification struct {
	keys   Keys
	all    bool            // see Journals.All
	here   map[string]bool // nodes with a directory for their journal, which may be empty
	nodes  map[string]*nodeEvidence
	report Report
}

func (v *verification) find(f Finding) {
	if len(v.report.Findings) < maxFindings && !slices.Contains(v.report.Findings, f) {
		v.report.Findings = append(v.report.Findings, f)
	}
}
