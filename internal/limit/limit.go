// Package limit decides which rate limits a call counts against, and counts it.
//
// The limits of an organization are compiled once into a [Set]. [Set.Match] gives the counters that a caller's traffic
// falls into; the answer holds as long as the Set and the facts of the [Subject] do, and may be kept. [Engine.Look]
// says whether one of them is full, [Engine.Charge] checks and charges them all in one step and gives a [Permit], whose
// tokens are settled once, when it is known how many there were. The counters themselves are a [Coordinator]'s: those
// of this process ([Local]), or ones that several nodes share.
//
// Requests are counted as they come. Tokens are not known before a call: [Estimate] says how many to reserve.
package limit

import "github.com/durward-gateway/durward/storage"

// Subject is what is known of a call that limits may be for. Empty fields match nothing.
type Subject struct {
	Traffic storage.TrafficType // TrafficLLM or TrafficMCP

	UserID, UserSub, UserEmail     string
	Roles, Groups, Teams, Projects []string
	AgentID, APIKeyID              string
	ServerID, ServerSlug           string // on TrafficMCP
	ProviderID, ProviderName       string // on TrafficLLM, as the next two
	Model                          string // the upstream's name for it
	Alias                          string
	// Via is the alias of the smart model that the call came by; "" when Alias was asked for itself. What is for either counts.
	Via string
}
