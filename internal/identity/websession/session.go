package websession

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
)

// Lifetime is the time for which a user stays logged in: a working day.
const Lifetime = 8 * time.Hour

// leeway is the time by which one node's clock may be ahead of another's.
const leeway = time.Minute

// Session names a user who is logged in with a browser, the client and the issuer.
type Session struct {
	ID             string `json:"id"` // random; forms are bound to it
	OrganizationID string `json:"org"`
	UserID         string `json:"user"`
	Issuer         string `json:"iss"`
	Client         string `json:"client"`
	Zone           string `json:"zone,omitempty"`  // the user's time zone; "": unknown
	Login          string `json:"login,omitempty"` // the login with the console, which ends with the session; "": none
	// ProvenAt is the time at which the identity provider asked the user who they are; zero: unknown.
	ProvenAt  time.Time `json:"auth_time,omitzero"`
	IssuedAt  time.Time `json:"iat"`
	ExpiresAt time.Time `json:"exp"`
}

// Sealer makes and opens the values that browsers keep for the gateway. It is safe for concurrent use.
type Sealer struct {
	sessions, forms, others *seal.TokenSealer
	site                    string
	now                     func() time.Time
}

// NewSealer makes a sealer for the gateway at site, its public URL: its values are valid only there. now may be nil.
func NewSealer(keys *seal.Keyring, site string, now func() time.Time) *Sealer {
	if now == nil {
		now = time.Now
	}
	return &Sealer{
		sessions: keys.Sealer("browser session"), forms: keys.Sealer("browser form"), others: keys.Sealer("browser memo"), site: site, now: now,
	}
}

// Start seals a new session. It sets the session's times, and its id unless it has one: that of the session before it, of
// the same user, so that forms in other tabs stay good.
func (s *Sealer) Start(session Session) (string, error) {
	now := s.now().UTC()
	session.IssuedAt, session.ExpiresAt = now, now.Add(Lifetime)
	if session.ID == "" {
		session.ID = rand.Text()
	}
	plain, err := json.Marshal(session)
	if err != nil {
		return "", fmt.Errorf("encoding session: %w", err)
	}
	return s.sessions.Seal(plain, []byte(s.site)), nil
}

// Open opens a session that has not expired. The caller must look up whether its user was revoked since.
func (s *Sealer) Open(sealed string) (Session, bool) {
	plain, err := s.sessions.Open(sealed, []byte(s.site))
	if err != nil {
		return Session{}, false
	}
	var session Session
	if json.Unmarshal(plain, &session) != nil {
		return Session{}, false
	}
	now := s.now()
	good := session.ID != "" && session.OrganizationID != "" && session.UserID != "" &&
		now.Before(session.ExpiresAt) && !session.IssuedAt.After(now.Add(leeway)) && session.ExpiresAt.Sub(session.IssuedAt) <= Lifetime
	if !good {
		return Session{}, false
	}
	return session, true
}

// FormToken makes the token of a form on a page that the session's user sees. action names the effect of the form.
func (s *Sealer) FormToken(session Session, action string) string {
	return s.forms.Seal(nil, s.formAD(session, action))
}

// CheckForm reports whether a form was sent from a page that this session's user saw (CWE-352).
func (s *Sealer) CheckForm(token string, session Session, action string) bool {
	_, err := s.forms.Open(token, s.formAD(session, action))
	return err == nil
}

// formAD returns the associated data of a form token. Neither an id nor an action holds a NUL.
func (s *Sealer) formAD(session Session, action string) []byte {
	return []byte(s.site + "\x00" + session.ID + "\x00" + action)
}

// SealMemo seals a value that a browser keeps for a while under a name, such as an attempt to log in.
func (s *Sealer) SealMemo(name string, memo []byte) string {
	return s.others.Seal(memo, s.memoAD(name))
}

// OpenMemo opens a value that SealMemo sealed under that name. The memo itself must say how long it is valid.
func (s *Sealer) OpenMemo(name, sealed string) (memo []byte, ok bool) {
	memo, err := s.others.Open(sealed, s.memoAD(name))
	return memo, err == nil
}

func (s *Sealer) memoAD(name string) []byte { return []byte(s.site + "\x00" + name) }
