package platformapi

import (
	"context"
	"errors"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
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
