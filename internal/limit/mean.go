package limit

import (
	"math"
	"sync"
	"time"
)

// Means remembers how many tokens of output the aliases of organizations answered with in the last hour, and how fast. It is
// safe for concurrent use. Its zero value is not ready; see [NewMeans].
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

// Rates of output, in tokens of one choice in a second: what is taken for an alias that has answered nothing in the last hour,
// and what no model exceeds.
const (
	FirstRate = 100
	MostRate  = 5_000
)

// mean is a ring of pieces. Each says which one it is, so that old ones need no clearing. The tally beside them is that of the
// hour before the end of the piece upTo: it is asked for by every call and changes with one of one piece.
type mean struct {
	pieces [meanPieces]struct {
		piece int64
		made
	}
	upTo int64
	made
}

// made is what some calls made, and the time that it took.
type made struct {
	sum, calls int64
	took       time.Duration
}

func (a *made) add(b made) {
	a.sum, a.calls, a.took = a.sum+b.sum, a.calls+b.calls, a.took+b.took
}

// NewMeans makes an empty memory. now must give a monotonic reading, as time.Now, its default, does.
func NewMeans(now func() time.Time) *Means {
	if now == nil {
		now = time.Now
	}
	return &Means{now: now, start: now(), known: make(map[meanOf]*mean)}
}

func (m *Means) piece() int64 { return int64(max(m.now().Sub(m.start), 0)/meanPiece) + meanPieces }

// Add remembers the output of one call, in tokens for each choice, and the time that it took; 0 where nobody asks for the rate.
// of is an alias, or whatever else answers.
func (m *Means) Add(organization, of string, tokens int64, took time.Duration) {
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
		p.piece, p.made = piece, made{}
	}
	one := made{sum: min(max(tokens, 0), 1<<40), calls: 1, took: min(max(took, 0), time.Hour)}
	p.add(one)
	a.add(one)
}

// Of is the mean of the last hour, rounded up; FirstMean when there was none.
func (m *Means) Of(organization, of string) int64 {
	a := m.hour(organization, of)
	if a.calls == 0 {
		return FirstMean
	}
	return (a.sum + a.calls - 1) / a.calls
}

// In is the tokens that a choice makes in a time, by the mean rate of the last hour.
func (m *Means) In(took time.Duration, organization, of string) int64 {
	a := m.hour(organization, of)
	rate := float64(FirstRate)
	if a.took > 0 {
		rate = min(float64(a.sum)/a.took.Seconds(), MostRate)
	}
	return int64(math.Ceil(rate * max(took, 0).Seconds()))
}

// hour is what was answered in the last hour.
func (m *Means) hour(organization, of string) made {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.known[meanOf{organization, of}]
	if a == nil {
		return made{}
	}
	return a.last(m.piece())
}

// last is what was answered in the hour that ends with a piece, no earlier one than it was asked for before.
func (a *mean) last(piece int64) made {
	if a.upTo != piece {
		a.upTo, a.made = piece, made{}
		for i := range a.pieces {
			if p := &a.pieces[i]; piece-p.piece < meanPieces {
				a.add(p.made)
			}
		}
	}
	return a.made
}

// forget drops what has answered nothing in the last hour.
func (m *Means) forget(piece int64) {
	for key, a := range m.known {
		if a.last(piece).calls == 0 {
			delete(m.known, key)
		}
	}
}
