// Package record writes the gateway's records to the audit log: calls, events, refusals, and the writes of a store. It
// decides what a record contains, and whether something may happen without one.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// These are the purposes for which the audit log's keys are derived from the store's data keys.
const (
	SigningPurpose = "audit checkpoints"
	MACPurpose     = "audit records"
)

// Settings holds the rules of a configuration for records.
type Settings struct {
	// BestEffort lists the kinds of traffic that go on without a record.
	BestEffort []string
	// SyncAlways makes every record wait for the disk.
	SyncAlways bool
	// Arguments keeps the arguments of calls, without the values of members that hold secrets or that Redact names.
	Arguments bool
	Redact    []string
}

// Place holds the directory of the journals, the store to which records are shipped, and the clock of records.
type Place struct {
	Dir   string
	Store storage.Store
	Log   *slog.Logger
	Now   func() time.Time
}

// Recorder is a configuration's view of the audit log. A nil Recorder, which only tests have, records nothing.
type Recorder struct {
	settings Settings
	redact   redaction
	place    Place
	signer   format.Signer
	macs     storage.AuditMACs
	trail    *Trail
}

// New returns a recorder without keys, see SetKeys.
func New(settings Settings, place Place, trail *Trail) *Recorder {
	return &Recorder{settings: settings, redact: newRedaction(settings.Redact), place: place, trail: trail}
}

// At returns the recorder with another clock, for records of a time that has passed. Both write to the same trail.
func (r *Recorder) At(now func() time.Time) *Recorder {
	then := *r
	then.place.Now = now
	return &then
}

// SetKeys sets the key that signs checkpoints and the key of the records' MACs. It must be called before the first
// record.
func (r *Recorder) SetKeys(signer format.Signer, macs storage.AuditMACs) {
	r.signer, r.macs = signer, macs
}

// Start opens the trail and gives it the settings of this configuration.
func (r *Recorder) Start(sinks []audit.Sink) error {
	t, err := r.Open()
	if err != nil {
		return err
	}
	t.SyncAlways(r.settings.SyncAlways)
	t.SetSinks(sinks)
	return nil
}

// Open returns the trail, and opens it before the first record. The error wraps storage.ErrUnavailable.
func (r *Recorder) Open() (*audit.Trail, error) {
	t, err := r.trail.open(func() (*audit.Trail, error) {
		return audit.NewTrail(audit.Options{Dir: r.place.Dir, Signer: r.signer, MACs: r.macs, Log: r.place.Log}, r.place.Store)
	})
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", errors.Join(storage.ErrUnavailable, err))
	}
	return t, nil
}

// Directory returns the directory of the journal.
func (r *Recorder) Directory() string { return r.place.Dir }

// Opened returns the trail, nil when nothing has opened it yet.
func (r *Recorder) Opened() *audit.Trail { return r.trail.opened.Load() }

// BestEffort returns the kinds of traffic that go on without a record.
func (r *Recorder) BestEffort() []string {
	if r == nil {
		return nil
	}
	return r.settings.BestEffort
}

// Required reports whether calls of a kind of traffic are refused when they cannot be recorded.
func (r *Recorder) Required(traffic string) bool {
	return !slices.Contains(r.settings.BestEffort, traffic)
}

// AddArguments puts the arguments of a call into its entry, if the settings keep them.
func (r *Recorder) AddArguments(e *storage.AuditEntry, arguments []byte) {
	if len(arguments) == 0 || !r.settings.Arguments {
		return
	}
	var left bool
	if e.Arguments, left = r.redact.arguments(arguments); left {
		Add(e, "arguments_bytes", len(arguments))
	}
}

// Event records an event that writes nothing to the store. ID, time and kind are filled in where they are missing. An
// error means that it is not recorded.
func (r *Recorder) Event(_ context.Context, organization string, e storage.AuditEntry) error {
	if r == nil {
		return nil
	}
	t, err := r.Open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return err
	}
	r.identify(&e)
	if err := t.Append(organization, &e); err != nil {
		return fmt.Errorf("recording %s: %w", e.Event, errors.Join(storage.ErrUnavailable, err))
	}
	return nil
}

func (r *Recorder) identify(e *storage.AuditEntry) {
	if e.At.IsZero() {
		e.At = r.place.Now().UTC()
	}
	if e.ID == "" {
		e.ID = format.NewID(e.At)
	}
	e.Kind = cmp.Or(e.Kind, storage.AuditAdmin)
}

// With returns a context and an entry. The next write to the store with that context records the entry in its own
// transaction; until then the entry can still be completed. The error is ErrUnavailable when nothing can be recorded:
// the write must not happen.
func (r *Recorder) With(ctx context.Context, organization string, e storage.AuditEntry) (context.Context, *storage.AuditEntry, error) {
	if r == nil {
		return ctx, &e, nil
	}
	t, err := r.Open()
	if err != nil {
		return nil, nil, err
	}
	r.identify(&e)
	audited := t.Audited(organization, e)
	return storage.WithAudit(ctx, audited), &audited.Entries[0], nil
}

// Unchanged records a write that changed nothing, within a few milliseconds.
func (r *Recorder) Unchanged(organization string, e storage.AuditEntry) {
	if r == nil {
		return
	}
	if t, err := r.Open(); err == nil { // an error was told when it was opened
		t.Later(organization, &e)
	}
}
