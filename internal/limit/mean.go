package limit

import (
	"sync"
	"time"
)

// Means remembers how many tokens of output the aliases of organizations answered with in the last hour. It is safe
// for concurrent use. Its zero value is not ready; see [NewMeans].
type Means struct {
	now   func() time.Time
	start time.Time

	mu     sync.Mutex
	known  map[meanOf]*mean
	forgot int64 // the piece in which forget ran last: it finds nothing more before the next one
}

type meanOf struct{ organization, of string }

// The hour is counted in pieces; the oldest counts until all of it has passed.
const (
	meanPiece  = 5 * time.Minute
	meanPieces = int64(time.Hour/meanPiece) + 1
	maxMeans   = 10_000
)

// mean is a ring of pieces. Each says which one it is, so that old ones need no clearing. sum and calls are those of the
// hour before the end of the piece upTo: they are asked for by every call and change with one number of one piece.
type mean struct {
	pieces     [meanPieces]struct{ piece, sum, calls int64 }
	upTo       int64
	sum, calls int64
}

// NewMeans makes an empty memory. now must give a monotonic reading, as time.Now, its default, does.
func NewMeans(now func() time.Time) *Means {
	if now == nil {
		now = time.Now
	}
	return &Means{now: now, start: now(), known: make(map[meanOf]*mean)}
}

func (m *Means) piece() int64 { return int64(max(m.now().Sub(m.start), 0)/meanPiece) + meanPieces }

// Add remembers the output of one call, in tokens for each choice. of is an alias, or whatever else answers.
func (m *Means) Add(organization, of string, tokens int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	piece, key := m.piece(), meanOf{organization, of}
	a := m.known[key]
	if a == nil {
		if len(m.known) >= maxMeans && m.forgot < piece {
			m.forget(piece)
			m.forgot = piece
		}
		if len(m.known) >= maxMeans {
			return // it keeps the first guess, which is only a reservation
		}
		a = new(mean)
		m.known[key] = a
	}
	a.last(piece)
	p := &a.pieces[piece%meanPieces]
	if p.piece != piece {
		p.piece, p.sum, p.calls = piece, 0, 0
	}
	tokens = min(max(tokens, 0), 1<<40)
	p.sum, a.sum = p.sum+tokens, a.sum+tokens
	p.calls++
	a.calls++
}

// Of is the mean of the last hour, rounded up; FirstMean when there was none.
func (m *Means) Of(organization, of string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.known[meanOf{organization, of}]
	if a == nil {
		return FirstMean
	}
	sum, calls := a.last(m.piece())
	if calls == 0 {
		return FirstMean
	}
	return (sum + calls - 1) / calls
}

// last is the sum and the calls of the hour that ends with a piece, no earlier one than it was asked for before.
func (a *mean) last(piece int64) (sum, calls int64) {
	if a.upTo != piece {
		a.upTo, a.sum, a.calls = piece, 0, 0
		for i := range a.pieces {
			if p := &a.pieces[i]; piece-p.piece < meanPieces {
				a.sum, a.calls = a.sum+p.sum, a.calls+p.calls
			}
		}
	}
	return a.sum, a.calls
}

// forget drops what has answered nothing in the last hour.
func (m *Means) forget(piece int64) {
	for key, a := range m.known {
		if _, calls := a.last(piece); calls == 0 {
			delete(m.known, key)
		}
	}
}
