package logins

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// ClaimCredential names the credential of an agent that logged in without a person, in its access tokens.
const ClaimCredential = "agent_credential" //nolint:gosec // a name

// agentSecretPrefix is the prefix of agents' secrets, which scanners for leaked secrets can look for.
const agentSecretPrefix = "dws_"

// NewAgentSecret returns a new secret for an agent, and the form in which it is kept.
func NewAgentSecret() (secret seal.Secret, hash []byte) {
	text := agentSecretPrefix + authserver.Random()
	return seal.NewSecret(text), []byte(authserver.HashSecret(text))
}

// Prove finds the client that proves who it is: an agent of the directory, or one of those of find. The assertion of a
// client may be the only thing that names it (RFC 7521 section 4.2). Its error is authserver.ErrNoClient when the proof is
// wrong, another *authserver.Error, or the store's.
func (s *Server) Prove(ctx context.Context, p authserver.Proof, find func(context.Context, string) (*authserver.Client, error)) (*authserver.Client, error) {
	if p.Assertion.Empty() {
		if s.isAgent(p.ClientID) {
			return s.agentWithSecret(ctx, &p)
		}
		return p.Client(ctx, find)
	}
	unverified, err := token.Parse(p.Assertion.Reveal())
	if err != nil {
		return nil, authserver.ErrNoClient
	}
	issuer, err := unverified.Issuer()
	if err != nil || p.ClientID != "" && p.ClientID != string(issuer) || !s.isAgent(string(issuer)) {
		return nil, authserver.ErrNoClient
	}
	return s.agentWithKey(ctx, string(issuer), unverified)
}

// isAgent reports whether a client's id is that of an agent, whether it exists or not. No client that registers itself has
// such an id.
func (s *Server) isAgent(id string) bool {
	parsed, err := uuid.Parse(id)
	_, configured := s.configured[id]
	return err == nil && parsed.String() == id && !configured
}

// agentWithSecret returns the agent whose secret the proof holds.
func (s *Server) agentWithSecret(ctx context.Context, p *authserver.Proof) (*authserver.Client, error) {
	agent, all, err := s.credentialsOf(ctx, p.ClientID)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if p.Knows(string(c.SecretHash)) {
			return clientOf(&agent, &c, authserver.AuthBasic), nil
		}
	}
	return nil, authserver.ErrNoClient
}

// agentWithKey returns the agent that signed an assertion.
func (s *Server) agentWithKey(ctx context.Context, id string, unverified token.Unverified) (*authserver.Client, error) {
	agent, all, err := s.credentialsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	err = authserver.ErrNoClient
	for _, c := range all {
		if c.Keys == "" {
			continue
		}
		var presented token.ClientAssertion
		if presented, err = s.verifyAssertion(ctx, &c, unverified); err == nil {
			if err := s.useAssertion(ctx, id, presented); err != nil {
				return nil, err
			}
			return clientOf(&agent, &c, authserver.AuthKey), nil
		}
	}
	switch {
	case token.IsOver(err):
		return nil, refusedAssertion("the client assertion has expired")
	case errors.Is(err, token.ErrInvalid):
		s.Log.Info("the assertion of an agent was refused", "agent", id, "reason", token.Reason(err))
		err = authserver.ErrNoClient
	}
	return nil, err
}

// verifyAssertion verifies an assertion with the keys of one credential.
func (s *Server) verifyAssertion(ctx context.Context, c *storage.AgentCredential, unverified token.Unverified) (token.ClientAssertion, error) {
	set, err := strictjson.Parse([]byte(c.Keys), strictjson.Limits{})
	if err != nil {
		return token.ClientAssertion{}, fmt.Errorf("reading the keys of an agent: %w", err)
	}
	keys, err := token.ReadClientKeys(set)
	if err != nil {
		return token.ClientAssertion{}, fmt.Errorf("reading the keys of an agent: %w", err)
	}
	// RFC 7523 section 3 wants the token endpoint, the draft that follows it the issuer: clients send either.
	assertions, err := token.NewClientAssertions(c.AgentID, []string{s.Issuer, s.TokenEndpoint}, keys, s.Now)
	if err != nil {
		return token.ClientAssertion{}, err
	}
	return assertions.Verify(ctx, unverified)
}

// useAssertion refuses an assertion that was presented before, at whatever node. It is asked once the signature is
// verified: nobody else can fill the store.
func (s *Server) useAssertion(ctx context.Context, client string, presented token.ClientAssertion) error {
	switch err := s.Store.UseAssertion(ctx, client, presented.ID, s.Now(), presented.GoodUntil); {
	case errors.Is(err, storage.ErrReplayed):
		s.Log.Warn("the assertion of an agent came twice", "agent", client)
		return refusedAssertion("the client assertion was used before: each needs a jti of its own")
	case err != nil:
		return fmt.Errorf("remembering an assertion: %w", err)
	}
	return nil
}

// refusedAssertion refuses a client for a reason that helps nobody to guess.
func refusedAssertion(reason string) error {
	return &authserver.Error{Code: authserver.ErrNoClient.Code, Description: reason, Status: http.StatusUnauthorized}
}

// credentialsOf reads an agent and its credentials. One that has none is like one that does not exist.
func (s *Server) credentialsOf(ctx context.Context, id string) (storage.Agent, []storage.AgentCredential, error) {
	agent, all, err := s.Store.CredentialsOfClient(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		err = authserver.ErrNoClient
	case err != nil:
		err = fmt.Errorf("reading the credentials of an agent: %w", err)
	}
	return agent, all, err
}

// clientOf returns an agent that proved who it is as a client.
func clientOf(agent *storage.Agent, c *storage.AgentCredential, method string) *authserver.Client {
	return &authserver.Client{
		ID: agent.ID, Name: agent.Application.Name, AuthMethod: method, GrantTypes: []string{authserver.GrantMachine}, Issued: c.CreatedAt,
		Agent: &authserver.Agent{Organization: agent.OrganizationID, Credential: c.ID},
	}
}

// Machine gives an agent without a person an access token for a resource (RFC 6749 section 4.4). The client must be
// proven. There is no refresh token: the agent proves itself again. Errors are *authserver.Error, or the store's.
func (s *Server) Machine(ctx context.Context, client *authserver.Client, form url.Values, resource string) (*Tokens, error) {
	if client.Agent == nil {
		return nil, authserver.Invalid("unauthorized_client", "the client may not use this grant type")
	}
	if _, err := authserver.Scopes(form.Get("scope")); err != nil {
		return nil, err
	}
	now := s.Now()
	access, err := s.sign(ctx, jwt.MapClaims{
		"iss": s.Issuer, "aud": resource, "sub": client.ID, "client_id": client.ID, // RFC 9068 section 2.2: the client is the subject
		ClaimOrganization: client.Agent.Organization, ClaimCredential: client.Agent.Credential,
		"iat": now.Unix(), "exp": now.Add(AccessLifetime).Unix(), "jti": rand.Text(),
	})
	if err != nil {
		return nil, err
	}
	return &Tokens{Access: access, ExpiresIn: AccessLifetime}, nil
}
