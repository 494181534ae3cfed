package platformapi

import (
	"errors"
	"strconv"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// maxCredentialName bounds the name of a credential, in characters.
const maxCredentialName = 255

var (
	errNoCredential       = routes.Refused(gateway.NotFound, "Credential not found")
	errTooManyCredentials = routes.Conflict("credentials", "The agent has "+strconv.Itoa(storage.MaxAgentCredentials)+" credentials, as many as may be; delete one first")
	// errCredentialClient refuses a credential to a client at which an administrator logged in: it would outlive the login.
	errCredentialClient = routes.Refused(gateway.Forbidden,
		"Credentials of agents are made with a token of a client that the configuration names for it (approval_clients): a client that logs in at the gateway could go on with them")
	// errNoTokens refuses a credential with which nobody could log in.
	errNoTokens = routes.Refused(gateway.Conflict, "Agents do not log in here: the gateway is no authorization server (authorization_server on)")
)

// credentialView is the API's view of a credential with which an agent logs in without a person. It has no member for the
// secret.
type credentialView struct {
	ID          string         `json:"id"`
	ClientID    string         `json:"client_id"`
	Name        string         `json:"name"`
	AuthMethod  string         `json:"token_endpoint_auth_method"`
	Thumbprints []string       `json:"key_thumbprints"` // RFC 7638
	CreatedAt   routes.Instant `json:"created_at"`
}

// newCredentialView is a new credential with its secret, which is shown only this once.
type newCredentialView struct {
	credentialView
	Secret string `json:"client_secret,omitempty"`
}

// credentialsView lists the credentials of an agent.
type credentialsView struct {
	Data []credentialView `json:"data"`
}

func viewCredential(c storage.AgentCredential) (credentialView, error) {
	v := credentialView{
		ID: c.ID, ClientID: c.AgentID, Name: c.Name, AuthMethod: authserver.AuthBasic, Thumbprints: []string{}, CreatedAt: routes.Instant(c.CreatedAt),
	}
	if c.Keys == "" {
		return v, nil
	}
	v.AuthMethod = authserver.AuthKey
	set, err := strictjson.Parse([]byte(c.Keys), strictjson.Limits{})
	if err != nil {
		return v, err
	}
	keys, err := token.ReadClientKeys(set)
	if err != nil {
		return v, err
	}
	v.Thumbprints, err = keys.Thumbprints()
	return v, err
}

func listCredentials(q *request) (any, error) {
	id := q.ID("agent_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	all, err := q.Core.Store.AgentCredentials(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoAgent)
	}
	data := make([]credentialView, 0, len(all))
	for _, c := range all {
		v, err := viewCredential(c)
		if err != nil {
			return nil, err
		}
		data = append(data, v)
	}
	return credentialsView{data}, nil
}

// createCredential makes a secret for an agent, or keeps its public keys.
func createCredential(q *request) (any, error) {
	c := storage.AgentCredential{OrganizationID: q.Organization(), AgentID: q.ID("agent_id"), CreatedAt: q.handler.now().UTC()}
	if err := q.Read(true, func(o *validate.Object) {
		c.Name = o.Text("name", validate.Text{Flags: validate.Nullable, Max: maxCredentialName}).Value
		// What is wrong may be a private key: no answer shows it.
		if set := o.Value("jwks", validate.Nullable|validate.Secret); set.Set() && !o.Wrong("jwks") {
			var err error
			if c.Keys, err = publicKeys(set.Value); err != nil {
				o.Report(validate.ValueError, "Value error, "+err.Error(), "jwks")
			}
		}
	}); err != nil {
		return nil, err
	}
	if _, err := q.Core.Store.Agent(q.Context(), q.Organization(), c.AgentID); err != nil {
		return nil, routes.Missing(err, errNoAgent)
	}
	if q.Core.Authorization == nil {
		return nil, errNoTokens
	}
	if q.Call.Caller.Login != "" && q.Core.Approvals.MayDecide(q.Call.Party().Decider()) != nil {
		return nil, errCredentialClient
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c.ID = id.String()
	if q.Record != nil {
		q.Record.Detail["credential_id"] = c.ID
	}
	var made newCredentialView
	if c.Keys == "" {
		secret, hash := logins.NewAgentSecret()
		c.SecretHash, made.Secret = hash, secret.Reveal()
	}
	switch err := q.Core.Store.CreateAgentCredential(q.Context(), c); {
	case errors.Is(err, storage.ErrConflict):
		return nil, errTooManyCredentials
	case err != nil:
		return nil, routes.Missing(err, errNoAgent)
	}
	made.credentialView, err = viewCredential(c)
	return made, err
}

// publicKeys returns the form in which a JWK set is kept.
func publicKeys(set strictjson.Value) (string, error) {
	keys, err := token.ReadClientKeys(set)
	if err != nil {
		return "", err
	}
	return keys.Document()
}

// deleteCredential ends a credential. Tokens that were made with it are refused from then on, on every node, and the
// streams that use them end.
func deleteCredential(q *request) (any, error) {
	agent, id := q.ID("agent_id"), q.ID("credential_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return nil, routes.Missing(q.Core.Store.DeleteAgentCredential(q.Context(), q.Organization(), agent, id), errNoCredential)
}
