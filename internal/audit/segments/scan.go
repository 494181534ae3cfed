package segments

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// Found holds the contents of a segment's file.
type Found struct {
	Node, Segment string
	Header        *format.Header
	Keys          *Keys
	Chains        map[string]*ProvenChain
	Checkpoint    *storage.AuditCheckpoint // the last one
	Final         bool
	Records       int
	Size          int64 // of the complete lines
	Torn          int64 // bytes after them
	parser        *format.Parser
}

// Scan reads the segment in a file, see ScanFrom.
func Scan(path string, keys *Keys) (*Found, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	number, _ := strings.CutSuffix(filepath.Base(path), Suffix)
	return ScanFrom(f, filepath.Base(filepath.Dir(path)), number, keys)
}

// ScanFrom reads a segment. It skips lines that are malformed, and lines that the gateway did not write as far as keys
// can show. Such lines are kept, and a verification finds them.
func ScanFrom(r io.Reader, node, segment string, keys *Keys) (*Found, error) {
	all := &Found{Node: node, Segment: segment, Keys: keys, Chains: make(map[string]*ProvenChain), parser: former.NewParser()}
	lines := format.NewLines(r)
	for {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			all.Size = lines.Offset
			all.Torn, err = lines.Torn()
			return all, err
		}
		if err != nil {
			return nil, err
		}
		if l, err := all.parser.Parse(text); err == nil {
			all.take(&l)
		}
	}
}

func (all *Found) take(l *format.Line) {
	switch {
	case l.Header != nil && all.Header == nil:
		all.Header = l.Header
	case l.Header != nil:
	case l.Checkpoint != nil:
		if !all.Keys.Signed(l.Checkpoint) {
			return
		}
		all.Checkpoint = l.Checkpoint
		c, err := format.ReadCheckpoint(l.Checkpoint.Data)
		all.Final = err == nil && c.Final
	default:
		c := all.Chains[string(l.Record.Organization)]
		if c == nil {
			c = NewProvenChain(string(l.Record.Organization), all.Node, all.Segment)
		}
		if _, sealed := all.Keys.Proves(c, &l.Record, all.Keys.Bare(all.Header)); sealed {
			all.Records++
			all.Chains[c.OrganizationID] = c
		}
	}
}
