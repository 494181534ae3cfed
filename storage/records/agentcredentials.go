package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

const (
	agentCredentialColumns     = `id, organization_id, agent_id, name, secret_hash, jwks, created_at`
	agentCredentialSelect      = `SELECT ` + agentCredentialColumns + ` FROM agent_credentials`
	agentCredentialSQL         = agentCredentialSelect + ` WHERE organization_id = $1 AND id = $2`
	agentCredentialsSQL        = agentCredentialSelect + ` WHERE agent_id = $1 AND organization_id = $2 ORDER BY created_at DESC, id DESC`
	credentialsOfClientSQL     = agentCredentialSelect + ` WHERE agent_id = $1 ORDER BY created_at DESC, id DESC`
	countCredentialsOfAgentSQL = `SELECT count(*) FROM agent_credentials WHERE agent_id = $1 AND organization_id = $2` //nolint:gosec // a statement
	addCredentialSQL           = `INSERT INTO agent_credentials (` + agentCredentialColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	deleteAgentCredentialSQL   = `DELETE FROM agent_credentials WHERE organization_id = $1 AND agent_id = $2 AND id = $3` //nolint:gosec // a statement
)

func scanAgentCredential(r Row) (c storage.AgentCredential, err error) {
	err = r.Scan(&c.ID, &c.OrganizationID, &c.AgentID, &c.Name, &c.SecretHash, &c.Keys, timeColumn{&c.CreatedAt})
	return c, err
}

// CreateAgentCredential implements storage.Agents. An agent that does not exist violates a foreign key, which is
// ErrNotFound.
func (s agentsStore) CreateAgentCredential(ctx context.Context, c storage.AgentCredential) error {
	return s.write(ctx, c.OrganizationID, func(ctx context.Context, tx Tx) error {
		n, err := One(ctx, tx, ScanInt, countCredentialsOfAgentSQL, c.AgentID, c.OrganizationID)
		if err != nil {
			return err
		}
		if n >= storage.MaxAgentCredentials {
			return &storage.ConflictError{Field: "credentials"}
		}
		_, err = tx.Exec(ctx, addCredentialSQL, c.ID, c.OrganizationID, c.AgentID, c.Name, c.SecretHash, c.Keys, c.CreatedAt.UnixMicro())
		return err
	})
}

// AgentCredentials implements storage.Agents.
func (s agentsStore) AgentCredentials(ctx context.Context, organization, agentID string) (all []storage.AgentCredential, err error) {
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		if _, err = One(ctx, q, scanAgent, agentSQL, organization, agentID); err != nil {
			return err
		}
		all, err = Many(ctx, q, scanAgentCredential, agentCredentialsSQL, agentID, organization)
		return err
	})
	return all, err
}

// AgentCredential implements storage.Agents.
func (s agentsStore) AgentCredential(ctx context.Context, organization, id string) (h storage.AgentCredentialHolder, err error) {
	err = s.readToAuthenticate(ctx, Of(organization), func(ctx context.Context, q Querier) (err error) {
		if h.AgentCredential, err = One(ctx, q, scanAgentCredential, agentCredentialSQL, organization, id); err != nil {
			return err
		}
		h.Agent, err = One(ctx, q, scanAgent, agentSQL, organization, h.AgentID)
		return err
	})
	if err != nil {
		return storage.AgentCredentialHolder{}, err
	}
	return h, nil
}

// CredentialsOfClient implements storage.Agents.
func (s agentsStore) CredentialsOfClient(ctx context.Context, agentID string) (a storage.Agent, all []storage.AgentCredential, err error) {
	err = s.readToAuthenticate(ctx, Everyone, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scanAgentCredential, credentialsOfClientSQL, agentID)
		switch {
		case err != nil:
			return err
		case len(all) == 0:
			return storage.ErrNotFound
		}
		a, err = One(ctx, q, scanAgent, agentSQL, all[0].OrganizationID, agentID)
		return err
	})
	if err != nil {
		return storage.Agent{}, nil, err
	}
	return a, all, nil
}

// DeleteAgentCredential implements storage.Agents.
func (s agentsStore) DeleteAgentCredential(ctx context.Context, organization, agentID, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if err := execOne(ctx, tx, deleteAgentCredentialSQL, organization, agentID, id); err != nil {
			return err
		}
		_, err := tx.Change(ctx, organization)
		return err
	})
}
