package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestClientCredentialsOfOIDCProvider has oidc-provider give tokens of a server to the gateway itself: to a client with a secret,
// and to one with a key.
func TestClientCredentialsOfOIDCProvider(t *testing.T) {
	lab(t)
	record(t, &row{
		section: identityProviders, software: "oidc-provider", version: version(t, "oidc-provider"), tried: "client credentials for a server: client_secret_basic, client_secret_post, private_key_jwt with ES256",
	})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	const secret = "the-secret-of-bookings-in-the-lab" // #nosec G101 -- of this test alone
	client := func(id, members string) string {
		return "    { client_id: '" + id + "', redirect_uris: [], response_types: [], grant_types: ['client_credentials'], " + members + " },\n"
	}
	issuerPort, upstreamPort := rig.FreePort(t), rig.FreePort(t)
	p := &provided{gate: "http://127.0.0.1:" + rig.FreePort(t), issuer: "http://127.0.0.1:" + issuerPort}
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	door := newPayrollDoor(t, "http://127.0.0.1:"+upstreamPort)
	g := p.guide(t,
		"  clients: [\n", "  clients: [\n"+client("basic", "client_secret: '"+secret+"'")+client("post", "client_secret: '"+secret+"', token_endpoint_auth_method: 'client_secret_post'")+
			client("key", "token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: '"+text(point[1:33])+"', y: '"+text(point[33:])+"' }] }"),
		"  features: {\n", "  features: {\n    clientCredentials: { enabled: true },\n",
		"resource !== gate &&", "resource !== gate && resource !== '"+door.server.URL+"/mcp' &&")
	g.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	p.durward = g.gateway(p.gate)
	env, pages := []string{"GATE=" + p.gate, "ISSUER=" + p.issuer}, pagesOfOIDCProvider(p.gate)
	p.root = g.login(env, "root", pages.browse)
	alice := g.login(env, "alice", pages.browse)

	for id, proof := range map[string]object{
		"basic": {"client_secret": secret}, "post": {"client_secret": secret}, // the metadata lists both places
		"key": {"client_private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))},
	} {
		entry := p.post(t, "/api/server-directory", object{
			"name": id, "url": door.server.URL + "/mcp", "provider": "client_credentials", "scopes": []string{"mcp"}, "oauth": object{"issuer": p.issuer},
		})
		made := object{"name": id, "mcp_server_directory_id": entry, "client_id": id}
		for member, value := range proof {
			made[member] = value
		}
		server := p.post(t, "/api/servers?test=false", made)
		p.post(t, "/api/policy", object{"name": id, "mcp_server_id": server, "status": "ACTIVE", "rules": []any{object{"name": "all", "authorized": true}}})
		before := len(door.seen())
		api(t, http.MethodPost, p.gate+"/mcp/"+id, alice, object{
			"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "lab", "version": "1"}},
		}, nil)
		if len(door.seen()) != before+1 {
			t.Errorf("%s: the server saw %d tokens", id, len(door.seen())-before)
		}
	}
	for token, claims := range door.seen() {
		if claims.Audience != door.server.URL+"/mcp" || claims.Client == "" || claims.Issuer != p.issuer || token == alice {
			t.Errorf("the server saw a token with %+v", claims)
		}
	}
}
