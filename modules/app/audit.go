package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// auditDirectory is the directory of the journals, inside the data directory.
const auditDirectory = "audit"

// trail is the audit log of a store's resources. It is opened for the first record, at the latest when the
// configuration starts: a configuration that is only validated must not touch the journal of the running one.
type trail struct {
	opened atomic.Pointer[audit.Trail]
	mu     sync.Mutex
	closed bool
}

func (t *trail) open(make func() (*audit.Trail, error)) (*audit.Trail, error) {
	if opened := t.opened.Load(); opened != nil {
		return opened, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if opened := t.opened.Load(); opened != nil {
		return opened, nil
	}
	if t.closed {
		return nil, audit.ErrUnavailable
	}
	opened, err := make()
	if err != nil {
		return nil, err
	}
	t.opened.Store(opened)
	return opened, nil
}

// close ends the trail; it must happen before its store is closed.
func (t *trail) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	opened := t.opened.Load()
	if opened == nil {
		return nil
	}
	err := opened.Close()
	auditCounters.forget(opened) // with what was lost at the end
	return err
}

// Audit is a configuration's view of the audit log. A nil Audit, which only tests have, records nothing.
type Audit struct {
	rules  AuditRules
	redact redaction
	dir    string
	signer audit.Signer
	macs   storage.AuditMACs
	store  storage.Store
	log    *slog.Logger
	trail  *trail
}

// newAudit makes the Audit without signer and MACs, which need the data keys.
func (a *App) newAudit() *Audit {
	rules := a.Audit.withDefaults()
	dir := cmp.Or(a.dataDirectory(), LocalDirectory())
	return &Audit{
		rules: rules, redact: newRedaction(rules.Redact), dir: filepath.Join(dir, auditDirectory),
		store: a.resources.store, log: a.slogger, trail: &a.resources.trail,
	}
}

// LocalDirectory returns the directory for local files of the gateway, when its store is not on a local disk itself.
func LocalDirectory() string { return filepath.Join(caddy.AppDataDir(), "durward") }

// AuditPurpose is the purpose for which the key that signs checkpoints is derived.
const AuditPurpose = "audit checkpoints"

// AuditRecordPurpose is the purpose for which the key of the records' MACs is derived.
const AuditRecordPurpose = "audit records"

// start opens the trail and gives it the settings of this configuration.
func (a *Audit) start(logger *zap.Logger) error {
	t, err := a.open()
	if err != nil {
		return err
	}
	t.SyncAlways(a.rules.Sync == SyncAlways)
	var sinks []audit.Sink
	for _, s := range a.rules.Sinks {
		if s.Kind == "file" {
			sinks = append(sinks, audit.NewFileSink(s.Path))
			continue
		}
		sinks = append(sinks, &logSink{logger.Named("audit")})
	}
	t.SetSinks(sinks)
	return nil
}

func (a *Audit) open() (*audit.Trail, error) {
	t, err := a.trail.open(func() (*audit.Trail, error) {
		t, err := audit.NewTrail(audit.Options{Dir: a.dir, Signer: a.signer, MACs: a.macs, Log: a.log}, a.store)
		if err == nil {
			auditCounters.watch(t)
		}
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", errors.Join(storage.ErrUnavailable, err))
	}
	return t, nil
}

// BestEffort returns the kinds of traffic that go on without a record.
func (a *Audit) BestEffort() []string {
	if a == nil {
		return nil
	}
	return a.rules.BestEffort
}

// Event records an event that writes nothing to the store. ID, time and kind are filled in where they are missing. An
// error means that it is not recorded.
func (a *Audit) Event(_ context.Context, organization string, e storage.AuditEntry) error {
	if a == nil {
		return nil
	}
	t, err := a.open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return err
	}
	identify(&e)
	if err := t.Append(organization, &e); err != nil {
		return fmt.Errorf("recording %s: %w", e.Event, errors.Join(storage.ErrUnavailable, err))
	}
	return nil
}

func identify(e *storage.AuditEntry) {
	if e.At.IsZero() {
		e.At = time.Now().UTC()
	}
	if e.ID == "" {
		e.ID = audit.NewID(e.At)
	}
	e.Kind = cmp.Or(e.Kind, storage.AuditAdmin)
}

// With returns a context and an entry. The next write to the store with that context records the entry in its own
// transaction; until then the entry can still be completed. The error is ErrUnavailable when nothing can be recorded:
// the write must not happen.
func (a *Audit) With(ctx context.Context, organization string, e storage.AuditEntry) (context.Context, *storage.AuditEntry, error) {
	if a == nil {
		return ctx, &e, nil
	}
	t, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	identify(&e)
	audited := t.Audited(organization, e)
	return storage.WithAudit(ctx, audited), &audited.Entries[0], nil
}

// LoggedIn records that a user logged in with a browser. On an error nothing was recorded, and nobody is logged in.
func (a *Audit) LoggedIn(who *Caller, client string) error {
	return a.Event(context.Background(), who.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "login", UserID: who.UserID, Client: client, Outcome: "ok",
	})
}

// bearerError is the refusal of a credential whose bearer the gateway knows.
type bearerError struct {
	error
	bearer *Caller
}

// Unwrap returns the refusal.
func (e *bearerError) Unwrap() error { return e.error }

// RefusedToken records that a credential was refused, in the log of its organization when the error names its bearer.
// The number of such records is limited.
func (a *Audit) RefusedToken(refusal error, path string) {
	var known *bearerError
	if errors.As(refusal, &known) {
		a.RefusedBearer(known.bearer, token.Reason(refusal), path)
		return
	}
	a.RefusedBearer(new(Caller), token.Reason(refusal), path)
}

// RefusedBearer records that a credential of a known bearer was refused. The number of such records is limited.
func (a *Audit) RefusedBearer(who *Caller, reason, path string) {
	e := storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "token.refused", UserID: who.UserID, Client: who.Agent, Outcome: "refused",
		Detail: map[string]any{"reason": short(reason), "path": short(path)},
	}
	if who.Key != nil {
		add(&e, "api_key_id", who.Key.ID)
	}
	a.refused(who.OrganizationID, e)
}

// short limits the length of a client's text in a record.
func short(text string) string { return clip(text, 256) }

// RefusedWrite records that a write through the API was refused. The number of such records is limited.
func (a *Audit) RefusedWrite(organization string, e storage.AuditEntry) { a.refused(organization, e) }

// Unchanged records a write that changed nothing, within a few milliseconds.
func (a *Audit) Unchanged(organization string, e storage.AuditEntry) {
	if a == nil {
		return
	}
	if t, err := a.open(); err == nil { // an error was told when it was opened
		t.Later(organization, &e)
	}
}

func (a *Audit) refused(organization string, e storage.AuditEntry) {
	if a == nil {
		return
	}
	t, err := a.open()
	if err != nil || !t.AllowRefusal(organization, cmp.Or(e.UserID, keyOf(&e))) {
		return // counted
	}
	identify(&e)
	t.Later(organization, &e)
}

// keyOf returns the API key with which an action was done; "" when it was done without one.
func keyOf(e *storage.AuditEntry) string {
	id, _ := e.Detail["api_key_id"].(string)
	return id
}

// Query reads a page of the audit log, newest first.
func (a *Audit) Query(ctx context.Context, f audit.Filter, page storage.PageRequest) (storage.Page[audit.Row], error) {
	t, err := a.open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return storage.Page[audit.Row]{}, err
	}
	return t.Query(ctx, f, page)
}

// Records calls each with the records of an organization between two times, oldest first. The records of this node are
// included.
func (a *Audit) Records(ctx context.Context, organization string, from, to time.Time, each func(*storage.AuditRecord) error) error {
	t, err := a.open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return err
	}
	if err := t.Ship(ctx); err != nil {
		return err
	}
	return audit.Records(ctx, a.store, storage.AuditFilter{OrganizationID: organization, From: from, To: to}, each)
}

// required reports whether calls of a kind of traffic are refused when they cannot be recorded.
func (a *Audit) required(traffic string) bool { return !slices.Contains(a.rules.BestEffort, traffic) }

// logSink writes records to Caddy's logger.
type logSink struct{ logger *zap.Logger }

// Name implements audit.Sink.
func (*logSink) Name() string { return "log" }

// Write implements audit.Sink.
func (s *logSink) Write(_ context.Context, records []audit.Exported) error {
	for _, r := range records {
		s.logger.Info("record", zap.String("organization_id", r.Organization), zap.String("node", r.Node), zap.String("segment", r.Segment),
			zap.Int64("sequence", r.Sequence), zap.String("hash", r.Hash), zap.Any("entry", r.Entry))
	}
	return nil
}

// Close implements audit.Sink.
func (*logSink) Close() error { return nil }

// Interface guards
var _ audit.Sink = (*logSink)(nil)
