package storagetest

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// agentCredential returns a credential of an agent with a secret, not stored.
func agentCredential(of storage.Agent) storage.AgentCredential {
	return storage.AgentCredential{
		ID: newID(), OrganizationID: of.OrganizationID, AgentID: of.ID, Name: "Nightly", SecretHash: []byte("hash\x00"), CreatedAt: start,
	}
}

func testAgentCredentials(t *testing.T, b *bundle) {
	ctx := t.Context()
	agent, other, foreign := b.agent(t, b.orgA, "Agent"), b.agent(t, b.orgA, "Other"), b.agent(t, b.orgB, "Foreign")
	secret, keys := agentCredential(agent), agentCredential(agent)
	keys.SecretHash, keys.Keys, keys.Name, keys.CreatedAt = nil, `{"keys":[]}`, "", start.Add(time.Second)
	elsewhere, abroad := agentCredential(other), agentCredential(foreign)
	for _, c := range []storage.AgentCredential{secret, keys, elsewhere, abroad} {
		noError(t, b.CreateAgentCredential(ctx, c))
	}
	all, err := b.AgentCredentials(ctx, b.orgA, agent.ID)
	noError(t, err)
	equal(t, all, []storage.AgentCredential{keys, secret})
	if all[0].SecretHash != nil {
		t.Error("a credential with keys has a secret")
	}
	of, all, err := b.CredentialsOfClient(ctx, agent.ID)
	noError(t, err)
	equal(t, of, agent)
	equal(t, all, []storage.AgentCredential{keys, secret})
	of, all, err = b.CredentialsOfClient(ctx, foreign.ID) // before its organization is known
	noError(t, err)
	equal(t, of, foreign)
	equal(t, all, []storage.AgentCredential{abroad})
	holder, err := b.AgentCredential(ctx, b.orgA, keys.ID)
	noError(t, err)
	equal(t, holder, storage.AgentCredentialHolder{AgentCredential: keys, Agent: agent})

	missing := agentCredential(agent)
	missing.AgentID = b.unknown
	wantError(t, b.CreateAgentCredential(ctx, missing), storage.ErrNotFound)
	_, err = b.AgentCredentials(ctx, b.orgA, b.unknown)
	wantError(t, err, storage.ErrNotFound)
	bare := b.agent(t, b.orgA, "Bare")
	all, err = b.AgentCredentials(ctx, b.orgA, bare.ID)
	noError(t, err)
	equal(t, len(all), 0)
	_, _, err = b.CredentialsOfClient(ctx, bare.ID)
	wantError(t, err, storage.ErrNotFound)

	// Neither another agent's nor an unknown one is deleted.
	wantError(t, b.DeleteAgentCredential(ctx, b.orgA, other.ID, secret.ID), storage.ErrNotFound)
	wantError(t, b.DeleteAgentCredential(ctx, b.orgA, agent.ID, b.unknown), storage.ErrNotFound)
	noError(t, b.DeleteAgentCredential(ctx, b.orgA, agent.ID, secret.ID))
	_, err = b.AgentCredential(ctx, b.orgA, secret.ID)
	wantError(t, err, storage.ErrNotFound)
	_, all, err = b.CredentialsOfClient(ctx, agent.ID)
	noError(t, err)
	equal(t, all, []storage.AgentCredential{keys})

	// A deleted agent loses all.
	noError(t, b.DeleteAgent(ctx, b.orgA, agent.ID, "", start))
	_, err = b.AgentCredential(ctx, b.orgA, keys.ID)
	wantError(t, err, storage.ErrNotFound)
	_, _, err = b.CredentialsOfClient(ctx, agent.ID)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.AgentCredential(ctx, b.orgA, elsewhere.ID)
	noError(t, err)
}

// testAgentCredentialsBounded makes more credentials at once than an agent may have.
func testAgentCredentialsBounded(t *testing.T, b *bundle) {
	agent := b.agent(t, b.orgA, "Agent")
	var wg sync.WaitGroup
	refused := make(chan error, 2*storage.MaxAgentCredentials)
	for i := range 2 * storage.MaxAgentCredentials {
		wg.Go(func() {
			c := agentCredential(agent)
			c.Name = strconv.Itoa(i)
			if err := b.CreateAgentCredential(t.Context(), c); err != nil {
				refused <- err
			}
		})
	}
	wg.Wait()
	close(refused)
	all, err := b.AgentCredentials(t.Context(), b.orgA, agent.ID)
	noError(t, err)
	equal(t, len(all), storage.MaxAgentCredentials)
	equal(t, len(refused), storage.MaxAgentCredentials)
	for err := range refused {
		wantConflict(t, err, "credentials")
	}
	noError(t, b.DeleteAgentCredential(t.Context(), b.orgA, agent.ID, all[0].ID))
	again := agentCredential(agent)
	again.CreatedAt = start.Add(time.Hour)
	noError(t, b.CreateAgentCredential(t.Context(), again))
	all, err = b.AgentCredentials(t.Context(), b.orgA, agent.ID)
	noError(t, err)
	equal(t, slices.IndexFunc(all, func(c storage.AgentCredential) bool { return c.ID == again.ID }), 0)
}
