package query

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// Position is the place of a record in a log that is read newest first. It stays where it is while the log grows, unlike
// the number of a page.
type Position struct {
	At            time.Time
	Node, Segment string
	Sequence      int64
}

const (
	positionHead = 16 // bytes of the time and the sequence
	// MaxPosition is more than the length of a position's text.
	MaxPosition = 512
)

// ErrPosition reports a text that is no position.
var ErrPosition = errors.New("not a cursor of this log")

var positionText = base64.RawURLEncoding.Strict()

// String returns the text of the position, which is opaque to clients.
func (p *Position) String() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.At.UnixNano()))
	b = binary.BigEndian.AppendUint64(b, uint64(p.Sequence))
	return positionText.EncodeToString(append(b, p.Node+"/"+p.Segment...))
}

// ParsePosition reads the text of a position. It needs no proof of its origin: a position selects nothing, it only says
// where to go on.
func ParsePosition(text string) (*Position, error) {
	b, err := positionText.DecodeString(text)
	if err != nil || len(b) < positionHead || strings.ContainsAny(text, "\r\n") { // which the decoder leaves out
		return nil, ErrPosition
	}
	node, segment, ok := strings.Cut(string(b[positionHead:]), "/")
	if !ok {
		return nil, ErrPosition
	}
	return &Position{
		At: time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC(), Node: node, Segment: segment,
		Sequence: int64(binary.BigEndian.Uint64(b[8:])),
	}, nil
}

// compare orders positions from the oldest one.
func (p *Position) compare(q *Position) int {
	return cmp.Or(p.At.Compare(q.At), cmp.Compare(p.Node, q.Node), cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.Sequence, q.Sequence))
}

func (t *timed) position() Position { return Position{t.at, t.Node, t.Segment, t.Sequence} }
