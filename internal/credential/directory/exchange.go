package directory

import (
	"github.com/durward-gateway/durward/storage"
)

// These are the types of tokens in token exchanges, in the words of RFC 8693 section 3.
const (
	TokenAccess = "access_token" // #nosec G101 -- a name
	TokenID     = "id_token"     // #nosec G101 -- a name
	TokenJWT    = "jwt"
)

// exchange checks the members of a token exchange, and that entries of other kinds have none.
func (c *checker) exchange(e storage.DirectoryEntry) {
	o := e.Options
	if e.Provider != storage.ProviderTokenExchange {
		for _, member := range []struct{ name, value string }{
			{"audience", o.Audience}, {"requested_token_type", o.RequestedTokenType}, {"subject_token_type", o.SubjectTokenType},
		} {
			if member.value != "" {
				c.add("value_error", "Value error, only the provider token_exchange has it", member.name)
			}
		}
		return
	}
	c.text("audience", o.Audience, 0, maxURL)
	if o.Audience == "" && e.OAuth.Resource == "" {
		c.add("value_error", "Value error, token_exchange needs an audience, or a resource that is a URI: otherwise the identity provider cannot know what the token is for", "audience")
	}
	if o.RequestedTokenType != "" {
		c.enum("requested_token_type", o.RequestedTokenType, TokenAccess, TokenJWT)
	}
	if o.SubjectTokenType != "" {
		c.enum("subject_token_type", o.SubjectTokenType, Auto, TokenAccess, TokenID, TokenJWT)
	}
	// The proof of a user goes to the token endpoint. It opens the gateway: an administrator who could name the endpoint
	// could act as every user.
	if e.OAuth.TokenEndpoint != "" && e.Source == storage.SourceCustom {
		c.add("value_error", "Value error, the identity provider's own is used; only the gateway's configuration may name another", "oauth", "token_endpoint")
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
			c.add("value_error", "Value error, a token exchange does not use it", member.loc...)
		}
	}
}
