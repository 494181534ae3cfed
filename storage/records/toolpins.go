package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	pinColumns = `organization_id, server_id, name, hash, definition, seen_hash, seen_definition, first_seen_at, changed_at, accepted_at, accepted_by`
	pinsSQL    = `SELECT ` + pinColumns + ` FROM tool_pins WHERE organization_id = $1 AND server_id = $2 ORDER BY name`
	pinSQL     = `SELECT ` + pinColumns + ` FROM tool_pins WHERE organization_id = $1 AND server_id = $2 AND name = $3`
	toolsSQL   = `SELECT ` + pinColumns + `, (SELECT slug FROM servers WHERE servers.organization_id = tool_pins.organization_id AND servers.id = tool_pins.server_id)
		FROM tool_pins WHERE organization_id = $1 AND (server_id, name) > ($2, $3) AND ($4 = '' OR server_id = $4)
			AND ($5 = '' OR $5 = 'changed' AND hash <> seen_hash OR $5 = 'new' AND hash = seen_hash AND accepted_at = $6)
		ORDER BY server_id, name LIMIT $7`
	putPinSQL = `INSERT INTO tool_pins (` + pinColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (organization_id, server_id, name) DO UPDATE SET hash = excluded.hash, definition = excluded.definition,
			seen_hash = excluded.seen_hash, seen_definition = excluded.seen_definition, changed_at = excluded.changed_at,
			accepted_at = excluded.accepted_at, accepted_by = excluded.accepted_by`
)

func (t *texts) pins(d Dialect) {
	t.pinsNamed = `SELECT ` + pinColumns + ` FROM ` + d.PinsNamed
}

func scanPin(r Row) (p storage.ToolPin, err error) {
	err = r.Scan(&p.OrganizationID, &p.ServerID, &p.Name, &p.Hash, rawColumn{&p.Definition}, &p.SeenHash, rawColumn{&p.SeenDefinition},
		timeColumn{&p.FirstSeenAt}, timeColumn{&p.ChangedAt}, timeColumn{&p.AcceptedAt}, &p.AcceptedBy)
	return p, err
}

func putPins(ctx context.Context, tx Tx, pins ...storage.ToolPin) error {
	args := make([][]any, len(pins))
	for i, p := range pins {
		args[i] = []any{p.OrganizationID, p.ServerID, p.Name, p.Hash, string(p.Definition), p.SeenHash, string(p.SeenDefinition),
			p.FirstSeenAt.UnixMicro(), p.ChangedAt.UnixMicro(), p.AcceptedAt.UnixMicro(), p.AcceptedBy}
	}
	return tx.ExecEach(ctx, putPinSQL, args)
}

// pinsOf reads the existing pins of tools.
func (s *work) pinsOf(ctx context.Context, q Querier, organization, serverID string, tools []storage.ObservedTool) ([]storage.ToolPin, error) {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	return Many(ctx, q, scanPin, s.texts.pinsNamed, organization, serverID, names)
}

// ToolPins implements storage.ToolPins.
func (s toolPinsStore) ToolPins(ctx context.Context, organization, serverID string) (pins []storage.ToolPin, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		pins, err = Many(ctx, q, scanPin, pinsSQL, organization, serverID)
		return err
	})
	return pins, err
}

// ObserveTools implements storage.ToolPins. For a list without changes it only reads.
func (s toolPinsStore) ObserveTools(ctx context.Context, organization, serverID string, tools []storage.ObservedTool, now time.Time) (changed []storage.ToolPin, err error) {
	observe := func(ctx context.Context, q Querier) (write []storage.ToolPin, err error) {
		found, err := exists(ctx, q, serverExistsSQL, organization, serverID)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, storage.ErrNotFound
		}
		pins, err := s.pinsOf(ctx, q, organization, serverID, tools)
		if err != nil {
			return nil, err
		}
		write, changed = observed(organization, serverID, pins, tools, micros(now))
		return write, nil
	}
	var write []storage.ToolPin
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		write, err = observe(ctx, q)
		return err
	})
	if err != nil || len(write) == 0 {
		return nil, err
	}
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if write, err = observe(ctx, tx); err != nil || len(write) == 0 {
			return err
		}
		if err := putPins(ctx, tx, write...); err != nil {
			return err
		}
		_, err := tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// observed compares a list of tools with the pins. It returns the pins that must be written, and those of them that
// show another definition than before. When one name is listed twice, the definition that is not the pinned one
// counts: it is unknown which of them a client takes.
func observed(organization, serverID string, pins []storage.ToolPin, tools []storage.ObservedTool, now time.Time) (write, changed []storage.ToolPin) {
	pinned := make(map[string]storage.ToolPin, len(pins))
	for _, p := range pins {
		pinned[p.Name] = p
	}
	seen := make(map[string]storage.ObservedTool, len(tools))
	var names []string
	for _, tool := range tools {
		p, known := pinned[tool.Name]
		if !known {
			p = storage.ToolPin{OrganizationID: organization, ServerID: serverID, Name: tool.Name, Hash: tool.Hash,
				Definition: tool.Definition, FirstSeenAt: now}
			pinned[tool.Name] = p
		}
		former, twice := seen[tool.Name]
		if !twice {
			names = append(names, tool.Name)
		}
		if !twice || former.Hash == p.Hash {
			seen[tool.Name] = tool
		}
	}
	for _, name := range names {
		p, tool := pinned[name], seen[name]
		if p.SeenHash == tool.Hash {
			continue
		}
		fresh := p.SeenHash == "" && tool.Hash == p.Hash
		p.SeenHash, p.SeenDefinition = tool.Hash, tool.Definition
		if !fresh {
			p.ChangedAt = now
			changed = append(changed, p)
		}
		write = append(write, p)
	}
	return write, changed
}

// Tools implements storage.ToolPins. A page begins behind a key: reading it costs the same wherever it is in the list.
func (s toolPinsStore) Tools(ctx context.Context, f storage.ToolFilter) (tools []storage.ServerTool, err error) {
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		tools, err = Many(ctx, q, scanTool, toolsSQL, f.OrganizationID, f.After.ServerID, f.After.Name, f.ServerID, string(f.State), time.Time{}.UnixMicro(), f.Limit)
		return err
	})
	return tools, err
}

func scanTool(r Row) (t storage.ServerTool, err error) {
	p := &t.ToolPin
	err = r.Scan(&p.OrganizationID, &p.ServerID, &p.Name, &p.Hash, rawColumn{&p.Definition}, &p.SeenHash, rawColumn{&p.SeenDefinition},
		timeColumn{&p.FirstSeenAt}, timeColumn{&p.ChangedAt}, timeColumn{&p.AcceptedAt}, &p.AcceptedBy, &t.Slug)
	return t, err
}

// AcceptTools implements storage.ToolPins.
func (s toolPinsStore) AcceptTools(ctx context.Context, organization string, tools []storage.ToolAcceptance, by string, now time.Time) (pins []storage.ToolPin, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		pins = make([]storage.ToolPin, len(tools))
		for i, tool := range tools {
			p := &pins[i]
			if *p, err = One(ctx, tx, scanPin, pinSQL, organization, tool.ServerID, tool.Name); err != nil {
				return &storage.ToolError{Index: i, Err: err}
			}
			if p.SeenHash != tool.Hash {
				return &storage.ToolError{Index: i, Err: &storage.ConflictError{Field: "hash"}}
			}
			p.Hash, p.Definition, p.AcceptedAt, p.AcceptedBy = p.SeenHash, p.SeenDefinition, micros(now), by
		}
		if err := putPins(ctx, tx, pins...); err != nil || len(pins) == 0 {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pins, nil
}
