package toolpin

import (
	"cmp"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Observation reads the tools of one list. It is not safe for concurrent use.
type Observation struct {
	pins    *Pins
	watch   *Watch
	enforce bool

	listed int
	names  []string
	seen   map[string]Tool
	fresh  int               // number of tools in seen without a pin
	torn   bool              // a name had two definitions
	second map[string]string // hashes of the other definitions of names without a pin
}

// Observe begins to read a list. With enforce, tools that differ from their pins are hidden.
func Observe(pins *Pins, watch *Watch, enforce bool) *Observation {
	return &Observation{pins: pins, watch: watch, enforce: enforce, seen: make(map[string]Tool)}
}

// Tool reads one entry and reports whether it may be shown. With enforce, a new tool must be pinned first.
func (o *Observation) Tool(name string, entry []byte) (show bool) {
	if o.listed++; o.listed > MaxListed {
		return false
	}
	if !isPinnable(name) {
		return !o.enforce
	}
	tool, err := o.pins.read(name, entry)
	if err != nil {
		return false // not reached: the list was read before
	}
	stored, known := o.pins.byName[name]
	o.see(tool, stored.hash, known)
	return !o.enforce || known && tool.Hash == stored.hash && !o.watch.Withheld(o.pins, name)
}

// see records a listed tool. Of two definitions under one name, the one that differs from the pin counts: it is not
// known which of them a client uses.
func (o *Observation) see(tool Tool, hash string, known bool) {
	former, twice := o.seen[tool.Name]
	switch {
	case twice && former.Hash == tool.Hash:
		return
	case twice:
		o.torn = true
		if !known {
			if o.second == nil {
				o.second = make(map[string]string)
			}
			o.second[tool.Name] = tool.Hash
		}
		if former.Hash != hash {
			return
		}
	case !known && o.pins.Len()+o.fresh >= MaxPins:
		return
	case !known:
		o.fresh++
	}
	if !twice {
		o.names = append(o.names, tool.Name)
	}
	o.seen[tool.Name] = tool
}

// Change is a definition that differs from the one recorded before. Its members are hashes.
type Change struct{ Pinned, Before, Seen string }

// Noted is a tool to write.
type Noted struct {
	storage.ObservedTool
	Change     *Change // set by Pins.Due; nil: the tool is new
	Suspicious []string
}

// List holds the results of reading a list.
type List struct {
	// Due lists the tools to write, in the list's order.
	Due []Noted
	// Torn reports whether the list has two definitions under one tool name. With enforce, it must be read once more.
	Torn bool
}

// End ends the list. From now on the watch knows its tools.
func (o *Observation) End(now time.Time) List {
	list := List{Torn: o.torn}
	size := o.pins.size
	o.watch.mu.Lock()
	defer o.watch.mu.Unlock()
	for _, name := range o.names {
		tool := o.seen[name]
		stored, known := o.pins.byName[name]
		if known && stored.seen == tool.Hash {
			delete(o.watch.latest, name)
			continue
		}
		o.watch.see(o.pins, name, latest{hash: cmp.Or(o.second[name], tool.Hash), mirrors: mirrors(tool.Definition), readOnly: o.second[name] == "" && readOnly(tool.Definition)})
		due, copies := Noted{Suspicious: Suspicious(tool.Definition)}, 1
		switch {
		case !known:
			copies = 2 // pinned, and seen
		case tool.Hash == stored.hash && now.Sub(stored.changedAt) < cooling:
			continue // the change stays recorded for a while
		}
		limit := maxDefinition
		if size+copies*min(len(tool.Definition), limit) > maxKept {
			limit = restDefinition
		}
		kept := tool.kept(limit)
		size += copies * len(kept)
		due.ObservedTool = storage.ObservedTool{Name: name, Hash: tool.Hash, Definition: kept}
		list.Due = append(list.Due, due)
	}
	return list
}
