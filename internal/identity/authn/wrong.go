package authn

import (
	"crypto/sha256"
	"time"

	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/token"
)

// TooManyFailures refuses a credential without checking it, because too many were wrong.
type TooManyFailures struct{ Wait time.Duration }

func (*TooManyFailures) Error() string { return "too many wrong credentials" }

// WrongToken counts a refused token, and returns *TooManyFailures when the peer had too many. Valid tokens are never
// refused for it: unlike a look-up, checking a signature tells the guesser nothing.
func (a *Authenticator) WrongToken(raw, remote string, refusal error) error {
	if token.IsOver(refusal) {
		return nil // clients have to learn of it, and renew it
	}
	return a.memory.wrongCredential(bruteforce.Attempt{From: bruteforce.Address(remote), Credential: sha256.Sum256([]byte(raw))})
}

func (m *Memory) mayTry(attempt bruteforce.Attempt) error {
	if wait := m.wrong.Wait(attempt); wait > 0 {
		return &TooManyFailures{wait}
	}
	return nil
}

func (m *Memory) wrongCredential(attempt bruteforce.Attempt) error {
	if wait := m.wrong.Failed(attempt); wait > 0 {
		return &TooManyFailures{wait}
	}
	return nil
}
