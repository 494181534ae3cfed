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

	"github.com/durward-gateway/durward/internal/jsonrpc"
	"github.com/durward-gateway/durward/storage"
)

// Sealer encrypts and authenticates; seal.TokenSealer is one. Its text must be of base64url's alphabet. Open fails with
// storage.ErrUnavailable when the key cannot be looked up at the moment: the text may be good.
type Sealer interface {
	Seal(plaintext, ad []byte) string
	Open(sealed string, ad []byte) ([]byte, error)
}

// ErrState: the text was not made here, was altered, is over, or was made for another caller, server or session. Nothing
// tells the cases apart.
var ErrState = errors.New("not a state of this call")

// Mode is how the user was asked.
type Mode byte

// Modes of a State.
const (
	// ModeForm: the client asks its user, and its next request brings the answer.
	ModeForm Mode = iota + 1
	// ModePage: the user was sent to the gateway's page.
	ModePage
	// ModeProof: nothing is asked any more; the upstream's own questions are under way.
	ModeProof
)

// State is what a client of revision 2026-07-28 carries from one round of a held call to the next as its requestState.
type State struct {
	Mode       Mode
	ApprovalID string // uuid
	// Round is that of the call, see Call; "" or a uuid.
	Round     string
	ExpiresAt time.Time // in whole seconds
	// Upstream is the upstream's own requestState; HasUpstream tells an empty one from none.
	Upstream    string
	HasUpstream bool
}

// Asker is whose call it is, and where.
type Asker struct {
	Organization, User string
	Client             string // external id; "" for none
	Server             string
	Session            string // the upstream's session id, for asks of revisions that have sessions; else ""
}

// States seals and opens what clients carry. Safe for concurrent use when its Sealer is.
type States struct {
	sealer Sealer
	// askPrefix and statePrefix tell what is ours from an upstream's.
	askPrefix, statePrefix string
	now                    func() time.Time
}

// NewStates makes one for the gateway of an address: an upstream may be another gateway, and asks too. A nil now is
// time.Now.
func NewStates(s Sealer, publicURL string, now func() time.Time) *States {
	if now == nil {
		now = time.Now
	}
	sum := sha256.Sum256([]byte(publicURL))
	own := hex.EncodeToString(sum[:6])
	return &States{sealer: s, askPrefix: "gw-" + own + "-", statePrefix: "dw1." + own + ".", now: now}
}

const (
	// stateHead is the length of what comes before the upstream's state: mode, flags, expiry, two ids.
	stateHead = 1 + 1 + 8 + 16 + 16
	// maxAsk is the longest text worth opening as the id of an ask.
	maxAsk = 256
)

const (
	flagRound = 1 << iota
	flagUpstream
)

// IsState reports whether a requestState claims to be one of this gateway's.
func (s *States) IsState(text string) bool { return strings.HasPrefix(text, s.statePrefix) }

// Seal makes the requestState that the asker gets.
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

// Open reads what a client sent as its requestState. Errors: ErrState, and storage.ErrUnavailable when the key of the seal
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

// Ask makes the id of a request to the client that asks for the approval of that id. Any process with the key can tell by
// it what an answer is about: there is no table of what was asked.
func (s *States) Ask(approvalID string, who Asker) (string, error) {
	id, err := uuid.Parse(approvalID)
	if err != nil {
		return "", errors.New("asking for an approval: it has no uuid")
	}
	return s.askPrefix + s.sealer.Seal(id[:], who.bound("mcp ask")), nil
}

// Asked reports whether the id of a response, as it stands in the message, claims to be that of a request of Ask's. How it
// is spelled does not matter.
func (s *States) Asked(id []byte) bool {
	return strings.HasPrefix(jsonrpc.IDValue(id), `"`+s.askPrefix)
}

// Answered returns the approval that a response to the request of that id is about. Errors are those of Open.
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

// bound is the asker as associated data. Lengths go first: no two askers share a text.
func (a Asker) bound(kind string) []byte {
	out := make([]byte, 0, 192)
	for _, field := range [...]string{kind, a.Organization, a.User, a.Client, a.Server, a.Session} {
		out = binary.AppendUvarint(out, uint64(len(field)))
		out = append(out, field...)
	}
	return out
}
