package logins

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
)

// maxProven bounds the clients that Guesses remembers.
const maxProven = 10_000

// Guesses bounds how often secrets and keys of clients can be guessed at the token and revocation endpoints. It is safe
// for concurrent use.
type Guesses struct {
	wrong *bruteforce.Guesses

	mu sync.Mutex
	// proven holds a mark of the address from which a client last proved itself: whoever guesses from that address, such as
	// that of a proxy, does not lock the client out.
	proven map[string]uint64
}

// NewGuesses makes an empty Guesses. now must return a monotonic reading, as time.Now, its default, does.
func NewGuesses(now func() time.Time) *Guesses {
	return &Guesses{wrong: bruteforce.New(now), proven: make(map[string]uint64)}
}

// Try lets a client that came from a peer ("host:port") prove itself. It returns the time that the client has to wait when
// too many proofs were wrong; the client and the error of prove do not count then.
func (g *Guesses) Try(p *authserver.Proof, remote string, prove func() (*authserver.Client, error)) (client *authserver.Client, wait time.Duration, err error) {
	if p.Secret.Empty() && p.Assertion.Empty() { // a public client
		client, err = prove()
		return client, 0, err
	}
	a := attemptOf(p, remote)
	mark := g.wrong.Mark(a.From)
	// An assertion is never refused for others' guesses: unlike a look-up, checking a signature tells nothing.
	if p.Assertion.Empty() && !g.provenFrom(p.ClientID, mark) {
		if wait := g.wrong.Wait(a); wait > 0 {
			return nil, wait, nil
		}
	}
	client, err = prove()
	switch {
	case errors.Is(err, authserver.ErrNoClient):
		if wait := g.wrong.Failed(a); wait > 0 {
			return nil, wait, nil
		}
	case err == nil && p.Assertion.Empty():
		g.remember(p.ClientID, mark)
	}
	return client, 0, err
}

func attemptOf(p *authserver.Proof, remote string) bruteforce.Attempt {
	digest := sha256.New()
	for _, text := range [...]string{p.ClientID, p.Secret.Reveal(), p.Assertion.Reveal()} {
		_, _ = digest.Write(binary.AppendUvarint(nil, uint64(len(text))))
		_, _ = digest.Write([]byte(text))
	}
	return bruteforce.Attempt{From: bruteforce.Address(remote), Prefix: p.ClientID, Credential: [sha256.Size]byte(digest.Sum(nil))}
}

func (g *Guesses) provenFrom(client string, mark uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proven[client] == mark
}

func (g *Guesses) remember(client string, mark uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.proven[client]; !known && len(g.proven) >= maxProven {
		for other := range g.proven { // any one: it only loses the privilege
			delete(g.proven, other)
			break
		}
	}
	g.proven[client] = mark
}

// TooManyGuesses returns the answer to a client that has to wait.
func TooManyGuesses() *authserver.Error {
	return &authserver.Error{Code: "temporarily_unavailable", Description: "too many wrong client credentials", Status: http.StatusTooManyRequests}
}
