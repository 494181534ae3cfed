package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// eventModelCall is the event that is recorded before a provider's secret leaves.
const eventModelCall = "model.call"

// modelIntent is a call to a provider that is under way.
type modelIntent struct {
	id      string // "": nothing is recorded of it
	started time.Time
	asked   tracing.Question // zero: no call is under way
}

// ModelCall describes a call to a provider.
type ModelCall struct {
	Account      *accounts.Account
	Alias, Model string
	Operation    string   // chat, embeddings, ...: the word of OpenTelemetry's conventions
	URL          *url.URL // to which it goes
}

// modelRequest holds the facts that records contain of a request for a model, whichever provider it is sent to.
type modelRequest struct {
	trace, digest string
	counts        bool // it asks only for the length of a prompt, and for no answer of a model
}

// TokenCount notes that the request asks for the length of a prompt.
func (r Records) TokenCount() { r.call.modelRequest.counts = true }

// ModelRequest notes the facts of the request for its records; body is nil where it was not read.
func (r Records) ModelRequest(ctx context.Context, header http.Header, body []byte) {
	c := r.call
	if tag, ok := inbound.TrackingTag(header); ok {
		c.Log.Session = tag
	}
	if c.Core.Audit == nil {
		return
	}
	c.modelRequest = modelRequest{trace: TraceID(ctx, header)}
	if body != nil {
		sum := sha256.Sum256(body)
		c.modelRequest.digest = hex.EncodeToString(sum[:])
	}
}

// modelEntry returns the record of a request for a model.
func (c *Call) modelEntry(at time.Time, alias string) storage.AuditEntry {
	e := storage.AuditEntry{
		ID: format.NewID(at), At: at, Kind: storage.AuditCall, Event: eventModelCall, UserID: c.Caller.UserID, Client: c.Caller.Agent,
		Session: c.Log.Session, Method: settings.AuditLLM, Tool: alias, Decision: "allow", ArgumentsDigest: c.modelRequest.digest, TraceID: c.modelRequest.trace,
	}
	if c.Agent != nil {
		e.AgentID = c.Agent.ID
	}
	if c.Caller.Key != nil {
		record.Add(&e, "api_key_id", c.Caller.Key.ID)
	}
	if c.modelRequest.counts {
		record.Add(&e, "purpose", "count_tokens")
	}
	record.ClipNames(&e)
	return e
}

// ModelRefused records that a request for a model went to no provider; the outcome word gives the reason.
func (r Records) ModelRefused(_ context.Context, alias, outcome string) {
	c := r.call
	if c.Core.Audit == nil {
		return
	}
	t, err := c.Core.Audit.Open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return // told when it was opened
	}
	e := c.modelEntry(time.Now().UTC(), alias)
	if e.Outcome = outcome; outcome == "refused" {
		e.Decision = "deny"
	}
	t.Later(c.Caller.OrganizationID, &e)
}

// ModelIntent records that the call is about to leave for a provider with the secret of the gateway's account
// there, and begins it in the call's trace. It must be called before the secret leaves, for each target anew. On an error
// the call must not be made. The error wraps storage.ErrUnavailable.
func (r Records) ModelIntent(ctx context.Context, to ModelCall) error {
	err := r.modelIntent(ctx, to.Account, to.Alias, to.Model)
	if err == nil {
		c := r.call
		c.modelIntent.asked = tracing.Question{Operation: to.Operation, Provider: to.Account.Kind, Model: to.Model, Server: to.URL}
		c.Upstream = c.Trace.Question(c.modelIntent.asked)
	}
	return err
}

func (r Records) modelIntent(_ context.Context, account *accounts.Account, alias, model string) error {
	c := r.call
	a := c.Core.Audit
	c.modelIntent = modelIntent{started: time.Now()}
	if a == nil {
		return nil
	}
	e := c.modelEntry(c.modelIntent.started.UTC(), c.Log.Model)
	for name, value := range map[string]string{"model_alias": alias, "provider_id": account.ID, "provider": record.Clip(account.Name, record.MaxMethod), "model": record.Clip(model, record.MaxMethod)} {
		record.Add(&e, name, value)
	}
	t, err := a.Open() //nolint:contextcheck // what is opened outlives the request
	if err == nil {
		err = t.Append(c.Caller.OrganizationID, &e)
	}
	switch {
	case err == nil:
	case a.Required(settings.AuditLLM):
		return fmt.Errorf("recording a call to a model: %w", errors.Join(storage.ErrUnavailable, err))
	case t == nil:
		return nil // told when it was opened
	default:
		t.Later(c.Caller.OrganizationID, &e) // or it is counted as lost
	}
	c.modelIntent.id = e.ID
	return nil
}

// ModelOutcome records the result of the call that ModelIntent has recorded: an outcome word of the gateway,
// the status of the provider's answer, 0 when there was none, and the tokens.
func (r Records) ModelOutcome(outcome string, status int, used wire.Usage) {
	c := r.call
	intent := c.modelIntent
	c.modelIntent.id, c.modelIntent.asked = "", tracing.Question{}
	if intent.asked.Operation != "" {
		c.Upstream.Used(tracing.Usage{Input: used.Input, Output: used.Output, Estimated: !used.Known})
		c.Upstream.End(outcome, status)
		metrics.CountModelCall(metrics.ModelCall{
			Operation: intent.asked.Operation, Provider: intent.asked.Provider, Outcome: outcome, Took: time.Since(intent.started),
			Input: used.Input, Output: used.Output, TraceID: c.Trace.Sampled(),
		})
	}
	if intent.id == "" {
		return
	}
	t := c.Core.Audit.Opened()
	if t == nil {
		return // not reached: the intent has opened it
	}
	e := storage.AuditEntry{
		Kind: storage.AuditCall, Event: "outcome", Call: intent.id, Outcome: outcome, UpstreamStatus: status, Duration: time.Since(intent.started),
	}
	e.At = intent.started.Add(e.Duration).UTC() // never before the intent, whatever the clock does
	e.ID = format.NewID(e.At)
	if used.Total() > 0 {
		e.Detail = map[string]any{"input_tokens": used.Input, "output_tokens": used.Output}
		if !used.Known {
			e.Detail["estimated"] = true
		}
	}
	t.Later(c.Caller.OrganizationID, &e)
}
