package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
)

const organization = "0190aaaa-0000-7000-8000-00000000ac3e"

// These are the callers.
var (
	admin = members{"sub": "0190bbbb-0000-7000-8000-000000000001", "email": "admin@acme.test", "roles": []string{"admin"}}
	alice = members{"sub": "0190bbbb-0000-7000-8000-000000000002", "email": "alice@acme.test"}
)

// person returns the claims of a user whom no gateway has seen.
func person() members {
	i := names.Add(1)
	return members{"sub": fmt.Sprintf("0190cccc-0000-7000-8000-%012d", i), "email": fmt.Sprint("p", i, "@acme.test")}
}

// atPage returns the claims of a user of the gateway's own client, which may make keys for MCP servers.
func atPage(claims members) members {
	claims["client_id"], claims["azp"] = "approver", "approver"
	return claims
}

// token signs claims for a caller of the cluster.
func (c *cluster) token(claims members) string {
	c.t.Helper()
	whole := members{"org_id": organization}
	maps.Copy(whole, claims)
	return c.issuer.Token(c.t, c.url, whole)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
