package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/durward-gateway/durward/internal/canonical"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// Call is a tool call that needs a human's word: everything that the word is good for.
type Call struct {
	OrganizationID string
	UserID         string
	AgentID        string // registered agent; "" when the client is not registered
	Client         string // external id of the client
	ServerID       string
	// Upstream is where the call goes, and Account which connection it goes with: what the user was asked about is not done
	// elsewhere, or as somebody else there.
	Upstream string
	Account  string
	Tool     string
	// Definition is the hash of the tool as the upstream describes it now; "" when it was never seen (attack M13).
	Definition     string
	PolicyID       string
	PolicyRevision int
	Rule           string
	// Arguments are canonical, see CanonicalArguments.
	Arguments []byte
	// Beside is the one form of what else the call says, see CanonicalBeside.
	Beside []byte
	// Channel is the one that the agent and the rule allow at the least, see ChannelFor.
	Channel storage.ApprovalChannel
	// Round is "" for a call as its client made it. A call that the upstream answers with questions of its own
	// (input_required) goes on in rounds, and the proof for each is good once, too.
	Round string
}

// ChannelFor is where a call may be decided: in band only for a registered agent that may, under a rule that does not
// demand the other channel. agent is nil for a client that is not registered.
func ChannelFor(agent *storage.Agent, demanded bool) storage.ApprovalChannel {
	if agent == nil || demanded {
		return storage.ChannelOutOfBand
	}
	return agent.Channel()
}

// CanonicalArguments is the one form of a call's arguments that approvals are bound to. text was checked as part of its
// message; a call without arguments has none.
func CanonicalArguments(text []byte) ([]byte, error) {
	if text == nil {
		return []byte("{}"), nil
	}
	// The limits were the message's: nothing new can be wrong with a part of it.
	return canonical.JSON(text, strictjson.Limits{MaxBytes: len(text) + 1, MaxDepth: len(text) + 1, MaxMembers: len(text) + 1})
}

// CanonicalBeside is the one form of the members of a call's params that are neither its tool nor its arguments: above all
// task, which makes it run in another way, and what of _meta is not of the request alone. nil when there are none. From
// 2026-07-28 on requestState and inputResponses are of the round, not of the call. params were checked as part of their
// message.
func CanonicalBeside(params []byte, modern bool) ([]byte, error) {
	if params == nil {
		return nil, nil
	}
	beside, err := rewrite(params, func(name string, value []byte) ([]byte, verdict, error) {
		switch name {
		case "name", "arguments":
			return nil, drop, nil
		case "_meta":
			bound, err := boundMeta(value)
			if bound == nil {
				return nil, drop, err
			}
			return bound, replace, nil
		case memberState, memberResponses:
			if modern {
				return nil, drop, nil
			}
		}
		return nil, keep, nil
	}, nil)
	if err != nil || len(beside) == len("{}") {
		return nil, err
	}
	return CanonicalArguments(beside)
}

// Said is what a call says: its canonical arguments, and what it says beside them, nil for nothing.
type Said struct{ Arguments, Beside []byte }

// betweenSaid parts the two where they are kept. Canonical JSON has no line ends.
const betweenSaid = '\n'

// said is what is kept of what the call says.
func (c *Call) said() []byte {
	if c.Beside == nil {
		return c.Arguments
	}
	return slices.Concat(c.Arguments, []byte{betweenSaid}, c.Beside)
}

// Binding is a digest of everything the approval is good for. The channel is part of it: which rule asks may depend on the
// token, and a word that was given in band is none for a rule that wants it elsewhere. Each field goes with its length, so that no two calls run
// together.
func (c *Call) Binding() []byte {
	h := sha256.New()
	var length [8]byte
	for _, field := range [...]string{
		"durward approval 2", c.OrganizationID, c.UserID, c.AgentID, c.Client, c.ServerID, c.Upstream, c.Account, c.Tool, c.Definition,
		c.PolicyID, strconv.Itoa(c.PolicyRevision), string(c.Arguments), string(c.Beside), c.Round, string(c.Channel),
	} {
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		h.Write(length[:])
		h.Write([]byte(field))
	}
	return h.Sum(nil)
}

// Digest is the SHA-256 of canonical arguments in hex: what people compare.
func Digest(arguments []byte) string {
	sum := sha256.Sum256(arguments)
	return hex.EncodeToString(sum[:])
}
