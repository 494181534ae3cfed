package seal

import (
	"encoding/hex"
	"strings"
)

// The places of whatever is sealed in the store. They stand together because rotating data keys seals all of it anew.

// ConnectionPlace is where a user's credential for a server is.
func ConnectionPlace(organization, user, server string) AD {
	return AD{Table: "connections", Column: "credential", Organization: organization, User: user, Record: server}
}

// AttemptPlace is where what an attempt to connect carries is.
func AttemptPlace(organization, user, server string, stateHash []byte) AD {
	return AD{Table: "attempts", Column: "sealed", Organization: organization, User: user, Record: server + " " + hex.EncodeToString(stateHash)}
}

// RevocationPlace is where what a provider has to forget is.
func RevocationPlace(organization, id string) AD {
	return AD{Table: "revocations", Column: "sealed", Organization: organization, Record: id}
}

// ServerPlace is where the client secret of a server's record is.
func ServerPlace(organization, server string) AD {
	return AD{Table: "servers", Column: "client_secret", Organization: organization, Record: server}
}

// OAuthClientPlace is where the secret of a registered OAuth client is.
func OAuthClientPlace(organization, server string) AD {
	return AD{Table: "oauth_clients", Column: "secret", Organization: organization, Record: server}
}

// ApprovalPlace is where the arguments of a held call are.
func ApprovalPlace(organization, user, approval string) AD {
	return AD{Table: "approvals", Column: "arguments", Organization: organization, User: user, Record: approval}
}

// ProviderPlace is where the secret of a provider of models is. It is bound to where it may be sent.
func ProviderPlace(organization, provider, kind, baseURL string) AD {
	return AD{Table: "llm_providers", Column: "secret", Organization: organization, Record: strings.Join([]string{provider, kind, baseURL}, "\n")}
}
