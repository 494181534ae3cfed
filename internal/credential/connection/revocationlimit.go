package connection

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
)

// turns limits the revocations sent to providers at one time. An organization whose provider hangs delays only itself,
// and keeps no more in memory than its share. newTurns makes one.
type turns struct {
	all chan struct{}

	mu    sync.Mutex
	ofOne map[string]*share // keys are organizations
}

// share is the part of one organization.
type share struct {
	reserved map[string]struct{} // ids of revocations that are being sent or wait
	inside   chan struct{}
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, revokers), ofOne: make(map[string]*share)}
}

// reserve notes that a revocation is to be sent. It returns false when it is reserved already, or when the organization
// has too many. A caller that gets true must call release.
func (t *turns) reserve(organization, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ofOne[organization]
	if s == nil {
		s = &share{reserved: make(map[string]struct{}), inside: make(chan struct{}, revokersOfOne)}
		t.ofOne[organization] = s
	}
	if _, is := s.reserved[id]; is || len(s.reserved) == revokeShare {
		return false
	}
	s.reserved[id] = struct{}{}
	return true
}

func (t *turns) release(organization, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ofOne[organization]
	if delete(s.reserved, id); len(s.reserved) == 0 {
		delete(t.ofOne, organization)
	}
}

// enter waits for the turn of a reserved revocation. ok is false when ctx ends first. A caller that gets a turn must
// call leave.
func (t *turns) enter(ctx context.Context, organization string) (leave func(), ok bool) {
	t.mu.Lock()
	own := t.ofOne[organization].inside
	t.mu.Unlock()
	for _, turn := range []chan struct{}{own, t.all} {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			if turn == t.all {
				<-own
			}
			return nil, false
		}
	}
	return func() { <-t.all; <-own }, true
}

const (
	// slowRevocation is the time after which a provider that accepts nothing takes too long: others wait for its turn.
	slowRevocation = revokeDeadline / 2
	// silence is the time for which such a provider is not asked again.
	silence = time.Minute
)

// errSilent: the provider was not asked, because it has just kept another revocation waiting for nothing.
var errSilent = errors.New("the provider has just kept another revocation waiting for nothing")

// silences remembers the endpoints that took long and accepted nothing. Without it, a thousand revocations at one
// provider that hangs, or refuses slowly, would take the organization's turns for hours, also from its other providers.
// The zero value is ready.
type silences struct {
	endpoints expiring.Map[endpointOf, struct{}]
}

type endpointOf struct{ organization, url string }

func (s *silences) has(e endpointOf, now time.Time) bool {
	_, ok := s.endpoints.Get(e, now)
	return ok
}

// note records the end of a request that was not accepted.
func (s *silences) note(e endpointOf, began, now time.Time) {
	if now.Sub(began) >= slowRevocation {
		s.endpoints.Set(e, struct{}{}, now.Add(silence), now)
	}
}
