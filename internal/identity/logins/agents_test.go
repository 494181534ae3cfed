package logins

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// These are the ids of agents.
const (
	robot      = "01900000-0000-7000-8000-0000000000a1"
	otherRobot = "01900000-0000-7000-8000-0000000000a2"
)

// agent makes an agent of the node's organization.
func (n *node) agent(t *testing.T, id string) {
	t.Helper()
	at := n.clock.time()
	a := storage.Agent{ID: id, OrganizationID: n.user.OrganizationID, CreatedAt: at, UpdatedAt: at, Application: storage.Application{
		ID: strings.Replace(id, "a", "b", 1), OrganizationID: n.user.OrganizationID, Issuer: "https://id.test", ExternalID: "client " + id, Name: "A robot", CreatedAt: at, UpdatedAt: at,
	}}
	if err := n.Store.(storage.Store).CreateAgent(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// credential stores a credential of an agent: keys, or a secret where there are none.
func (n *node) credential(t *testing.T, of, id, keys string) (secret seal.Secret) {
	t.Helper()
	c := storage.AgentCredential{ID: id, OrganizationID: n.user.OrganizationID, AgentID: of, Keys: keys, CreatedAt: n.clock.time()}
	if keys == "" {
		secret, c.SecretHash = NewAgentSecret()
	}
	if err := n.Store.(storage.Store).CreateAgentCredential(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return secret
}

// nobody is a look-up that finds no client.
func nobody(context.Context, string) (*authserver.Client, error) { return nil, authserver.ErrNoClient }

func newSigner(t *testing.T) (key *ecdsa.PrivateKey, set string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	return key, `{"keys":[{"kty":"EC","crv":"P-256","x":"` + text(point[1:33]) + `","y":"` + text(point[33:]) + `"}]}`
}

// signed signs an assertion of the robot, with other claims where they are given.
func (n *node) signed(t *testing.T, key *ecdsa.PrivateKey, changes jwt.MapClaims) authserver.Proof {
	t.Helper()
	claims := jwt.MapClaims{"iss": robot, "sub": robot, "aud": issuer, "jti": rand.Text(), "exp": n.clock.time().Add(time.Minute).Unix()}
	maps.Copy(claims, changes)
	signed, err := jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return authserver.Proof{Assertion: seal.NewSecret(signed)}
}

// TestAgentSecrets checks that an agent proves itself with any of its secrets, and with nobody else's.
func TestAgentSecrets(t *testing.T) {
	n := newNode(t)
	n.agent(t, robot)
	n.agent(t, otherRobot)
	first, second := n.credential(t, robot, "first", ""), n.credential(t, robot, "second", "")
	others := n.credential(t, otherRobot, "other", "")
	for _, c := range []struct {
		id     string
		secret seal.Secret
		want   string // the credential
	}{
		{robot, first, "first"}, {robot, second, "second"}, {otherRobot, others, "other"}, {robot, others, ""}, {robot, seal.Secret{}, ""},
		{robot, seal.NewSecret(authserver.HashSecret(first.Reveal())), ""}, {strings.ToUpper(robot), first, ""}, {"01900000-0000-7000-8000-0000000000ff", first, ""}, {"", first, ""},
	} {
		client, err := n.Prove(t.Context(), authserver.Proof{ClientID: c.id, Secret: c.secret}, nobody)
		switch {
		case c.want == "":
			if !errors.Is(err, authserver.ErrNoClient) || client != nil {
				t.Errorf("%s with a wrong secret: %v %v", c.id, client, err)
			}
		case err != nil || client.ID != c.id || client.Agent == nil || client.Agent.Credential != c.want || client.Agent.Organization != n.user.OrganizationID:
			t.Errorf("%s with %s: %+v %v", c.id, c.want, client, err)
		}
	}
	if !strings.HasPrefix(first.Reveal(), "dws_") || first.Equal(second) {
		t.Error("the secrets have another form")
	}
	if _, err := n.Prove(t.Context(), authserver.Proof{ClientID: "editor"}, n.Client); err != nil {
		t.Errorf("a client that is no agent: %v", err)
	}
}

// TestAgentTokens checks what an access token of an agent says, and that other clients get none.
func TestAgentTokens(t *testing.T) {
	n := newNode(t)
	n.agent(t, robot)
	client, err := n.Prove(t.Context(), authserver.Proof{ClientID: robot, Secret: n.credential(t, robot, "first", "")}, nobody)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := n.Machine(t.Context(), client, url.Values{"scope": {"a b"}}, resource)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := n.verify(t, tokens.Access, resource)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"iss": issuer, "aud": resource, "sub": robot, "client_id": robot, "org_id": n.user.OrganizationID, "agent_credential": "first"} {
		if got, _ := claims.Str(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, ok := claims.Object.Get("sid"); ok || !claims.ExpiresAt.Equal(n.clock.time().Add(AccessLifetime)) || tokens.ExpiresIn != AccessLifetime || !tokens.Refresh.Empty() {
		t.Errorf("%+v", tokens)
	}
	if _, err := n.verify(t, tokens.Access, ""); err == nil {
		t.Error("the token is good elsewhere")
	}
	_, err = n.Machine(t.Context(), client, url.Values{"scope": {`"`}}, resource)
	wantCode(t, "a scope that is none", err, "invalid_scope")
	_, err = n.Machine(t.Context(), n.client(t, "editor"), nil, resource)
	wantCode(t, "another client", err, "unauthorized_client")
}

// TestAgentAssertions checks that an agent proves itself with an assertion, which is good once, over all nodes.
func TestAgentAssertions(t *testing.T) {
	all := newNodes(t, 2, nil)
	n, twin := all[0], all[1]
	n.agent(t, robot)
	n.agent(t, otherRobot)
	old, oldSet := newSigner(t)
	key, set := newSigner(t)
	foreign, foreignSet := newSigner(t)
	n.credential(t, robot, "secret", "")
	n.credential(t, robot, "old", oldSet)
	n.credential(t, robot, "new", set)
	n.credential(t, otherRobot, "other", foreignSet)
	for want, signer := range map[string]*ecdsa.PrivateKey{"old": old, "new": key} {
		client, err := n.Prove(t.Context(), n.signed(t, signer, nil), nobody)
		if err != nil || client.ID != robot || client.Agent.Credential != want {
			t.Errorf("%s: %+v %v", want, client, err)
		}
	}
	named := n.signed(t, key, jwt.MapClaims{"aud": issuer + "/oauth/token"})
	named.ClientID = robot
	if _, err := n.Prove(t.Context(), named, nobody); err != nil {
		t.Errorf("beside its id: %v", err)
	}

	presented := n.signed(t, key, jwt.MapClaims{"jti": "once"})
	if _, err := n.Prove(t.Context(), presented, nobody); err != nil {
		t.Fatal(err)
	}
	_, err := twin.Prove(t.Context(), presented, nobody)
	wantCode(t, "once more, at another node", err, "invalid_client")
	_, err = twin.Prove(t.Context(), n.signed(t, key, jwt.MapClaims{"jti": "once", "iat": n.clock.time().Unix()}), nobody)
	wantCode(t, "another one with its jti", err, "invalid_client")
	n.clock.forward(time.Minute + 29*time.Second) // it is over, but for the tolerance
	_, err = twin.Prove(t.Context(), presented, nobody)
	wantCode(t, "once more, at its end", err, "invalid_client")
	if err == authserver.ErrNoClient { //nolint:errorlint // the very same counts as a guess
		t.Error("an assertion that comes twice counts as a guess")
	}
	n.clock.forward(time.Second)
	_, err = n.Prove(t.Context(), n.signed(t, key, jwt.MapClaims{"exp": n.clock.time().Add(-time.Minute).Unix()}), nobody)
	if wantCode(t, "expired", err, "invalid_client"); errors.Is(err, authserver.ErrNoClient) {
		t.Error("an expired assertion counts as a guess")
	}

	beside := n.signed(t, key, nil)
	beside.ClientID = otherRobot
	for name, p := range map[string]authserver.Proof{
		"another agent's key":       n.signed(t, foreign, nil),
		"the key of another agent":  n.signed(t, key, jwt.MapClaims{"iss": otherRobot, "sub": otherRobot}),
		"about another agent":       n.signed(t, key, jwt.MapClaims{"sub": otherRobot}),
		"another audience":          n.signed(t, key, jwt.MapClaims{"aud": resource}),
		"beside another client_id":  beside,
		"of a client of the config": n.signed(t, key, jwt.MapClaims{"iss": "editor", "sub": "editor"}),
		"no JWT":                    {Assertion: seal.NewSecret("x")},
		"for ever":                  n.signed(t, key, jwt.MapClaims{"exp": n.clock.time().Add(time.Hour).Unix()}),
	} {
		if client, err := n.Prove(t.Context(), p, n.Client); !errors.Is(err, authserver.ErrNoClient) || client != nil {
			t.Errorf("%s: %v %v", name, client, err)
		}
	}
}

// TestGuesses checks that wrong secrets are bounded, and that clients which proved themselves from an address are not
// locked out by others there.
func TestGuesses(t *testing.T) {
	const here, elsewhere = "192.0.2.1:1000", "192.0.2.2:1000"
	now := time.Now()
	g := NewGuesses(func() time.Time { return now })
	try := func(id, secret, remote string) string {
		client, wait, err := g.Try(&authserver.Proof{ClientID: id, Secret: seal.NewSecret(secret)}, remote, func() (*authserver.Client, error) {
			if secret != "right" {
				return nil, authserver.ErrNoClient
			}
			return &authserver.Client{ID: id}, nil
		})
		switch {
		case wait > 0 && client == nil && err == nil:
			return "wait"
		case err != nil:
			return "wrong"
		}
		return "right"
	}
	if got := try("known", "right", here); got != "right" {
		t.Fatal(got)
	}
	told := 0
	for range 100 {
		if try("guessed", rand.Text(), here) == "wrong" {
			told++
		}
	}
	if told == 0 || told > 60 {
		t.Errorf("%d guesses were answered", told)
	}
	for _, c := range []struct{ id, secret, remote, want string }{
		{"guessed", "right", here, "wait"}, {"fresh", "right", elsewhere, "right"}, {"known", "right", here, "right"},
		{"guessed", "right", elsewhere, "right"}, // nobody is refused for the tries of other addresses
	} {
		if got := try(c.id, c.secret, c.remote); got != c.want {
			t.Errorf("%s from %s: %s, want %s", c.id, c.remote, got, c.want)
		}
	}
	for i := range 100 { // public clients have nothing to guess
		_, wait, err := g.Try(&authserver.Proof{ClientID: "public"}, here, func() (*authserver.Client, error) { return nil, authserver.ErrNoClient })
		if wait > 0 || !errors.Is(err, authserver.ErrNoClient) {
			t.Fatalf("%d: %v %v", i, wait, err)
		}
	}
	// What a store could not answer is no guess.
	for range 100 {
		_, wait, _ := g.Try(&authserver.Proof{ClientID: "x", Secret: seal.NewSecret(rand.Text())}, "192.0.2.3:1", func() (*authserver.Client, error) { return nil, storage.ErrUnavailable })
		if wait > 0 {
			t.Fatal("a store that is away locks clients out")
		}
	}
	now = now.Add(2 * time.Minute)
	if got := try("guessed", "right", here); got != "right" {
		t.Errorf("later: %s", got)
	}
}
