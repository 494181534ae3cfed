// Package clients names the OAuth clients of development mode. They are the gateway's, as those of a Caddyfile are: the
// development identity provider does not know them.
package clients

// These are the ids of the clients.
const (
	Agent   = "dev-agent"   // stands for an agent of a user
	Console = "dev-console" // with which users decide on held calls
	Service = "dev-service" // an agent without a person
)

// ServiceID is the id of the agent Service, with which it logs in, and ServiceSecret its published secret: it opens nothing
// outside this machine.
const (
	ServiceID     = "0198f2c4-0000-7000-8000-0000000000d5"
	ServiceSecret = "dev-service-secret"
)

// RedirectURI is the redirect URI of Agent and Console. The port may be any other one (RFC 8252 section 7.3).
const RedirectURI = "http://127.0.0.1/callback"

// Client describes a client.
type Client struct{ ID, Name, Description string }

// Users returns the clients that log users in.
func Users() []Client {
	return []Client{
		{Agent, "Development agent", "The client that stands for an agent in development mode."},
		{Console, "Development console", "The client with which users of development mode decide on held calls."},
	}
}

// Machine returns the client that logs in without a user.
func Machine() Client {
	return Client{Service, "Development service", "The agent without a person of development mode."}
}
