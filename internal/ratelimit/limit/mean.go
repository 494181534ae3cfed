package limit

import (
	"math"
	"sync"
	"time"
)

// Means remembers the output of the last hour for each alias of each organization: how many tokens, and how fast. It is
// safe for concurrent use. Its zero value is not ready; see [NewMeans].
type Means struct {
	now   func() time.Time
	start time.Time

	mu     sync.Mutex
	known  map[meanOf]*mean
	forgot int64 // the piece in which forget ran last; a second run in the same piece finds nothing
}

type meanOf struct{ organization, of string }

// The hour is divided into pieces. The oldest piece counts until all of it has passed.
const (
	meanPiece  = 5 * time.Minute
	meanPieces = int64(time.Hour/meanPiece) + 1
	maxMeans   = 10_000
)

// Output rates, in tokens per second for one choice: the default for an alias without answers in the last hour, and a
// rate that no model exceeds.
const (
	FirstRate = 100
	MostRate  = 5_000
)

// mean holds a ring of pieces. Each piece carries its number, so that old ones need no clearing. The tally beside the
// ring covers the hour before the end of the piece upTo. It exists because every call asks for it, and one call changes
// only one piece.
type mean struct {
	pieces [meanPieces]struct {
		piece int64
		made
	}
	upTo int64
	made
}

// made holds the output of some calls and the time that it took.
type made struct {
	sum, calls int64
	took       time.Duration
}

func (a *made) add(b made) {
	a.sum, a.calls, a.took = a.sum+b.sum, a.calls+b.calls, a.took+b.took
}

// NewMeans makes an empty memory. now must return a monotonic reading, as time.Now, its default, does.
func NewMeans(now func() time.Time) *Means {
	if now == nil {
		now = time.Now
	}
	return &Means{now: now, start: now(), known: make(map[meanOf]*mean)}
}

func (m *Means) piece() int64 { return int64(max(m.now().Sub(m.start), 0)/meanPiece) + meanPieces }

// Add records the output of one call in tokens per choice, and the time that it took. The time is 0 where nobody asks
// for the rate. of is an alias or another source of answers.
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
			return // the entry keeps the first guess, which is only a reservation
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

// Of returns the mean output of the last hour, rounded up. It returns FirstMean when there was no output.
func (m *Means) Of(organization, of string) int64 {
	a := m.hour(organization, of)
	if a.calls == 0 {
		return FirstMean
	}
	return (a.sum + a.calls - 1) / a.calls
}

// In returns the tokens that one choice makes in a given time, at the mean rate of the last hour.
func (m *Means) In(took time.Duration, organization, of string) int64 {
	a := m.hour(organization, of)
	rate := float64(FirstRate)
	if a.took > 0 {
		rate = min(float64(a.sum)/a.took.Seconds(), MostRate)
	}
	return int64(math.Ceil(rate * max(took, 0).Seconds()))
}

// hour returns the output of the last hour.
func (m *Means) hour(organization, of string) made {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.known[meanOf{organization, of}]
	if a == nil {
		return made{}
	}
	return a.last(m.piece())
}

// last returns the output of the hour that ends with a piece. Callers must not pass an earlier piece than before.
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

// forget drops the entries without answers in the last hour.
func (m *Means) forget(piece int64) {
	for key, a := range m.known {
		if a.last(piece).calls == 0 {
			delete(m.known, key)
		}
	}
}
