package backup

import (
	"bytes"
	"path"
	"strings"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// cutter ends copies of journals where the copy of the store ends. The journals are read later than the store, and a
// checkpoint that came in between covers records of the store itself that its copy has not. A verification of what is restored
// would say that somebody has removed those. So a journal ends before the first such checkpoint, as if the gateway had been
// killed at that moment. Whatever stands behind it was written after the store was copied.
type cutter struct {
	ends map[chain]int64 // the last records of the store itself in its copy
	cut  map[string]bool // nodes whose journals were ended
}

// chain names the chain of the store's own records of a node and an organization.
type chain struct{ node, organization string }

// newCutter returns a cutter for a copy of the store that has these chains.
func newCutter(chains []storage.AuditChain) *cutter {
	c := &cutter{ends: make(map[chain]int64), cut: make(map[string]bool)}
	for i := range chains {
		if chains[i].Segment == storage.AuditStoreSegment {
			c.ends[chain{chains[i].Node, chains[i].OrganizationID}] = chains[i].Sequence
		}
	}
	return c
}

// segment returns the part of a journal's file that goes into the archive, and false when the file does not. The files of a
// node have to come in the order of their numbers. name is that of a file below the folder of the journals.
func (c *cutter) segment(name string, text []byte) (kept []byte, ok bool) {
	node, file := path.Split(name)
	node = strings.TrimSuffix(node, "/")
	if _, ok := segments.Number(strings.TrimSuffix(file, segments.Suffix)); !ok || !segments.IsNode(node) {
		return text, true // it is another file
	}
	if c.cut[node] {
		return nil, false
	}
	parser := former.NewParser()
	for lines, end := format.NewLines(bytes.NewReader(text)), int64(0); ; end = lines.Offset {
		line, err := lines.Next()
		if err != nil { // it is the end, or what is no line
			return text, true
		}
		l, err := parser.Parse(line)
		if err != nil || l.Checkpoint == nil {
			continue // a verification reports what is no line
		}
		said, err := format.ReadCheckpoint(l.Checkpoint.Data)
		if err == nil && c.beyond(node, said.Chains) {
			c.cut[node] = true
			return text[:end], true
		}
	}
}

// beyond reports whether a checkpoint covers records of the store itself that its copy has not.
func (c *cutter) beyond(node string, heads []format.Head) bool {
	for _, head := range heads {
		if head.Segment == storage.AuditStoreSegment && head.Sequence > c.ends[chain{node, head.Organization}] {
			return true
		}
	}
	return false
}
