package pinning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/storage"
)

const (
	// writeTimeout is the longest time for writing the observations of a list.
	writeTimeout = 30 * time.Second
	// pinnedAtOnce and pinnedBytes limit the tools, and the size of their definitions, that one transaction writes: other
	// writes wait for it.
	pinnedAtOnce = 500
	pinnedBytes  = 1 << 20
	// maxChangeEvents is the number of changed tools of one list that get a record of their own in the audit log.
	maxChangeEvents = 20
)

// write stores new and changed tools. It reports false when nothing could be written because too much was waiting: the
// tools are seen again with the next list. Changes are recorded before they are written: a change that could not be
// recorded is seen again, too. Changes that show only in the store are recorded afterwards.
func (t *Tools) write(ctx context.Context, due []toolpin.Noted) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	t.watch.Writing.Lock()
	defer t.watch.Writing.Unlock()
	pins, err := t.pins(ctx)
	if err != nil {
		return false, err
	}
	if due = pins.Due(due); len(due) == 0 {
		return true, nil // another list was written first
	}
	if !t.watch.MayWrite(t.options.Now()) {
		return false, nil
	}
	if err := t.recordChanges(ctx, due); err != nil {
		return false, err
	}
	for len(due) > 0 {
		tools := portion(due)
		changed, err := t.options.Store.ObserveTools(ctx, t.server.OrganizationID, t.server.ID, tools, t.options.Now().UTC())
		if err != nil {
			return false, fmt.Errorf("pinning tools: %w", err) // the next list shows those that are left
		}
		t.watch.Written(due[:len(tools)])
		if err := t.recordChanges(ctx, firstElsewhere(due[:len(tools)], changed)); err != nil {
			return false, err
		}
		due = due[len(tools):]
	}
	return true, nil
}

// firstElsewhere returns the tools that were new here and are changed all the same: another node has just pinned another
// definition.
func firstElsewhere(written []toolpin.Noted, changed []storage.ToolPin) (found []toolpin.Noted) {
	for i := range changed {
		pin := &changed[i]
		for j := range written {
			if noted := written[j]; noted.Change == nil && noted.Name == pin.Name {
				noted.Change = &toolpin.Change{Pinned: pin.Hash, Before: pin.Hash, Seen: pin.SeenHash}
				found = append(found, noted)
			}
		}
	}
	return found
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
func (t *Tools) recordChanges(ctx context.Context, due []toolpin.Noted) error {
	count := 0
	for i := range due {
		change := due[i].Change
		if change == nil {
			continue
		}
		if count++; count > maxChangeEvents {
			continue
		}
		e := t.event()
		e.Tool = due[i].Name
		e.Detail = map[string]any{"pinned": change.Pinned, "before": change.Before, "now": change.Seen, "withheld": t.Enforced() && change.Seen != change.Pinned}
		if len(due[i].Suspicious) > 0 {
			e.Detail["suspicious"] = due[i].Suspicious
		}
		if err := t.options.Record(ctx, t.server.OrganizationID, e); err != nil {
			return err
		}
	}
	if count <= maxChangeEvents {
		return nil
	}
	e := t.event()
	e.Detail = map[string]any{"others": count - maxChangeEvents}
	return t.options.Record(ctx, t.server.OrganizationID, e)
}

func (t *Tools) event() storage.AuditEntry {
	return storage.AuditEntry{Kind: storage.AuditAdmin, Event: "tool.changed", ServerID: t.server.ID, Server: t.server.Slug}
}

// later writes in the background, one write at a time for each server.
func (t *Tools) later(noted []toolpin.Noted) {
	if len(noted) == 0 || !t.watch.Enqueue(noted) {
		return
	}
	release, ok := t.options.Hold()
	if !ok {
		t.watch.Stop() // the store is closing
		return
	}
	go func() {
		defer release()
		for {
			due := t.watch.Next()
			if due == nil {
				return
			}
			if _, err := t.write(context.Background(), due); err != nil && !errors.Is(err, storage.ErrNotFound) {
				t.options.Log.Error("noting what tools a server lists", slog.String("server", t.server.Slug), slog.Any("error", err))
			}
		}
	}()
}
