package toolpin

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/mcpparam"
	"github.com/durward-gateway/durward/storage"
)

// Bounds of what is kept of a server, whatever its upstream lists (attack M14).
const (
	// MaxListed is how many tools one list may have. Those beyond are withheld.
	MaxListed = 10_000
	// MaxPins is how many names are pinned. Names beyond are not, and `pin enforce` withholds them.
	MaxPins = 10_000
	// MaxName is the longest name that is pinned, in bytes. MCP wants at most 128.
	MaxName = 512
	// maxDefinition is the longest definition that is kept whole, in bytes.
	maxDefinition = 256 << 10
	// maxKept is how many bytes of definitions are kept; those beyond are begun only, with restDefinition.
	maxKept        = 16 << 20
	restDefinition = 1 << 10
)

// isPinnable reports whether a tool of that name is pinned. Not every store keeps a NUL: one such tool would keep all others
// of its list from being pinned.
func isPinnable(name string) bool { return len(name) <= MaxName && !strings.Contains(name, "\x00") }

// Pins are the hashes of what is pinned of a server and of what was last noted. They stay as they were made. It is safe for
// concurrent use.
type Pins struct {
	byName map[string]pin
	size   int // bytes of the definitions in the store

	mu sync.RWMutex
	// known are digests of the entries, as they were listed, that are as they were last noted: mostly, a list is the one
	// of before, and need not be read again.
	known map[string][sha256.Size]byte
}

type pin struct {
	hash, seen string
	changedAt  time.Time
	mirrors    *mcpparam.Tool // by what was last seen; nil: not known
}

// NewPins makes them of what the store has.
func NewPins(stored []storage.ToolPin) *Pins {
	p := &Pins{byName: make(map[string]pin, len(stored)), known: make(map[string][sha256.Size]byte)}
	for i := range stored {
		s := &stored[i]
		one := pin{hash: s.Hash, seen: s.SeenHash, changedAt: s.ChangedAt, mirrors: mirrors(s.SeenDefinition)}
		if one.seen == one.hash {
			one.seen = one.hash // one string for both
		}
		p.byName[s.Name] = one
		p.size += len(s.Definition) + len(s.SeenDefinition)
	}
	return p
}

// read reads an entry of a list. What is as it was last noted has no definition.
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

// Due leaves out what was noted already, and says of the rest what it changes. That counts which is there when it is written:
// when the list was read, what an earlier one showed may have been on its way to the store.
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
