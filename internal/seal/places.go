package seal

import (
	"encoding/hex"
	"strings"
)

// The places of all sealed values in the store. They are listed together because a rotation of data keys seals all of
// them anew.

// ConnectionPlace returns the place of a user's credential for a server.
func ConnectionPlace(organization, user, server string) AD {
	return AD{Table: "connections", Column: "credential", Organization: organization, User: user, Record: server}
}

// AttemptPlace returns the place of the sealed data of an attempt to connect.
func AttemptPlace(organization, user, server string, stateHash []byte) AD {
	return AD{Table: "attempts", Column: "sealed", Organization: organization, User: user, Record: server + " " + hex.EncodeToString(stateHash)}
}

// RevocationPlace returns the place of the tokens that a provider has to revoke.
func RevocationPlace(organization, id string) AD {
	return AD{Table: "revocations", Column: "sealed", Organization: organization, Record: id}
}

// LoginPlace returns the place of the refresh token that an identity provider gave at a user's login.
func LoginPlace(organization, user, id string) AD {
	return AD{Table: "logins", Column: "refresh", Organization: organization, User: user, Record: id}
}

// IDTokenPlace returns the place of the ID token that an identity provider gave at a user's login.
func IDTokenPlace(organization, user, id string) AD {
	return AD{Table: "logins", Column: "id_token", Organization: organization, User: user, Record: id}
}

// SigningKeyPlace returns the place of a private key that signs access tokens.
func SigningKeyPlace(id string) AD { return AD{Table: "signing_keys", Column: "sealed", Record: id} }

// ServerPlace returns the place of the client secret of a server's record.
func ServerPlace(organization, server string) AD {
	return AD{Table: "servers", Column: "client_secret", Organization: organization, Record: server}
}

// OAuthClientPlace returns the place of the secret of a registered OAuth client.
func OAuthClientPlace(organization, server string) AD {
	return AD{Table: "oauth_clients", Column: "secret", Organization: organization, Record: server}
}

// ApprovalPlace returns the place of the arguments of a held call.
func ApprovalPlace(organization, user, approval string) AD {
	return AD{Table: "approvals", Column: "arguments", Organization: organization, User: user, Record: approval}
}

// JobPlace returns the place of the input of a job.
func JobPlace(organization, user, job string) AD {
	return AD{Table: "jobs", Column: "input", Organization: organization, User: user, Record: job}
}

// ProviderPlace returns the place of the secret of a model provider. It is bound to the address to which the secret
// may be sent.
func ProviderPlace(organization, provider, kind, baseURL string) AD {
	return AD{Table: "llm_providers", Column: "secret", Organization: organization, Record: strings.Join([]string{provider, kind, baseURL}, "\n")}
}
