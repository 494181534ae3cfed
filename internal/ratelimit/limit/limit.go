// Package limit decides which rate limits a call counts against, and counts it.
//
// The limits of an organization are compiled once into a [Set]. [Set.Match] returns the counters for a caller's
// traffic. Its answer holds as long as the Set and the facts of the [Subject] do, and may be kept. [Engine.Look] says
// whether one of the counters is full. [Engine.Charge] checks and charges them all in one step and returns a [Permit].
// The tokens of a permit are settled once, when their number is known. The counters themselves belong to a
// [Coordinator]: they are those of this process ([Local]), or several nodes share them.
//
// Requests are counted as they come. Tokens are not known before a call: [Estimate] says how many to reserve.
package limit

import "github.com/durward-gateway/durward/storage"

// Subject holds the facts of a call that limits can select by. Empty fields match nothing.
type Subject struct {
	Traffic storage.TrafficType // TrafficLLM or TrafficMCP

	UserID, UserSub, UserEmail     string
	Roles, Groups, Teams, Projects []string
	AgentID, APIKeyID              string
	ServerID, ServerSlug           string // on TrafficMCP
	ProviderID, ProviderName       string // on TrafficLLM, as are the next two
	Model                          string // the upstream's name for it
	Alias                          string
	// Via is the alias of the smart model that routed the call; "" when the client asked for Alias directly. Limits for
	// either alias count.
	Via string
}
