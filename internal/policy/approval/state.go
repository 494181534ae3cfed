package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/storage"
)

// Sealer encrypts and authenticates; seal.TokenSealer is one. Its text must use the base64url alphabet only. Open fails
// with storage.ErrUnavailable when the key cannot be looked up at the moment: the text may still be good.
type Sealer interface {
	Seal(plaintext, ad []byte) string
	Open(sealed string, ad []byte) ([]byte, error)
}

// ErrState says that a text is not a state of this call: it was not made here, was altered, has expired, or was made
// for another caller, server or session. The error does not tell the cases apart.
var ErrState = errors.New("not a state of this call")

// Mode is the way in which the user was asked.
type Mode byte

// Modes of a State.
const (
	// ModeForm says that the client asks its user, and that its next request brings the answer.
	ModeForm Mode = iota + 1
	// ModePage says that the user was sent to the gateway's page.
	ModePage
	// ModeProof says that the gateway has no more questions, and that the upstream's own questions are under way.
	ModeProof
)

// State holds the data that a client of revision 2026-07-28 carries between the rounds of a held call, as its
// requestState.
type State struct {
	Mode       Mode
	ApprovalID string // uuid
	// Round is the round of the call, see Call; "" or a uuid.
	Round     string
	ExpiresAt time.Time // in whole seconds
	// Upstream is the upstream's own requestState. HasUpstream tells an empty one from none.
	Upstream    string
	HasUpstream bool
}

// Asker identifies the caller of a call, and the server and session.
type Asker struct {
	Organization, User string
	Issuer, Client     string // the client's external id, and who gave it; Client is "" for none
	Server             string
	Session            string // the upstream's session id, for questions in revisions that have sessions; else ""
}

// States seals and opens the texts that clients carry. It is safe for concurrent use when its Sealer is.
type States struct {
	sealer Sealer
	// askPrefix and statePrefix tell the gateway's own texts from an upstream's.
	askPrefix, statePrefix string
	now                    func() time.Time
}

// NewStates makes States for the gateway at an address. The address matters because an upstream may be another gateway
// that asks too. A nil now is time.Now.
func NewStates(s Sealer, publicURL string, now func() time.Time) *States {
	if now == nil {
		now = time.Now
	}
	sum := sha256.Sum256([]byte(publicURL))
	own := hex.EncodeToString(sum[:6])
	return &States{sealer: s, askPrefix: "gw-" + own + "-", statePrefix: "dw1." + own + ".", now: now}
}

const (
	// stateHead is the length of the part before the upstream's state: mode, flags, expiry, two ids.
	stateHead = 1 + 1 + 8 + 16 + 16
	// maxAsk is the greatest length of a text that is opened as the id of a question.
	maxAsk = 256
)

const (
	flagRound = 1 << iota
	flagUpstream
)

// IsState reports whether a requestState claims to come from this gateway.
func (s *States) IsState(text string) bool { return strings.HasPrefix(text, s.statePrefix) }

// Seal makes the requestState for the asker.
func (s *States) Seal(st State, who Asker) (string, error) {
	approval, err := uuid.Parse(st.ApprovalID)
	if err != nil {
		return "", errors.New("sealing a state: its approval has no uuid")
	}
	var round uuid.UUID
	flags := byte(0)
	if st.Round != "" {
		if round, err = uuid.Parse(st.Round); err != nil {
			return "", errors.New("sealing a state: its round is no uuid")
		}
		flags |= flagRound
	}
	if st.HasUpstream {
		flags |= flagUpstream
	}
	p := make([]byte, 0, stateHead+len(st.Upstream))
	p = append(p, byte(st.Mode), flags)
	p = binary.BigEndian.AppendUint64(p, uint64(st.ExpiresAt.Unix()))
	p = append(append(p, approval[:]...), round[:]...)
	p = append(p, st.Upstream...)
	return s.statePrefix + s.sealer.Seal(p, who.bound("mcp request state")), nil
}

// Open reads a requestState that a client sent. Errors: ErrState, and storage.ErrUnavailable when the key of the seal
// cannot be looked up at the moment.
func (s *States) Open(text string, who Asker) (State, error) {
	sealed, ours := strings.CutPrefix(text, s.statePrefix)
	if !ours {
		return State{}, ErrState
	}
	p, err := s.sealer.Open(sealed, who.bound("mcp request state"))
	if errors.Is(err, storage.ErrUnavailable) {
		return State{}, fmt.Errorf("opening a state: %w", err)
	}
	if err != nil || len(p) < stateHead {
		return State{}, ErrState
	}
	st := State{
		Mode: Mode(p[0]), ExpiresAt: time.Unix(int64(binary.BigEndian.Uint64(p[2:])), 0).UTC(),
		ApprovalID: uuid.UUID(p[10:26]).String(), Upstream: string(p[stateHead:]), HasUpstream: p[1]&flagUpstream != 0,
	}
	if p[1]&flagRound != 0 {
		st.Round = uuid.UUID(p[26:42]).String()
	}
	if st.Mode < ModeForm || st.Mode > ModeProof || p[1]&^(flagRound|flagUpstream) != 0 || !st.ExpiresAt.After(s.now()) {
		return State{}, ErrState
	}
	return st, nil
}

// Ask makes the id of the request to the client that asks for the approval with the given id. Any process with the key
// can tell from the id which approval an answer belongs to, so there is no table of open questions.
func (s *States) Ask(approvalID string, who Asker) (string, error) {
	id, err := uuid.Parse(approvalID)
	if err != nil {
		return "", errors.New("asking for an approval: it has no uuid")
	}
	return s.askPrefix + s.sealer.Seal(id[:], who.bound("mcp ask")), nil
}

// Asked reports whether the id of a response claims to be one that Ask made. id is as it stands in the message; its
// spelling does not matter.
func (s *States) Asked(id []byte) bool {
	return strings.HasPrefix(jsonrpc.IDValue(id), `"`+s.askPrefix)
}

// Answered returns the approval that a response belongs to, from the id of its request. The errors are those of Open.
func (s *States) Answered(id string, who Asker) (approvalID string, err error) {
	sealed, ours := strings.CutPrefix(id, s.askPrefix)
	if !ours || len(sealed) > maxAsk {
		return "", ErrState
	}
	p, err := s.sealer.Open(sealed, who.bound("mcp ask"))
	if errors.Is(err, storage.ErrUnavailable) {
		return "", fmt.Errorf("opening the id of an ask: %w", err)
	}
	if err != nil || len(p) != 16 {
		return "", ErrState
	}
	return uuid.UUID(p).String(), nil
}

// bound returns the asker as associated data. Lengths go first, so that no two askers share a text.
func (a Asker) bound(kind string) []byte {
	out := make([]byte, 0, 192)
	for _, field := range [...]string{kind, a.Organization, a.User, a.Issuer, a.Client, a.Server, a.Session} {
		out = binary.AppendUvarint(out, uint64(len(field)))
		out = append(out, field...)
	}
	return out
}
