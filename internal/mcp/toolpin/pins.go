package toolpin

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/param"
	"github.com/durward-gateway/durward/storage"
)

// Bounds on the data kept for a server, whatever its upstream lists (attack M14).
const (
	// MaxListed is the number of tools that one list may have. Further tools are withheld.
	MaxListed = 10_000
	// MaxPins is the number of names that are pinned. Further names are not, and `pin enforce` withholds them.
	MaxPins = 10_000
	// MaxName is the greatest length of a pinned name, in bytes. MCP recommends at most 128.
	MaxName = 512
	// maxDefinition is the greatest length of a definition that is stored in full, in bytes.
	maxDefinition = 256 << 10
	// maxKept is the number of bytes of definitions that are stored; further ones are stored only in their beginning,
	// with restDefinition.
	maxKept        = 16 << 20
	restDefinition = 1 << 10
)

// isPinnable reports whether a tool of that name is pinned. Not every store accepts a NUL: one such tool would keep all
// others of its list from being pinned.
func isPinnable(name string) bool { return len(name) <= MaxName && !strings.Contains(name, "\x00") }

// Pins holds the hashes of the pinned and the last recorded versions of a server's tools. It never changes. It is safe
// for concurrent use.
type Pins struct {
	byName map[string]pin
	size   int // bytes of the definitions in the store

	mu sync.RWMutex
	// known holds digests of entries, as listed, that equal their last recorded version. Most lists are the same as
	// before, and need not be read again.
	known map[string][sha256.Size]byte
}

type pin struct {
	hash, seen string
	changedAt  time.Time
	mirrors    *param.Tool // by the last seen version; nil: not known
	readOnly   bool        // by both versions, see readOnly
}

// NewPins makes Pins from the store's records.
func NewPins(stored []storage.ToolPin) *Pins {
	p := &Pins{byName: make(map[string]pin, len(stored)), known: make(map[string][sha256.Size]byte)}
	for i := range stored {
		s := &stored[i]
		one := pin{hash: s.Hash, seen: s.SeenHash, changedAt: s.ChangedAt, mirrors: mirrors(s.SeenDefinition), readOnly: readOnly(s.Definition)}
		if one.seen == one.hash {
			one.seen = one.hash // one string for both
		} else if one.readOnly {
			one.readOnly = readOnly(s.SeenDefinition)
		}
		p.byName[s.Name] = one
		p.size += len(s.Definition) + len(s.SeenDefinition)
	}
	return p
}

// read reads an entry of a list. A tool that equals its last recorded version has no definition.
func (p *Pins) read(name string, entry []byte) (Tool, error) {
	seen := p.byName[name].seen
	digest := sha256.Sum256(entry)
	p.mu.RLock()
	known, is := p.known[name]
	p.mu.RUnlock()
	if is && known == digest {
		return Tool{Name: name, Hash: seen}, nil
	}
	tool, err := Read(name, entry)
	if err != nil || tool.Hash != seen {
		return tool, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[name] = digest
	return tool, nil
}

// Len is the number of pins.
func (p *Pins) Len() int { return len(p.byName) }

// Due leaves out tools that were recorded already, and says what the others change. It compares with the pins at the
// time of writing: when the list was read, the result of an earlier list may have been on its way to the store.
func (p *Pins) Due(noted []Noted) []Noted {
	due := make([]Noted, 0, len(noted))
	for _, n := range noted {
		stored, known := p.byName[n.Name]
		if stored.seen == n.Hash {
			continue
		}
		if n.Change = nil; known {
			n.Change = &Change{stored.hash, stored.seen, n.Hash}
		}
		due = append(due, n)
	}
	return due
}
