// Package session makes the session ids that MCP clients hold: the upstream's own id and the result of initialize,
// sealed together and bound to those who may use it. There is no session table; any node that has the key can open an
// id. A session is never authentication: every request is authorised again.
package session

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Sealer encrypts and authenticates, like seal.TokenSealer. Its text must be visible ASCII without blanks
// (base64url). Open fails with storage.ErrUnavailable when the key cannot be looked up at the moment: the text may be
// valid.
type Sealer interface {
	Seal(plaintext, ad []byte) string
	Open(sealed string, ad []byte) ([]byte, error)
}

// MaxUpstreamID is the maximum length of an upstream session id that is sealed, in bytes. It keeps sealed ids below 1
// KiB, which every client and intermediary accepts.
const MaxUpstreamID = 600

// maxSealed is the maximum length of a text that is worth opening: no result of Seal comes near it.
const maxSealed = 1200

// maxVersion bounds the protocol version's text; a revision has 10 characters.
const maxVersion = 32

var (
	// ErrUnknownSession says that the id was not made here, was altered, or is not this caller's on this server. The
	// caller gets 404, so that the client initializes anew; nothing tells the cases apart.
	ErrUnknownSession = errors.New("session is not known")
	// ErrUpstreamID says that the upstream gave a session id that is not 1 to 600 characters of visible ASCII (0x21
	// to 0x7E). For the caller it is an upstream error.
	ErrUpstreamID = errors.New("upstream's session id is not usable")
)

// Binding names the caller who may use a session, and the server. All fields are authenticated with the seal and none is
// in the id: a field that differs makes the id unreadable.
type Binding struct {
	Organization, User string
	Issuer, Agent      string // the client, and who gave it its id; Agent is "" for none
	Server             string
}

// Session holds the contents of a session id.
type Session struct {
	Upstream string // the upstream's own id, or as Own says
	// Own says that the upstream has no sessions, and never sees this one. The gateway began it to remember the
	// result of initialize; Upstream is then a random text.
	Own bool
	// Guided says that the gateway began it because its user had not connected their account. Upstream then names a
	// storage.Conversation, which knows the upstream's session once there is one.
	Guided          bool
	ProtocolVersion string // as the initialize result has it; at most 32 bytes
	ElicitForm      bool   // the client declared elicitation in form mode
	ElicitURL       bool   // and in url mode
	IssuedAt        time.Time
}

// Begin makes a session of the gateway's own.
func Begin() Session { return Session{Upstream: rand.Text(), Own: true} }

// BeginGuided makes a session for a client whose user has not connected their account.
func BeginGuided() Session { return Session{Upstream: rand.Text(), Guided: true} }

// Forwarded returns the session id that the upstream gets; "" for none, or for one that the upstream has under another name.
func (s Session) Forwarded() string {
	if s.Own || s.Guided {
		return ""
	}
	return s.Upstream
}

// Codec seals and opens session ids. It is safe for concurrent use when its Sealer is.
type Codec struct {
	sealer Sealer
	now    func() time.Time
}

// New makes a codec. now is the clock of IssuedAt; nil means time.Now.
func New(s Sealer, now func() time.Time) *Codec {
	if now == nil {
		now = time.Now
	}
	return &Codec{sealer: s, now: now}
}

// layout is the first byte of the plaintext; another layout gets another number.
const layout = 1

const (
	flagForm = 1 << iota
	flagURL
	flagOwn
	flagGuided
)

// Seal makes the id that b's client gets. s.IssuedAt is set to now, in whole seconds. It fails with [ErrUpstreamID].
func (c *Codec) Seal(s Session, b Binding) (string, error) {
	if !visible(s.Upstream) || len(s.Upstream) > MaxUpstreamID {
		return "", ErrUpstreamID
	}
	if len(s.ProtocolVersion) > maxVersion {
		return "", errors.New("sealing a session: protocol version is longer than 32 bytes")
	}
	flags := byte(0)
	if s.ElicitForm {
		flags |= flagForm
	}
	if s.ElicitURL {
		flags |= flagURL
	}
	if s.Own {
		flags |= flagOwn
	}
	if s.Guided {
		flags |= flagGuided
	}
	p := make([]byte, 0, 11+len(s.ProtocolVersion)+len(s.Upstream))
	p = append(p, layout, flags)
	p = binary.BigEndian.AppendUint64(p, uint64(c.now().Unix()))
	p = append(p, byte(len(s.ProtocolVersion)))
	p = append(p, s.ProtocolVersion...)
	p = append(p, s.Upstream...)
	return c.sealer.Seal(p, b.associated()), nil
}

// Open opens an id that a client sent, for b's caller and server. It fails with [ErrUnknownSession], also when the id
// has no upstream session in it, and with storage.ErrUnavailable when this cannot be decided at the moment.
func (c *Codec) Open(id string, b Binding) (Session, error) {
	if !visible(id) || len(id) > maxSealed {
		return Session{}, ErrUnknownSession
	}
	p, err := c.sealer.Open(id, b.associated())
	if errors.Is(err, storage.ErrUnavailable) {
		return Session{}, fmt.Errorf("opening a session id: %w", err)
	}
	if err != nil || len(p) < 11 || p[0] != layout || p[1]&^(flagForm|flagURL|flagOwn|flagGuided) != 0 {
		return Session{}, ErrUnknownSession
	}
	rest, n := p[11:], int(p[10])
	if n > maxVersion || n > len(rest) {
		return Session{}, ErrUnknownSession
	}
	s := Session{
		Upstream:        string(rest[n:]),
		ProtocolVersion: string(rest[:n]),
		ElicitForm:      p[1]&flagForm != 0,
		ElicitURL:       p[1]&flagURL != 0,
		Own:             p[1]&flagOwn != 0,
		Guided:          p[1]&flagGuided != 0,
		IssuedAt:        time.Unix(int64(binary.BigEndian.Uint64(p[2:])), 0).UTC(),
	}
	if !visible(s.Upstream) || len(s.Upstream) > MaxUpstreamID {
		return Session{}, ErrUnknownSession
	}
	return s, nil
}

func (b Binding) associated() []byte { return b.bound("mcp session") }

// bound returns the binding of a sealed value as associated data. Lengths come first: no two bindings have the same
// text.
func (b Binding) bound(kind string) []byte {
	out := make([]byte, 0, 160)
	for _, field := range [...]string{kind, b.Organization, b.User, b.Issuer, b.Agent, b.Server} {
		out = binary.AppendUvarint(out, uint64(len(field)))
		out = append(out, field...)
	}
	return out
}

// visible reports whether s is one or more characters of visible ASCII, which MCP allows in a session id.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return s != ""
}
