package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// everything holds all that an organization's users can see. Cases compare it before and after calls that must change
// nothing.
type everything struct {
	Servers     []storage.ServerView
	Entries     []storage.DirectoryEntry
	Connections []storage.Connection
	Clients     []storage.OAuthClient
	Agents      []storage.Agent
	Policies    []storage.PolicyView
	Revisions   []storage.PolicyRevision
	Approvals   []storage.Approval
	Pins        []storage.ToolPin
	Audit       []storage.AuditRecord
}

func (b *bundle) everything(t *testing.T, organization string, users ...string) everything {
	t.Helper()
	ctx := t.Context()
	var all everything
	for _, user := range users {
		page, err := b.Servers(ctx, storage.ServerFilter{OrganizationID: organization, UserID: user, Now: start, Page: storage.PageRequest{Number: 1, Limit: 1000}})
		noError(t, err)
		all.Servers = append(all.Servers, page.Items...)
		for _, v := range page.Items {
			if c, err := b.Connection(ctx, storage.ConnectionKey{OrganizationID: organization, UserID: user, ServerID: v.ID}); err == nil {
				all.Connections = append(all.Connections, c)
			}
			if c, err := b.OAuthClient(ctx, organization, v.ID); err == nil {
				all.Clients = append(all.Clients, c)
			}
		}
	}
	page, err := b.DirectoryEntries(ctx, storage.DirectoryFilter{OrganizationID: organization, Page: storage.PageRequest{Number: 1, Limit: 1000}})
	noError(t, err)
	all.Entries = page.Items
	agents, err := b.Agents(ctx, storage.AgentFilter{OrganizationID: organization})
	noError(t, err)
	all.Agents = agents.Items
	policies, err := b.Policies(ctx, storage.PolicyFilter{OrganizationID: organization})
	noError(t, err)
	all.Policies = policies.Items
	for _, p := range policies.Items {
		revisions, err := b.PolicyRevisions(ctx, organization, p.ID, storage.PageRequest{})
		noError(t, err)
		all.Revisions = append(all.Revisions, revisions.Items...)
	}
	approvals, err := b.Approvals(ctx, storage.ApprovalFilter{OrganizationID: organization, Now: start})
	noError(t, err)
	all.Approvals = approvals.Items
	for _, s := range all.Servers {
		pins, err := b.ToolPins(ctx, organization, s.ID)
		noError(t, err)
		all.Pins = append(all.Pins, pins...)
	}
	all.Audit, err = b.AuditRecords(ctx, storage.AuditFilter{OrganizationID: organization})
	noError(t, err)
	return all
}

// testIsolation calls every method that takes an id as organization B with ids of organization A: the answer is the
// one for an unknown id, and nothing of A changes.
func testIsolation(t *testing.T, b *bundle) {
	ctx := t.Context()
	custom := b.customEntry(t, b.orgA, "Custom A")
	b.connect(t, b.connectionA1)
	noError(t, b.PutOAuthClient(ctx, oauthClient(b.orgA, b.serverA.ID), ""))
	a := attempt(b.connectionA1)
	noError(t, b.CreateAttempt(ctx, a))
	agentA := b.agent(t, b.orgA, "Agent A")
	credentialA := agentCredential(agentA)
	noError(t, b.CreateAgentCredential(ctx, credentialA))
	policyA := b.policy(t, "Policy A", storage.PolicyActive, agentA.ID)
	_, err := b.ObserveTools(ctx, b.orgA, b.serverA.ID, []storage.ObservedTool{tool("tool", "hash")}, start)
	noError(t, err)
	ctxA, _ := b.audited(t, b.orgA, "event")
	noError(t, b.RecordAudit(ctxA))
	pending, approved := b.approval(t, "pending"), b.approved(t, "approved")
	before := b.everything(t, b.orgA, b.userA1, b.userA2)
	var told []string
	defer b.OnChange(func(organization string) { told = append(told, organization) })()

	never := func(what string) { t.Errorf("edit of %s was called", what) }
	calls := map[string]func(server, user, entry string) error{
		"User": func(_, user, _ string) error {
			_, err := b.User(ctx, b.orgB, user)
			return err
		},
		"RevokeUser": func(_, user, _ string) error {
			_, err := b.RevokeUser(ctx, b.orgB, user, start)
			return err
		},
		"OffboardUser": func(_, user, _ string) error {
			_, err := b.OffboardUser(ctx, storage.OffboardRequest{OrganizationID: b.orgB, UserID: user, At: start})
			return err
		},
		"Offboarding": func(_, user, _ string) error {
			_, err := b.Offboarding(ctx, b.orgB, user, start)
			return err
		},
		"LogOutUser": func(_, user, _ string) error { return b.LogOutUser(ctx, b.orgB, user, start) },
		"DirectoryEntry": func(_, _, entry string) error {
			_, err := b.DirectoryEntry(ctx, b.orgB, entry)
			return err
		},
		"UpdateDirectoryEntry": func(_, _, entry string) error {
			_, err := b.UpdateDirectoryEntry(ctx, b.orgB, entry, func(*storage.DirectoryEntry) error { never("an entry"); return nil })
			return err
		},
		"DeleteDirectoryEntry": func(_, _, entry string) error { return b.DeleteDirectoryEntry(ctx, b.orgB, entry) },
		"CreateServer": func(_, _, entry string) error {
			v := b.newServer(b.orgB, "Thief", "thief")
			v.DirectoryID = entry
			return b.CreateServer(ctx, v)
		},
		"Server": func(server, _, _ string) error {
			_, err := b.Server(ctx, b.orgB, server)
			return err
		},
		"UpdateServer": func(server, _, _ string) error {
			_, err := b.UpdateServer(ctx, b.orgB, server, func(*storage.Server) error { never("a server"); return nil })
			return err
		},
		"DeleteServer": func(server, _, _ string) error {
			_, err := b.DeleteServer(ctx, b.orgB, server, "", start)
			return err
		},
		"ObserveTools": func(server, _, _ string) error {
			_, err := b.ObserveTools(ctx, b.orgB, server, []storage.ObservedTool{tool("tool", "new")}, start)
			return err
		},
		"AcceptTools": func(server, _, _ string) error {
			_, err := b.AcceptTools(ctx, b.orgB, []storage.ToolAcceptance{{ServerID: server, Name: "tool", Hash: "hash"}}, b.userB1, start)
			return err
		},
		"OAuthClient": func(server, _, _ string) error {
			_, err := b.OAuthClient(ctx, b.orgB, server)
			return err
		},
		"PutOAuthClient": func(server, _, _ string) error { return b.PutOAuthClient(ctx, oauthClient(b.orgB, server), "") },
		"Connection": func(server, user, _ string) error {
			_, err := b.Connection(ctx, storage.ConnectionKey{OrganizationID: b.orgB, UserID: user, ServerID: server})
			return err
		},
		"CreateConnection, foreign server": func(server, _, _ string) error {
			return b.CreateConnection(ctx, connection(storage.ConnectionKey{OrganizationID: b.orgB, UserID: b.userB1, ServerID: server}))
		},
		"CreateConnection, foreign user": func(_, user, _ string) error {
			return b.CreateConnection(ctx, connection(storage.ConnectionKey{OrganizationID: b.orgB, UserID: user, ServerID: b.serverB.ID}))
		},
		"PutConnection": func(server, user, _ string) error {
			_, err := b.PutConnection(ctx, connection(storage.ConnectionKey{OrganizationID: b.orgB, UserID: user, ServerID: server}))
			return err
		},
		"UpdateConnection": func(server, user, _ string) error {
			_, err := b.UpdateConnection(ctx, storage.ConnectionKey{OrganizationID: b.orgB, UserID: user, ServerID: server},
				func(context.Context, *storage.Connection) error { never("a connection"); return nil })
			return err
		},
		"DeleteConnection": func(server, user, _ string) error {
			_, err := b.DeleteConnection(ctx, storage.ConnectionKey{OrganizationID: b.orgB, UserID: user, ServerID: server})
			return err
		},
		"CreateAttempt, foreign server": func(server, _, _ string) error {
			return b.CreateAttempt(ctx, attempt(storage.ConnectionKey{OrganizationID: b.orgB, UserID: b.userB1, ServerID: server}))
		},
		"CreateAttempt, foreign user": func(_, user, _ string) error {
			return b.CreateAttempt(ctx, attempt(storage.ConnectionKey{OrganizationID: b.orgB, UserID: user, ServerID: b.serverB.ID}))
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			foreign, unknown := call(b.serverA.ID, b.userA1, custom.ID), call(b.unknown, b.unknown, b.unknown)
			wantError(t, foreign, storage.ErrNotFound)
			wantError(t, unknown, storage.ErrNotFound)
			equal(t, foreign.Error(), unknown.Error())
		})
	}
	for name, call := range map[string]func(id string) error{
		"Approval": func(id string) error {
			_, err := b.Approval(ctx, b.orgB, id, start)
			return err
		},
		"DecideApproval": func(id string) error {
			_, err := b.DecideApproval(ctx, b.orgB, id, b.word(true)) // even by its own user
			return err
		},
		"DivertApproval": func(id string) error {
			_, err := b.DivertApproval(ctx, b.orgB, b.userA1, id, start)
			return err
		},
		"TakeApproval": func(id string) error {
			_, err := b.TakeApproval(ctx, b.orgB, b.userA1, id, approved.Binding, start)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			unknown := call(b.unknown)
			wantError(t, unknown, storage.ErrNotFound)
			for _, id := range []string{pending.ID, approved.ID} {
				foreign := call(id)
				wantError(t, foreign, storage.ErrNotFound)
				equal(t, foreign.Error(), unknown.Error())
			}
		})
	}
	for name, call := range map[string]func(agent, application, policy string) error{
		"AdoptApplication": func(_, application, _ string) error {
			_, err := b.AdoptApplication(ctx, storage.Agent{ID: newID(), OrganizationID: b.orgB, Application: storage.Application{ID: application}})
			return err
		},
		"Agent": func(agent, _, _ string) error {
			_, err := b.Agent(ctx, b.orgB, agent)
			return err
		},
		"UpdateAgent": func(agent, _, _ string) error {
			_, err := b.UpdateAgent(ctx, b.orgB, agent, start, func(*storage.Agent) error { never("an agent"); return nil })
			return err
		},
		"DeleteAgent": func(agent, _, _ string) error { return b.DeleteAgent(ctx, b.orgB, agent, b.userB1, start) },
		"CreateAgentCredential": func(agent, _, _ string) error {
			c := agentCredential(storage.Agent{ID: agent, OrganizationID: b.orgB})
			return b.CreateAgentCredential(ctx, c)
		},
		"AgentCredentials": func(agent, _, _ string) error {
			_, err := b.AgentCredentials(ctx, b.orgB, agent)
			return err
		},
		"AgentCredential": func(agent, _, _ string) error {
			id := b.unknown
			if agent == agentA.ID {
				id = credentialA.ID
			}
			_, err := b.AgentCredential(ctx, b.orgB, id)
			return err
		},
		"DeleteAgentCredential": func(agent, _, _ string) error { return b.DeleteAgentCredential(ctx, b.orgB, agent, credentialA.ID) },
		"UpdatePolicy": func(_, _, policy string) error {
			_, err := b.UpdatePolicy(ctx, b.orgB, policy, b.userB1, start, func(*storage.Policy) error { never("a policy"); return nil })
			return err
		},
		"UpdatePolicies": func(_, _, policy string) error {
			return b.UpdatePolicies(ctx, b.orgB, []string{policy}, b.userB1, start, func(*storage.Policy) error { never("a policy"); return nil })
		},
		"Policy": func(_, _, policy string) error {
			_, err := b.Policy(ctx, b.orgB, policy)
			return err
		},
		"PolicyByName": func(_, _, policy string) error {
			name := "unknown"
			if policy == policyA.ID {
				name = policyA.Name
			}
			_, err := b.PolicyByName(ctx, b.orgB, name)
			return err
		},
		"PolicyRevisions": func(_, _, policy string) error {
			_, err := b.PolicyRevisions(ctx, b.orgB, policy, storage.PageRequest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			foreign, unknown := call(agentA.ID, agentA.Application.ID, policyA.ID), call(b.unknown, b.unknown, b.unknown)
			wantError(t, foreign, storage.ErrNotFound)
			wantError(t, unknown, storage.ErrNotFound)
			equal(t, foreign.Error(), unknown.Error())
		})
	}
	_, err = b.UpdateServerAndClient(ctx, b.orgB, b.serverA.ID, func(*storage.Server) (bool, error) { never("a server"); return true, nil })
	wantError(t, err, storage.ErrNotFound)
	for _, server := range []string{b.serverA.ID, b.unknown} {
		c := oauthClient(b.orgB, server)
		wantConflict(t, b.PutOAuthClient(ctx, c, c.ClientID), "client_id") // likewise
	}

	// Ids are not free because another organization holds them.
	v := b.newServer(b.orgB, "Thief", "thief")
	v.ID = b.serverA.ID
	wantConflict(t, b.CreateServer(ctx, v), "id")
	p := b.newPolicy(b.orgB, "Thief")
	p.ID = policyA.ID
	_, err = b.CreatePolicy(ctx, p)
	wantConflict(t, err, "id")

	// O02: the objects that a policy of B names must be B's; and B cannot ask about A's servers and agents.
	p = b.newPolicy(b.orgB, "Thief", agentA.ID)
	p.ServerID = b.serverA.ID
	_, err = b.CreatePolicy(ctx, p)
	wantReferences(t, err, true, 0)
	_, err = b.AgentByClient(ctx, b.orgB, issuer, agentA.Application.ExternalID)
	wantError(t, err, storage.ErrNotFound)
	policies, err := b.ServerPolicies(ctx, b.orgB, b.serverA.ID)
	noError(t, err)
	equal(t, len(policies), 0)
	policies, err = b.OverlappingPolicies(ctx, b.orgB, b.serverA.ID, []string{agentA.ID}, "")
	noError(t, err)
	equal(t, len(policies), 0)
	summary, err := b.PolicySummary(ctx, b.orgB)
	noError(t, err)
	equal(t, len(summary), 0)
	counts, err := b.AgentCounts(ctx, b.orgB)
	noError(t, err)
	equal(t, counts.All, 0)

	// O04: lists and totals count only the caller's own records.
	mine := b.everything(t, b.orgB, b.userB1)
	equal(t, len(mine.Servers), 1)
	equal(t, mine.Servers[0].OrganizationID, b.orgB)
	equal(t, len(mine.Connections)+len(mine.Clients)+len(mine.Agents)+len(mine.Policies)+len(mine.Approvals)+len(mine.Pins)+len(mine.Audit), 0)
	equal(t, names(mine.Entries), []string{"Notes"})
	// A user of A asking inside B sees nothing of A's either.
	page, err := b.Servers(ctx, storage.ServerFilter{OrganizationID: b.orgB, UserID: b.userA1, Now: start, Page: storage.PageRequest{Number: 1, Limit: 10}})
	noError(t, err)
	equal(t, page.Items[0].ConnectionStatus, storage.ConnectionAvailable)

	equal(t, told, nil)
	equal(t, b.everything(t, b.orgA, b.userA1, b.userA2), before)
	_, err = b.TakeAttempt(ctx, a.StateHash, start)
	noError(t, err)
}

func testChanges(t *testing.T, b *bundle) {
	ctx := t.Context()
	var told []string
	cancel := b.OnChange(func(organization string) {
		switch organization {
		case b.orgA:
			told = append(told, "A")
		case b.orgB:
			told = append(told, "B")
		case "":
			told = append(told, "all")
		default:
			t.Errorf("unknown organization %q", organization)
		}
	})
	second := 0
	cancelSecond := b.OnChange(func(string) { second = len(told) }) // called after the first
	// check compares the changes reported since the last check with want. They must be reported before the method
	// returned.
	check := func(what string, err error, want ...string) {
		t.Helper()
		noError(t, err)
		if diff := cmp.Diff(want, told); diff != "" {
			t.Fatalf("%s (-want +got)\n%s", what, diff)
		}
		if len(want) > 0 && second != len(told) {
			t.Fatalf("%s: the second listener was called before the first", what)
		}
		told, second = nil, 0
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s was not refused", what)
		}
		check(what, nil)
	}

	_, err := b.ResolveOrganization(ctx, storage.OrganizationClaim{Issuer: issuer, ID: b.orgA, Slug: "acme", DerivedID: newID()}, start)
	check("ResolveOrganization", err)
	_, err = b.ResolveUser(ctx, storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: "x", DerivedID: newID(), Kind: storage.UserPerson}, start)
	check("ResolveUser", err)
	check("AddDataKey", b.AddDataKey(ctx, storage.DataKey{Version: 1, Wrapped: []byte{1}, CreatedAt: start}))
	check("Ping", b.Ping(ctx))

	check("SyncDirectory", b.SyncDirectory(ctx, storage.SourceConfig, []storage.DirectoryEntry{entry("New")}, start), "all")
	custom := b.customEntry(t, b.orgA, "Custom")
	check("CreateDirectoryEntry", nil, "A")
	_, err = b.UpdateDirectoryEntry(ctx, b.orgA, custom.ID, func(e *storage.DirectoryEntry) error { e.Name = "Renamed"; return nil })
	check("UpdateDirectoryEntry", err, "A")
	check("DeleteDirectoryEntry", b.DeleteDirectoryEntry(ctx, b.orgA, custom.ID), "A")
	refused("DeleteDirectoryEntry", b.DeleteDirectoryEntry(ctx, b.orgA, custom.ID))

	v := b.server(t, b.orgB, "New")
	check("CreateServer", nil, "B")
	refused("CreateServer", b.CreateServer(ctx, v))
	_, err = b.UpdateServer(ctx, b.orgB, v.ID, func(v *storage.Server) error { v.UpdatedAt = v.UpdatedAt.Add(time.Second); return nil })
	check("UpdateServer", err, "B")
	check("PutOAuthClient", b.PutOAuthClient(ctx, oauthClient(b.orgB, v.ID), ""), "B")
	_, err = b.UpdateServerAndClient(ctx, b.orgB, v.ID, func(*storage.Server) (bool, error) { return true, nil })
	check("UpdateServerAndClient", err, "B")
	_, err = b.DeleteServer(untold(ctx), b.orgB, v.ID, "", start)
	check("DeleteServer", err, "B")

	check("CreateConnection", b.CreateConnection(ctx, connection(b.connectionA1)), "A")
	b.connect(t, b.connectionA1)
	check("PutConnection", nil, "A")
	_, err = b.UpdateConnection(ctx, b.connectionA1, func(_ context.Context, c *storage.Connection) error { c.Scope = "new"; return nil })
	check("UpdateConnection", err, "A")
	_, err = b.UpdateConnection(ctx, b.connectionA1, func(_ context.Context, c *storage.Connection) error { return nil })
	check("UpdateConnection without a change", err)
	_, err = b.UpdateConnection(ctx, b.connectionA1, func(context.Context, *storage.Connection) error { return context.Canceled })
	refused("UpdateConnection", err)
	_, err = b.DeleteConnection(untold(ctx), b.connectionA1)
	check("DeleteConnection", err, "A")

	agent := b.agent(t, b.orgA, "Agent")
	check("CreateAgent", nil, "A")
	refused("CreateAgent", b.CreateAgent(ctx, agent))
	_, err = b.RegisterAgent(ctx, agent, 10)
	check("RegisterAgent of a registered one", err)
	registered, err := b.RegisterAgent(ctx, newAgent(b.orgA, "Registered"), 10)
	check("RegisterAgent", err, "A")
	check("DeleteAgent", b.DeleteAgent(ctx, b.orgA, registered.ID, "", start), "A")
	refused("DeleteAgent", b.DeleteAgent(ctx, b.orgA, registered.ID, "", start))
	registered.ID = newID()
	_, err = b.AdoptApplication(ctx, registered)
	check("AdoptApplication", err, "A")

	_, err = b.UpdateAgent(ctx, b.orgA, agent.ID, start, setChannel)
	check("UpdateAgent", err, "A")
	_, err = b.UpdateAgent(ctx, b.orgA, agent.ID, start, setChannel)
	check("UpdateAgent without a change", err)
	_, err = b.UpdateAgent(ctx, b.orgA, agent.ID, start, func(*storage.Agent) error { return context.Canceled })
	refused("UpdateAgent", err)

	credential := agentCredential(agent)
	check("CreateAgentCredential", b.CreateAgentCredential(ctx, credential))
	refused("CreateAgentCredential", b.CreateAgentCredential(ctx, credential))
	check("DeleteAgentCredential", b.DeleteAgentCredential(ctx, b.orgA, agent.ID, credential.ID), "A")
	refused("DeleteAgentCredential", b.DeleteAgentCredential(ctx, b.orgA, agent.ID, credential.ID))

	p := b.policy(t, "Policy", storage.PolicyDraft, agent.ID)
	check("CreatePolicy", nil, "A")
	_, err = b.CreatePolicy(ctx, p)
	refused("CreatePolicy", err)
	_, err = b.UpdatePolicy(ctx, b.orgA, p.ID, "", start, setStatus(storage.PolicyActive))
	check("UpdatePolicy", err, "A")
	_, err = b.UpdatePolicy(ctx, b.orgA, p.ID, "", start, setStatus(storage.PolicyActive))
	check("UpdatePolicy without a change", err)
	_, err = b.UpdatePolicy(ctx, b.orgA, p.ID, "", start, func(*storage.Policy) error { return context.Canceled })
	refused("UpdatePolicy", err)
	check("UpdatePolicies", b.UpdatePolicies(ctx, b.orgA, []string{p.ID}, "", start, setStatus(storage.PolicyInactive)), "A")
	check("UpdatePolicies without a change", b.UpdatePolicies(ctx, b.orgA, []string{p.ID}, "", start, setStatus(storage.PolicyInactive)))

	b.approved(t, "approved")
	check("CreateApproval and DecideApproval", nil)
	_, err = b.TakeApproval(ctx, b.orgA, b.userA1, "", b.newApproval("approved").Binding, start)
	check("TakeApproval", err)
	_, err = b.RevokeUser(ctx, b.orgA, b.userA1, start)
	check("RevokeUser", err, "A")
	_, err = b.RevokeUser(ctx, b.orgA, b.userA1, start)
	check("RevokeUser again", err)
	check("LogOutUser", b.LogOutUser(ctx, b.orgA, b.userA1, start), "A")
	_, err = b.OffboardUser(ctx, storage.OffboardRequest{OrganizationID: b.orgA, UserID: b.userA2, At: start})
	check("OffboardUser", err, "A")
	_, err = b.Offboarding(ctx, b.orgA, b.userA2, start)
	check("Offboarding", err)

	_, err = b.ObserveTools(ctx, b.orgA, b.serverA.ID, []storage.ObservedTool{tool("tool", "1")}, start)
	check("ObserveTools", err, "A")
	_, err = b.ObserveTools(ctx, b.orgA, b.serverA.ID, []storage.ObservedTool{tool("tool", "1")}, start)
	check("ObserveTools without a change", err)
	_, err = b.AcceptTools(ctx, b.orgA, []storage.ToolAcceptance{{ServerID: b.serverA.ID, Name: "tool", Hash: "1"}}, "", start)
	check("AcceptTools", err, "A")
	_, err = b.AcceptTools(ctx, b.orgA, []storage.ToolAcceptance{{ServerID: b.serverA.ID, Name: "tool", Hash: "2"}}, "", start)
	refused("AcceptTools", err)
	auditing, _ := b.audited(t, b.orgA, "event")
	check("RecordAudit", b.RecordAudit(auditing))
	check("AddAuditChunks", b.AddAuditChunks(ctx, []storage.AuditChunk{{OrganizationID: b.orgA, First: 1, Last: 1, Data: []byte{1}}}))

	// The change that a listener hears of is already visible to all.
	var seen error
	cancelThird := b.OnChange(func(string) { _, seen = b.Connection(ctx, b.connectionA1) })
	seen = storage.ErrNotFound
	b.connect(t, b.connectionA1)
	noError(t, seen)
	cancelThird()
	check("PutConnection", nil, "A")

	cancelSecond()
	cancel()
	cancel()
	b.connect(t, b.connectionA1)
	check("PutConnection after the end of the registration", nil)
}
