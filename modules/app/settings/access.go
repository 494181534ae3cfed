package settings

import (
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/storage"
)

// AgentRules holds the rules for clients that nobody registered. By default they may call what policies for all agents
// allow, and no policy can name them.
type AgentRules struct {
	// Refuse clients that are not registered, with 403, on `/mcp` and `/sse`. Default: false.
	RequireRegistered bool `json:"require_registered,omitempty"`
	// Register a client as an external agent when its first token is seen, at most 1,000 in an organization. Default:
	// false; with the development identity provider, true.
	AutoRegister bool `json:"auto_register,omitempty"`
}

// Allow reports whether a client may use /mcp and /sse. agent is the client as it is registered; nil: it is not.
func (r AgentRules) Allow(agent *storage.Agent) bool { return agent != nil || !r.RequireRegistered }

// SSERules holds the rules for opening streams of /sse.
type SSERules struct {
	// Open a stream only when a rule grants `sse/stream`. Default: false, a stream is open to every connected user unless
	// a rule denies it.
	RequireGrant bool `json:"require_grant,omitempty"`
}

// PinRules holds the rules for tools whose definition changed after it was first seen.
type PinRules struct {
	// Withhold a changed tool until an administrator accepts it. Default: false, the change is flagged in the audit log and
	// the API.
	Enforce bool `json:"enforce,omitempty"`
}

// Words of the option unconnected.
const (
	UnconnectedGuide  = "guide"
	UnconnectedRefuse = "refuse"
)

// CheckUnconnected refuses a word that the option unconnected does not know; "" is the default.
func CheckUnconnected(word string) error {
	switch word {
	case "", UnconnectedGuide, UnconnectedRefuse:
		return nil
	}
	return fmt.Errorf("unconnected: %q is neither %s nor %s", word, UnconnectedGuide, UnconnectedRefuse)
}

// Check refuses rules that contradict each other. r may be nil.
func (r *AgentRules) Check() error {
	if r != nil && r.RequireRegistered && r.AutoRegister {
		return errors.New("agents: require_registered and auto_register contradict each other")
	}
	return nil
}
