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
	"github.com/durward-gateway/durward/internal/token"
	"github.com/durward-gateway/durward/storage"
)

// auditDirectory is where the journals are, in the data directory.
const auditDirectory = "audit"

// trail is the audit log of a store's resources. It is opened when something is to be recorded, at the latest when the
// configuration starts: one that is only validated must not touch the journal of the one that runs.
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

// Audit is a configuration's view of the audit log. A nil one, which only tests have, records nothing.
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

// newAudit lacks signer and MACs, which take the data keys.
func (a *App) newAudit() *Audit {
	rules := a.Audit.withDefaults()
	dir := cmp.Or(a.dataDirectory(), LocalDirectory())
	return &Audit{
		rules: rules, redact: newRedaction(rules.Redact), dir: filepath.Join(dir, auditDirectory),
		store: a.resources.store, log: a.slogger, trail: &a.resources.trail,
	}
}

// LocalDirectory is where a gateway keeps what is not in its store, when that is not on a local disk itself.
func LocalDirectory() string { return filepath.Join(caddy.AppDataDir(), "durward") }

// AuditPurpose is what the key that signs checkpoints is derived for.
const AuditPurpose = "audit checkpoints"

// AuditRecordPurpose is what the key of the records' MACs is derived for.
const AuditRecordPurpose = "audit records"

// start opens the trail and gives it what this configuration says.
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

// BestEffort are the kinds of traffic that go on without a record.
func (a *Audit) BestEffort() []string {
	if a == nil {
		return nil
	}
	return a.rules.BestEffort
}

// Event records something that writes nothing to the store. ID, time and kind are filled in where they are missing. An
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

// With returns a context whose next write to the store records the entry in its own transaction, and the entry, which may
// still be completed until then. ErrUnavailable when nothing can be recorded: the write must not happen.
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

// LoggedIn records that a user logged in with a browser. An error means that it could not be: nobody is logged in then.
func (a *Audit) LoggedIn(who *Caller, client string) error {
	return a.Event(context.Background(), who.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "login", UserID: who.UserID, Client: client, Outcome: "ok",
	})
}

// bearerError is the refusal of a credential of which the gateway knows whose it is.
type bearerError struct {
	error
	bearer *Caller
}

// Unwrap gives the refusal.
func (e *bearerError) Unwrap() error { return e.error }

// RefusedToken records that a credential was refused, in the log of its organization when the error knows whose it is. There is a bound
// to how many of them are recorded.
func (a *Audit) RefusedToken(refusal error, path string) {
	var known *bearerError
	if errors.As(refusal, &known) {
		a.RefusedBearer(known.bearer, token.Reason(refusal), path)
		return
	}
	a.RefusedBearer(new(Caller), token.Reason(refusal), path)
}

// RefusedBearer records that a credential of somebody was refused. There is a bound to how many of them are recorded.
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

// short bounds what a client can put into a record.
func short(text string) string { return clip(text, 256) }

// RefusedWrite records that a write through the API was refused. There is a bound to how many of them are recorded.
func (a *Audit) RefusedWrite(organization string, e storage.AuditEntry) { a.refused(organization, e) }

// Unchanged records a write that had nothing to change, within a few milliseconds.
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

// keyOf is the API key with which something was done; "" when it was none.
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

// Records calls each with the records of an organization between two times, oldest first, what this node has recorded
// among them.
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

// required reports whether calls of that traffic are refused when they cannot be recorded.
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
