package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/param"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/storage"
)

const (
	keptPins     = 10_000    // servers whose pins are in memory
	keptPinNames = 1_000_000 // and tools of them all together
	keptWatches  = 10_000    // servers whose unwritten observations are in memory
	// noteTimeout is the longest time for writing the observations of lists.
	noteTimeout = 30 * time.Second
	// pinnedAtOnce and pinnedBytes limit the tools, and the size of their definitions, that one transaction writes: other
	// writes wait for it.
	pinnedAtOnce = 500
	pinnedBytes  = 1 << 20
	// maxChangeEvents is the number of changed tools of one list that get a record of their own in the audit log.
	maxChangeEvents = 20
)

// toolPins holds the known tools of all servers of a store.
type toolPins struct {
	pins *cache.Cache[*toolpin.Pins]

	mu      sync.Mutex
	watches map[watchKey]*toolpin.Watch
}

type watchKey struct{ organization, server string }

func (r *resources) makeToolPins() (err error) {
	r.toolPins.watches = make(map[watchKey]*toolpin.Watch)
	r.toolPins.pins, err = newCache(r, "tool pins", cache.Options[*toolpin.Pins]{
		Entries: keptPins, MaxCost: keptPinNames, Cost: func(p *toolpin.Pins) int64 { return int64(p.Len()) + 1 },
	})
	return err
}

func (t *toolPins) watch(key watchKey, now time.Time) *toolpin.Watch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.watches[key]; w != nil {
		return w
	}
	if len(t.watches) >= keptWatches {
		t.forget(now)
	}
	w := new(toolpin.Watch)
	t.watches[key] = w
	return w
}

// forget makes room: it drops entries without knowledge first, and otherwise any one.
func (t *toolPins) forget(now time.Time) {
	for key, w := range t.watches {
		if w.Idle(now) {
			delete(t.watches, key)
		}
	}
	for key := range t.watches {
		if len(t.watches) < keptWatches {
			return
		}
		delete(t.watches, key)
	}
}

// ToolPins holds the known tools of a call's server.
type ToolPins struct {
	core   *Core
	server *storage.Server
	watch  *toolpin.Watch
}

// ToolPins returns the known tools of the call's server. The result can be used while the call's core is pinned, by any
// goroutine.
func (c *Call) ToolPins() *ToolPins {
	key := watchKey{c.Server.OrganizationID, c.Server.ID}
	return &ToolPins{core: c.Core, server: c.Server, watch: c.Core.resources.toolPins.watch(key, time.Now())}
}

// PinsEnforced reports whether changed tools are withheld.
func (c *Core) PinsEnforced() bool { return c.pinning.Enforce }

// Enforced reports whether changed tools are withheld.
func (p *ToolPins) Enforced() bool { return p.core.PinsEnforced() }

func (p *ToolPins) pins(ctx context.Context) (*toolpin.Pins, error) {
	kept, organization, server := p.core.resources, p.server.OrganizationID, p.server.ID
	pins, err := kept.toolPins.pins.Get(ctx, cache.NewKey(organization, "tool pins", server), func(ctx context.Context) (*toolpin.Pins, error) {
		stored, err := kept.store.ToolPins(ctx, organization, server)
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
func (p *ToolPins) Withheld(ctx context.Context, name string) (bool, error) {
	if !p.Enforced() {
		return false, nil
	}
	pins, err := p.pins(ctx)
	if err != nil {
		return false, err
	}
	return p.watch.Withheld(pins, name), nil
}

// Definition returns the hash of the upstream's last definition of a tool, "" when there was none.
func (p *ToolPins) Definition(ctx context.Context, name string) (string, error) {
	pins, err := p.pins(ctx)
	if err != nil {
		return "", err
	}
	return p.watch.Definition(pins, name), nil
}

// Mirrors returns the arguments of a tool that are sent in headers, by its newest definition. Errors are the store's.
func (p *ToolPins) Mirrors(ctx context.Context, name string) (param.Tool, error) {
	pins, err := p.pins(ctx)
	if err != nil {
		return param.Tool{}, err
	}
	return p.watch.Mirrors(pins, name), nil
}

// Observe begins to read a list of tools.
func (p *ToolPins) Observe(ctx context.Context) (*toolpin.Observation, error) {
	pins, err := p.pins(ctx)
	if err != nil {
		return nil, err
	}
	return toolpin.Observe(pins, p.watch, p.Enforced()), nil
}

// Note ends the reading of a list. New and changed tools are written. Without `pin enforce` this happens in the
// background. With it they are written before Note returns, and the list must then be read again, because other tools
// of it may be shown. With `pin enforce` an error means that the tools that may be shown are not known.
func (p *ToolPins) Note(ctx context.Context, o *toolpin.Observation) (again bool, err error) {
	list := o.End(time.Now())
	switch {
	case !p.Enforced():
		p.later(list.Due) //nolint:contextcheck // it goes on when the request has ended
		return false, nil
	case len(list.Due) == 0:
		return list.Torn, nil
	}
	written, err := p.write(ctx, list.Due)
	return written || list.Torn, err
}

// write stores new and changed tools. It reports false when nothing could be written because too much was waiting: the
// tools are seen again with the next list. Changes are recorded before they are written: a change that could not be
// recorded is seen again, too.
func (p *ToolPins) write(ctx context.Context, due []toolpin.Noted) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	p.watch.Writing.Lock()
	defer p.watch.Writing.Unlock()
	pins, err := p.pins(ctx)
	if err != nil {
		return false, err
	}
	if due = pins.Due(due); len(due) == 0 {
		return true, nil // another list was written first
	}
	if !p.watch.MayWrite(time.Now()) {
		return false, nil
	}
	if err := p.recordChanges(ctx, due); err != nil {
		return false, err
	}
	for len(due) > 0 {
		tools := portion(due)
		if _, err := p.core.resources.store.ObserveTools(ctx, p.server.OrganizationID, p.server.ID, tools, time.Now().UTC()); err != nil {
			return false, fmt.Errorf("pinning tools: %w", err) // the next list shows those that are left
		}
		p.watch.Written(due[:len(tools)])
		due = due[len(tools):]
	}
	return true, nil
}

// portion returns the first due tools, as many as one transaction writes, and at least one.
func portion(due []toolpin.Noted) (tools []storage.ObservedTool) {
	size := 0
	for i := range due {
		size += len(due[i].Definition)
		if i == pinnedAtOnce || i > 0 && size > pinnedBytes {
			break
		}
		tools = append(tools, due[i].ObservedTool)
	}
	return tools
}

// recordChanges puts changed tools into the audit log: one record for each of the first ones, and the number of the
// others.
func (p *ToolPins) recordChanges(ctx context.Context, due []toolpin.Noted) error {
	count := 0
	for i := range due {
		change := due[i].Change
		if change == nil {
			continue
		}
		if count++; count > maxChangeEvents {
			continue
		}
		e := p.event()
		e.Tool = due[i].Name
		e.Detail = map[string]any{"pinned": change.Pinned, "before": change.Before, "now": change.Seen, "withheld": p.Enforced() && change.Seen != change.Pinned}
		if len(due[i].Suspicious) > 0 {
			e.Detail["suspicious"] = due[i].Suspicious
		}
		if err := p.core.Audit.Event(ctx, p.server.OrganizationID, e); err != nil {
			return err
		}
	}
	if count <= maxChangeEvents {
		return nil
	}
	e := p.event()
	e.Detail = map[string]any{"others": count - maxChangeEvents}
	return p.core.Audit.Event(ctx, p.server.OrganizationID, e)
}

func (p *ToolPins) event() storage.AuditEntry {
	return storage.AuditEntry{Kind: storage.AuditAdmin, Event: "tool.changed", ServerID: p.server.ID, Server: p.server.Slug}
}

// later writes in the background, one write at a time for each server.
func (p *ToolPins) later(noted []toolpin.Noted) {
	kept := p.core.resources
	if len(noted) == 0 || !p.watch.Enqueue(noted) {
		return
	}
	if !kept.pin() {
		p.watch.Stop() // the store is closing
		return
	}
	go func() {
		defer kept.unpin()
		for {
			due := p.watch.Next()
			if due == nil {
				return
			}
			if _, err := p.write(context.Background(), due); err != nil && !errors.Is(err, storage.ErrNotFound) {
				p.core.Log.Error("noting what tools a server lists", slog.String("server", p.server.Slug), slog.Any("error", err))
			}
		}
	}()
}
