package storage

import "time"

// AgentType distinguishes agents that an administrator registered from those that registered themselves.
type AgentType string

// Types of agents.
const (
	AgentInternal AgentType = "internal"
	AgentExternal AgentType = "external" // its application registered itself (dcr, RFC 7591), or was seen first in a token
)

// ApprovalChannel is the place where a human decides on a held call.
type ApprovalChannel string

// Channels of approval.
const (
	// ChannelInBand means that the MCP client that makes the call asks its user.
	ChannelInBand ApprovalChannel = "in_band"
	// ChannelOutOfBand means the API or the page, with a token of another client of the same user.
	ChannelOutOfBand ApprovalChannel = "out_of_band"
)

// Application is a client of the identity provider as it is registered here. The API calls it an entry of the
// application directory.
type Application struct {
	ID             string
	OrganizationID string
	// Issuer and ExternalID (the client id, `azp` of its tokens) are compared with tokens.
	Issuer           string
	ExternalID       string
	Name             string
	Description      string
	Public           bool
	DCR              bool // it registered itself
	PostLoginSuccess bool
	Callbacks        []string
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// Agent is an application that policies can name.
type Agent struct {
	ID             string
	OrganizationID string
	Application    Application
	// WriteConfirmationsRequired makes every tool that does not say of itself that it only reads need a human's approval.
	WriteConfirmationsRequired bool
	// LLMGatewayEnabled is kept for clients; nothing here depends on it.
	LLMGatewayEnabled bool
	// ApprovalChannel is the administrator's choice; "" means the default of the type, see Channel.
	ApprovalChannel ApprovalChannel
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// Type returns the type of the agent, which follows from its application.
func (a *Agent) Type() AgentType {
	if a.Application.DCR {
		return AgentExternal
	}
	return AgentInternal
}

// Channel returns the weakest channel on which calls of the agent may be approved: in band only for internal agents,
// unless an administrator chose otherwise.
func (a *Agent) Channel() ApprovalChannel {
	switch {
	case a.ApprovalChannel != "":
		return a.ApprovalChannel
	case a.Type() == AgentInternal:
		return ChannelInBand
	}
	return ChannelOutOfBand
}

// AgentFilter narrows a list of agents. Empty members do not narrow.
type AgentFilter struct {
	OrganizationID string
	Search         string // case-insensitive substring of name, description or external id, taken literally
	Types          []AgentType
	Page           PageRequest
}

// AgentCounts holds the numbers of an organization's agents.
type AgentCounts struct{ All, Internal, External int }

// MaxAgentCredentials is the largest number of credentials of an agent: enough to replace one while the former is in use.
const MaxAgentCredentials = 10

// AgentCredential lets an agent log in at the gateway without a person. It has a secret or keys.
type AgentCredential struct {
	ID             string
	OrganizationID string
	AgentID        string
	Name           string
	// SecretHash is the SHA-256 of the secret in hexadecimal; nil for a credential with keys.
	SecretHash []byte
	// Keys is a JWK set of public keys; "" for a credential with a secret.
	Keys      string
	CreatedAt time.Time
}

// AgentCredentialHolder holds a credential and its agent.
type AgentCredentialHolder struct {
	AgentCredential
	Agent Agent
}
