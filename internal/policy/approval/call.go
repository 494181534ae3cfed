package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/internal/strictjson/canonical"
	"github.com/durward-gateway/durward/storage"
)

// Call is a tool call that needs a human's decision. It holds everything that the approval is bound to.
type Call struct {
	OrganizationID string
	UserID         string
	AgentID        string // registered agent; "" when the client is not registered
	Client         string // external id of the client
	ServerID       string
	// Upstream is the server that the call goes to, and Account the connection that it uses. An approval does not cover
	// another server, or another account there.
	Upstream string
	Account  string
	Tool     string
	// Definition is the hash of the tool as the upstream describes it now; "" when no description was ever read (attack
	// M13).
	Definition     string
	PolicyID       string
	PolicyRevision int
	Rule           string
	// Approvers lists the people who decide in place of the user, see storage.Approval.
	Approvers [][]string
	// Arguments holds the arguments in canonical form, see CanonicalArguments.
	Arguments []byte
	// Beside holds the canonical form of the call's other members, see CanonicalBeside.
	Beside []byte
	// Channel is the strictest channel that the agent and the rule demand, see ChannelFor.
	Channel storage.ApprovalChannel
	// Round is "" for a call as its client made it. A call that the upstream answers with its own questions
	// (input_required) continues in rounds. The proof for each round is also good only once.
	Round string
}

// ChannelFor returns the channel in which a call may be decided. In band is possible only for a registered agent that
// has this right, under a rule that does not demand the other channel. agent is nil for a client that is not
// registered.
func ChannelFor(agent *storage.Agent, demanded bool) storage.ApprovalChannel {
	if agent == nil || demanded {
		return storage.ChannelOutOfBand
	}
	return agent.Channel()
}

// CanonicalArguments returns the canonical form of a call's arguments, to which approvals are bound. text was checked
// as part of its message; a call without arguments has none.
func CanonicalArguments(text []byte) ([]byte, error) {
	if text == nil {
		return []byte("{}"), nil
	}
	// The limits of the message already held: a part of it cannot break them.
	return canonical.JSON(text, strictjson.Limits{MaxBytes: len(text) + 1, MaxDepth: len(text) + 1, MaxMembers: len(text) + 1})
}

// CanonicalBeside returns the canonical form of the members of a call's params that are neither its tool nor its
// arguments. The most important are task, which makes the call run in another way, and the members of _meta that belong
// to the call and not only to the request. It returns nil when there are none. From 2026-07-28 on, requestState and
// inputResponses belong to the round, not to the call. params were checked as part of their message.
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

// Said holds the content of a call: its canonical arguments, and its other members, nil for none.
type Said struct{ Arguments, Beside []byte }

// betweenSaid separates the two parts in storage. Canonical JSON has no line ends.
const betweenSaid = '\n'

// said returns the stored form of the call's content.
func (c *Call) said() []byte {
	if c.Beside == nil {
		return c.Arguments
	}
	return slices.Concat(c.Arguments, []byte{betweenSaid}, c.Beside)
}

// Binding returns a digest of everything that the approval is bound to. The channel is part of it: the rule that asks
// may depend on the token, and a decision in band does not satisfy a rule that demands the other channel. Each field is
// preceded by its length, so that no two calls give the same input.
func (c *Call) Binding() []byte {
	h := sha256.New()
	put := func(field string) {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		h.Write(length[:])
		h.Write([]byte(field))
	}
	for _, field := range [...]string{
		"durward approval 2", c.OrganizationID, c.UserID, c.AgentID, c.Client, c.ServerID, c.Upstream, c.Account, c.Tool, c.Definition,
		c.PolicyID, strconv.Itoa(c.PolicyRevision), string(c.Arguments), string(c.Beside), c.Round, string(c.Channel),
	} {
		put(field)
	}
	for _, list := range c.Approvers { // none leaves the binding as it was before there were any
		put(strconv.Itoa(len(list)))
		for _, entry := range list {
			put(entry)
		}
	}
	return h.Sum(nil)
}

// Digest returns the SHA-256 of canonical arguments in hex, for people to compare.
func Digest(arguments []byte) string {
	sum := sha256.Sum256(arguments)
	return hex.EncodeToString(sum[:])
}
