// Package pinning holds the tools of servers to the definitions that were seen first or accepted (attack M13, "rug
// pull"). It keeps the pins of internal/mcp/toolpin in the store, and records changed tools in the audit log.
package pinning

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/param"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/storage"
)

// Store is the store's part with the pins.
type Store interface {
	ToolPins(ctx context.Context, organization, server string) ([]storage.ToolPin, error)
	ObserveTools(ctx context.Context, organization, server string, tools []storage.ObservedTool, now time.Time) ([]storage.ToolPin, error)
}

// Options holds the dependencies of a Pinner. All but Log are required.
type Options struct {
	// Memory must stay open as long as the pinner is used.
	Memory *Memory
	Store  Store
	// Record puts an event into the audit log of an organization. On an error it is not recorded.
	Record func(ctx context.Context, organization string, e storage.AuditEntry) error
	// Hold keeps the memory and the store open until release is called. It reports false when they are closing.
	Hold func() (release func(), ok bool)
	// Enforce withholds changed tools.
	Enforce bool
	// Log tells about tools that could not be noted; nil: nothing does.
	Log *slog.Logger
	Now func() time.Time
}

// Pinner knows the tools of servers, by the rules of one configuration. It is safe for concurrent use.
type Pinner struct{ options Options }

// New makes a pinner.
func New(o Options) *Pinner {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Pinner{o}
}

// Enforced reports whether changed tools are withheld.
func (p *Pinner) Enforced() bool { return p.options.Enforce }

// Tools holds the known tools of a server. It is safe for concurrent use.
type Tools struct {
	*Pinner

	server *storage.Server
	watch  *toolpin.Watch
}

// Of returns the known tools of a server.
func (p *Pinner) Of(server *storage.Server) *Tools {
	return &Tools{p, server, p.options.Memory.watch(watchKey{server.OrganizationID, server.ID}, p.options.Now())}
}

func (t *Tools) pins(ctx context.Context) (*toolpin.Pins, error) {
	organization, server := t.server.OrganizationID, t.server.ID
	pins, err := t.options.Memory.pins.Get(ctx, cache.NewKey(organization, "tool pins", server), func(ctx context.Context) (*toolpin.Pins, error) {
		stored, err := t.options.Store.ToolPins(ctx, organization, server)
		if err != nil {
			return nil, err
		}
		return toolpin.NewPins(stored), nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading what tools are pinned: %w", err)
	}
	return pins, nil
}

// Withheld reports whether `pin enforce` keeps a tool from being called, because its definition is not the pinned one.
func (t *Tools) Withheld(ctx context.Context, name string) (bool, error) {
	if !t.Enforced() {
		return false, nil
	}
	pins, err := t.pins(ctx)
	if err != nil {
		return false, err
	}
	return t.watch.Withheld(pins, name), nil
}

// Definition returns the hash of the upstream's last definition of a tool, "" when there was none.
func (t *Tools) Definition(ctx context.Context, name string) (string, error) {
	pins, err := t.pins(ctx)
	if err != nil {
		return "", err
	}
	return t.watch.Definition(pins, name), nil
}

// ReadOnly reports whether a tool says of itself that it changes nothing (MCP's readOnlyHint), both as it is pinned and as
// it was seen last. It is false for a tool that is not known.
func (t *Tools) ReadOnly(ctx context.Context, name string) (bool, error) {
	pins, err := t.pins(ctx)
	if err != nil {
		return false, err
	}
	return t.watch.ReadOnly(pins, name), nil
}

// Mirrors returns the arguments of a tool that are sent in headers, by its newest definition. Errors are the store's.
func (t *Tools) Mirrors(ctx context.Context, name string) (param.Tool, error) {
	pins, err := t.pins(ctx)
	if err != nil {
		return param.Tool{}, err
	}
	return t.watch.Mirrors(pins, name), nil
}

// Observe begins to read a list of tools.
func (t *Tools) Observe(ctx context.Context) (*toolpin.Observation, error) {
	pins, err := t.pins(ctx)
	if err != nil {
		return nil, err
	}
	return toolpin.Observe(pins, t.watch, t.Enforced()), nil
}

// Note ends the reading of a list. New and changed tools are written. Without `pin enforce` this happens in the
// background. With it they are written before Note returns, and the list must then be read again, because other tools
// of it may be shown. With `pin enforce` an error means that the tools that may be shown are not known.
func (t *Tools) Note(ctx context.Context, o *toolpin.Observation) (again bool, err error) {
	list := o.End(t.options.Now())
	switch {
	case !t.Enforced():
		t.later(list.Due) //nolint:contextcheck // it goes on when the request has ended
		return false, nil
	case len(list.Due) == 0:
		return list.Torn, nil
	}
	written, err := t.write(ctx, list.Due)
	return written || list.Torn, err
}
