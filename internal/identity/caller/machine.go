package caller

import (
	"strings"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// isMachine reports whether a token was obtained with client_credentials. No standard claim says so, so it checks the
// signs of several providers. Any one sign is enough:
//
//   - gty or grant_type is client_credentials (Auth0 writes client-credentials, FusionAuth an array of one).
//   - idtyp is app (Entra ID).
//   - The subject is the client, as RFC 9068 section 2.2 recommends (Okta, the development provider), or client@clients
//     (Auth0).
//   - preferred_username is service-account-client, in lower case (Keycloak).
//
// Both mistakes fail safe. A person taken for a machine is refused calls that need an approval. A machine taken for a
// person asks for an approval that nobody gives.
func isMachine(c *token.Claims, subject, client string) bool {
	for _, name := range [...]string{"gty", "grant_type"} {
		v, ok := c.Object.Get(name)
		if ok && v.Kind() == strictjson.Array && v.Len() == 1 {
			v = v.Elems()[0]
		}
		if strings.ReplaceAll(v.Str(), "-", "_") == "client_credentials" {
			return true
		}
	}
	if v, _ := c.Object.Get("idtyp"); v.Str() == "app" {
		return true
	}
	if client == "" {
		return false
	}
	if subject == client || subject == client+"@clients" {
		return true
	}
	v, _ := c.Object.Get("preferred_username")
	return v.Str() == "service-account-"+strings.ToLower(client)
}
