package platformapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/internal/ops/diskspace"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
	"github.com/durward-gateway/durward/modules/app/readiness"
	"github.com/durward-gateway/durward/modules/app/routes"
)

// pingTimeout is the longest time that a readiness check waits for the store.
const pingTimeout = 2 * time.Second

type healthView struct {
	Status string `json:"status"`
	// Store is "read-only" while the store takes no writes and only existing data is served; StoreReason is the reason.
	Store       string `json:"store,omitempty"`
	StoreReason string `json:"store_reason,omitempty"`
	// BestEffort lists the kinds of traffic that go on when the audit log cannot be written.
	BestEffort []string `json:"audit_best_effort,omitempty"`
	// Limits is "degraded" while this node counts rate limits alone that it should count with other nodes.
	Limits string `json:"limits,omitempty"`
	// LimitsOnStoreFailure is "open" when every node would then allow whole limits.
	LimitsOnStoreFailure string `json:"limits_on_store_failure,omitempty"`
}

// health answers that the process lives, and no more: an unreachable store is no reason to restart it.
func health(*request) (any, error) { return healthView{Status: "ok"}, nil }

// ready answers whether requests should be sent here.
func ready(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if caddy.Exiting() {
		return nil, routes.Refused(gateway.Unavailable, "The gateway is shutting down")
	}
	ctx, cancel := context.WithTimeout(q.Context(), pingTimeout)
	defer cancel()
	err := q.Core.Readiness.Check(ctx)
	if errors.Is(err, readiness.ErrOverloaded) {
		return nil, routes.Refused(gateway.Unavailable, "The gateway is short of memory at the moment")
	}
	if err != nil { // the log has it
		return nil, &routes.Refusal{ServiceError: *readiness.Refusal(err)}
	}
	view := healthView{Status: "ready", BestEffort: q.Core.Audit.BestEffort()}
	if reason := q.Core.Readiness.ReadOnly(ctx); reason != "" {
		view.Store, view.StoreReason = "read-only", reason
	}
	if q.Core.Admitter.Degraded() {
		view.Limits = "degraded"
	}
	if q.Core.Admitter.FailsOpen() {
		view.LimitsOnStoreFailure = string(cluster.Open)
	}
	return view, nil
}

// partState is the state of a part of the gateway.
type partState string

// States of parts, the worst last.
const (
	partOff      partState = "off" // it is not in use here
	partOK       partState = "ok"
	partUnknown  partState = "unknown"
	partDegraded partState = "degraded" // it works, and less well than it should
	partFailing  partState = "failing"
)

var partOrder = []partState{partOff, partOK, partUnknown, partDegraded, partFailing}

// healthDetailView shows how the node that answers is. It stands for itself alone.
type healthDetailView struct {
	Status partState      `json:"status"` // the worst of its parts; never off, and unknown counts as ok
	Node   string         `json:"node"`   // name of the journal of the node that answers
	Time   routes.Instant `json:"time"`
	Parts  []partView     `json:"parts"`
}

type partView struct {
	Kind  string    `json:"kind"`
	Name  *string   `json:"name"` // of one among several
	State partState `json:"state"`
	Text  string    `json:"text"`
}

// healthDetail tells how each part of this node is, in words. It asks nobody outside: what it says of identity providers and
// of providers of models is the experience of requests.
func healthDetail(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(q.Context(), pingTimeout)
	defer cancel()
	now := q.handler.now().UTC()
	v := healthDetailView{Status: partOK, Time: routes.Instant(now)}
	add := func(kind, name string, state partState, text string) {
		v.Parts = append(v.Parts, partView{kind, routes.Optional(name), state, text})
		if state != partUnknown && slices.Index(partOrder, state) > slices.Index(partOrder, v.Status) {
			v.Status = state
		}
	}
	q.storeHealth(ctx, add)
	q.counterHealth(add)
	q.journalHealth(ctx, &v, add)
	q.diskHealth(add)
	q.identityHealth(ctx, now, add)
	q.modelHealth(ctx, add)
	return v, nil
}

func (q *request) storeHealth(ctx context.Context, add func(kind, name string, state partState, text string)) {
	err := q.Core.Readiness.Check(ctx)
	apart := new(readiness.ClockError)
	switch reason := q.Core.Readiness.ReadOnly(ctx); {
	case reason != "":
		add("store", "", partFailing, "It takes no writes: "+reason+".")
	case errors.Is(err, readiness.ErrOverloaded), errors.As(err, &apart), err == nil:
		add("store", "", partOK, "It reads and writes.")
	default:
		add("store", "", partFailing, "It cannot be used: "+readiness.Reason(err)+".")
	}
	if errors.As(err, &apart) {
		add("clock", "", partFailing, apart.Error()+".")
	} else {
		add("clock", "", partOK, "It agrees with the store's.")
	}
	switch q.Core.Overload.Level() {
	case overload.Critical:
		add("memory", "", partFailing, "It is so short that every new call is refused.")
	case overload.Calm:
		add("memory", "", partOK, "There is enough.")
	default:
		add("memory", "", partDegraded, "It is short: new streams, new MCP sessions and large bodies are refused.")
	}
}

func (q *request) counterHealth(add func(kind, name string, state partState, text string)) {
	switch {
	case q.Core.Admitter.Degraded():
		add("counters", "", partDegraded, "This node counts rate limits alone, because it does not reach the counters that it shares with others.")
	case q.Core.Admitter.Shared():
		add("counters", "", partOK, "Rate limits are counted together with other nodes.")
	default:
		add("counters", "", partOff, "Rate limits are counted by this node alone, as configured.")
	}
}

// unshippedMuch is more than waits for the store while it can be written.
const unshippedMuch = 64 << 20

func (q *request) journalHealth(ctx context.Context, v *healthDetailView, add func(kind, name string, state partState, text string)) {
	status, _, err := q.Core.Audit.Status(ctx, q.Organization())
	v.Node = status.Node
	switch {
	case err != nil:
		add("journal", "", partFailing, "Where it stands cannot be read; the gateway's log says why.")
	case status.Aside > 0:
		add("journal", "", partDegraded, fmt.Sprintf("%d files were set aside, because they could not be read: see docs/audit.md.", status.Aside))
	case status.Unshipped > unshippedMuch:
		add("journal", "", partDegraded, fmt.Sprintf("%d MiB of records are not in the store yet.", status.Unshipped>>20))
	default:
		add("journal", "", partOK, fmt.Sprintf("%d bytes of records are not in the store yet.", status.Unshipped))
	}
}

// diskShort is the share of a disk, one of so many, that should stay free.
const diskShort = 10

func (q *request) diskHealth(add func(kind, name string, state partState, text string)) {
	free, size, err := diskspace.Of(q.Core.Audit.Directory())
	text := fmt.Sprintf("%d of %d MiB are free where the journal is.", free>>20, size>>20)
	switch {
	case err != nil || size == 0:
		add("disk", "", partUnknown, "The room where the journal is cannot be read on this system.")
	case free == 0:
		add("disk", "", partFailing, text)
	case free < size/diskShort:
		add("disk", "", partDegraded, text)
	default:
		add("disk", "", partOK, text)
	}
}

// identityHealth tells of the identity providers whose tokens can name the organization: which ones others have is theirs to
// know.
func (q *request) identityHealth(ctx context.Context, now time.Time, add func(kind, name string, state partState, text string)) {
	own, err := q.Core.Store.Organization(ctx, q.Organization())
	if err != nil {
		add("identity_provider", "", partUnknown, "Those of the organization cannot be read from the store.")
	}
	for _, name := range q.Core.Issuers.Of(own) {
		state, text := keysHealth(q.Core.Issuers.ByName()[name], now)
		add("identity_provider", name, state, text)
	}
}

func keysHealth(issuer authn.Issuer, now time.Time) (partState, string) {
	fetched, failure, ok := issuer.Verifier().KeysStanding()
	switch {
	case !ok:
		return partOK, "Its keys are known from the start."
	case fetched.IsZero() && failure != nil:
		return partFailing, "Its keys could not be fetched, so its tokens are refused; the gateway's log says why."
	case fetched.IsZero():
		return partUnknown, "Its keys are fetched with the first token."
	case failure != nil:
		return partDegraded, fmt.Sprintf("Its keys could not be fetched again; those from %s ago are used.", now.Sub(fetched).Round(time.Second))
	}
	return partOK, fmt.Sprintf("Its keys were fetched %s ago.", now.Sub(fetched).Round(time.Second))
}

// modelHealth tells which providers of models are paused, because their last calls failed.
func (q *request) modelHealth(ctx context.Context, add func(kind, name string, state partState, text string)) {
	set, err := q.Core.Store.ModelSet(ctx, q.Organization())
	if err != nil {
		add("llm_provider", "", partUnknown, "Those of the organization cannot be read from the store.")
	}
	provider := func(id, name string) {
		if q.Core.Accounts.Breakers().Paused(route.Key{Organization: q.Organization(), Provider: id}) {
			add("llm_provider", name, partFailing, "Its last calls failed: it gets one call at a time until one works.")
			return
		}
		add("llm_provider", name, partOK, "No calls of this organization failed in a row.")
	}
	for _, p := range set.Providers {
		provider(p.ID, p.Name)
	}
	for _, p := range q.Core.Accounts.ConfiguredAccounts() {
		provider(p.ID, p.Name)
	}
}
