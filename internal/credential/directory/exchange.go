package directory

import (
	"path/filepath"

	"github.com/durward-gateway/durward/storage"
)

// These are the types of tokens in token exchanges, in the words of RFC 8693 section 3.
const (
	TokenAccess = "access_token" // #nosec G101 -- a name
	TokenID     = "id_token"     // #nosec G101 -- a name
	TokenJWT    = "jwt"
)

// obtained checks the members of entries whose tokens the gateway gets without a step of the users, and that entries of
// other kinds have none of them.
func (c *checker) obtained(e storage.DirectoryEntry) {
	o := e.Options
	c.misplaced(e.Provider.Obtained(), o.Audience, "only the providers token_exchange, client_credentials and workload_identity have it", "audience")
	exchanges := e.Provider == storage.ProviderTokenExchange
	c.misplaced(exchanges, o.RequestedTokenType, "only the provider token_exchange has it", "requested_token_type")
	c.misplaced(exchanges, o.SubjectTokenType, "only the provider token_exchange has it", "subject_token_type")
	c.misplaced(e.Provider == storage.ProviderWorkloadIdentity, o.AssertionFile, "only the provider workload_identity has it", "assertion_file")
	if !e.Provider.Obtained() {
		return
	}
	c.text("audience", o.Audience, 0, maxURL)
	switch {
	case e.Asserts():
		c.assertion(e)
	case exchanges:
		c.exchange(e)
	case e.Provider == storage.ProviderWorkloadIdentity:
		c.workload(e)
	case e.Public || o.AuthMethod == "none": // RFC 6749 section 4.4
		c.add("value_error", "Value error, client_credentials needs a client that proves who it is", "token_endpoint_auth_method")
	}
	for _, member := range []struct {
		given bool
		loc   []any
	}{
		{e.OAuth.AuthorizationEndpoint != "", []any{"oauth", "authorization_endpoint"}}, {e.OAuth.RegistrationEndpoint != "", []any{"oauth", "registration_endpoint"}},
		{e.OAuth.RevocationEndpoint != "", []any{"oauth", "revocation_endpoint"}}, {len(o.AuthorizationParams) > 0, []any{"authorization_params"}},
		{o.RefreshScope, []any{"refresh_scope"}}, {o.IndependentTokens, []any{"independent_tokens"}},
	} {
		if member.given {
			c.add("value_error", "Value error, the provider "+string(e.Provider)+" does not use it", member.loc...)
		}
	}
}

// misplaced reports a member that entries of this kind do not have.
func (c *checker) misplaced(has bool, value, reason, name string) {
	if !has && value != "" {
		c.add("value_error", "Value error, "+reason, name)
	}
}

// types checks the types of tokens in an exchange.
func (c *checker) types(o storage.EntryOptions) {
	if o.RequestedTokenType != "" {
		c.enum("requested_token_type", o.RequestedTokenType, TokenAccess, TokenJWT, storage.TokenIdentityAssertion)
	}
	if o.SubjectTokenType != "" {
		c.enum("subject_token_type", o.SubjectTokenType, Auto, TokenAccess, TokenID, TokenJWT)
	}
}

// exchange checks the members of a token exchange.
func (c *checker) exchange(e storage.DirectoryEntry) {
	if e.Options.Audience == "" && e.OAuth.Resource == "" {
		c.add("value_error", "Value error, token_exchange needs an audience, or a resource that is a URI: otherwise the identity provider cannot know what the token is for", "audience")
	}
	c.types(e.Options)
	// The proof of a user goes to the token endpoint. It opens the gateway: an administrator who could name the endpoint
	// could act as every user.
	if e.OAuth.TokenEndpoint != "" && e.Source == storage.SourceCustom {
		c.add("value_error", "Value error, the identity provider's own is used; only the gateway's configuration may name another", "oauth", "token_endpoint")
	}
}

// assertion checks the members of an exchange for an identity assertion. Its audience is the authorization server that the
// metadata names: an administrator who could name another one, or the endpoint, would have what the identity provider says
// about users sent to somebody for whom it is not meant.
func (c *checker) assertion(e storage.DirectoryEntry) {
	if e.Options.Audience != "" {
		c.add("value_error", "Value error, with id-jag the audience is the server's own authorization server, the issuer", "audience")
	}
	c.types(e.Options)
	switch {
	case e.OAuth.TokenEndpoint == "":
	case e.Source == storage.SourceCustom:
		c.add("value_error", "Value error, that of the server's own authorization server is used; only the gateway's configuration may name another", "oauth", "token_endpoint")
	case e.OAuth.Issuer == "":
		c.add("value_error", "Value error, a token_endpoint needs its issuer: assertions are made for that", "oauth", "issuer")
	}
	if e.Source != storage.SourceCustom {
		return
	}
	// The token for another server would go to this one.
	if e.Options.ResourceOff || e.OAuth.Resource != "" && !sameOrigin(e.OAuth.Resource, e.URL) {
		c.add("value_error", "Value error, with id-jag an assertion names the server to which the token goes; only the gateway's configuration may name another resource", "resource")
	}
}

// workload checks the members of an entry with a statement of the platform's. Whoever names the file has its content sent
// away, so an administrator may not.
func (c *checker) workload(e storage.DirectoryEntry) {
	switch file := e.Options.AssertionFile; {
	case e.Source == storage.SourceCustom:
		c.add("value_error", "Value error, only the gateway's configuration may have entries of workload_identity: they use the gateway's own identity", "provider")
	case file == "":
		c.add("value_error", "Value error, workload_identity needs the file with the platform's statement about the gateway", "assertion_file")
	case !filepath.IsAbs(file) || len(file) > maxURL || !isPlain(file):
		c.add("value_error", "Value error, not an absolute path", "assertion_file")
	}
}
