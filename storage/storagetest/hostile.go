package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// hostileTexts lists SQL injections, pattern characters, encodings and bytes that end strings elsewhere.
var hostileTexts = []string{
	`'`, `''`, `"`, "`", `\`, `\'`, `%`, `_`, `%%`, `;`, `--`, `/*`, `*/`, `?`, `$1`, `:name`, `@p1`, `?1`,
	`' OR '1'='1`, `' OR 1=1 --`, `" OR ""="`, `') OR ('1'='1`, `1; DROP TABLE servers; --`, `'; DELETE FROM connections; --`,
	`' UNION SELECT id, wrapped FROM data_keys --`, `' AND (SELECT count(*) FROM users) > 0 --`, `x' || (SELECT issuer FROM organizations) || '`,
	`'; ATTACH DATABASE '/tmp/x' AS x; --`, `'; COPY users TO PROGRAM 'id'; --`, `'; SELECT pg_sleep(10); --`, `$$ OR 1=1 $$`, `E'\x27'`,
	`admin'/**/OR/**/1=1#`, `%27%20OR%201=1`, `&#39; OR 1=1`, `\u0027 OR 1=1`, "\u02bc OR 1=1", "\uff07 OR 1=1", "\u2019",
	`../../etc/passwd`, `{{7*7}}`, `${jndi:ldap://x}`, `{env.HOME}`, "line\nbreak", "tab\t", "\r\n", "\u202e", "e\u0301", "\U0001f511",
	"\x00", "before\x00after", "\xff\xfe", "\xed\xa0\x80", strings.Repeat("a", 10_000), `(a+)+$`, `[[:alpha:]]*`, " ", "null", "NULL", "0", "true",
}

// mayRefuse reports whether a store may refuse a record for a text of it.
func mayRefuse(text string) bool { return !utf8.ValidString(text) || strings.Contains(text, "\x00") }

// testHostileText stores every text in every member that takes text, and reads the same text back. A store may refuse
// a text as a whole (PostgreSQL has no NUL); it must not store another one.
func testHostileText(t *testing.T, b *bundle) {
	ctx := t.Context()
	bystander := b.everything(t, b.orgB, b.userB1)
	for i, text := range hostileTexts {
		t.Run(fmt.Sprintf("%d %.30q", i, text), func(t *testing.T) {
			e := entry(text + " entry")
			e.OrganizationID, e.Source, e.CreatedAt, e.UpdatedAt = b.orgA, storage.SourceCustom, start, start
			e.Description, e.Icon, e.URL, e.Slug, e.EventsURL = text, text, text, text, text
			e.AuthParams = storage.AuthParams{In: "header", Name: "X", Prefix: "y"}
			err := b.CreateDirectoryEntry(ctx, e)
			if mayRefuse(text) && errors.Is(err, storage.ErrText) {
				return
			}
			noError(t, err)
			got, err := b.DirectoryEntry(ctx, b.orgA, e.ID)
			noError(t, err)
			equal(t, got, e)

			v := b.newServer(b.orgA, fmt.Sprintf("%s server %d", text, i), text+"-server")
			v.ClientID, v.CreatedBy, v.DirectoryID, v.Entry = text, text, e.ID, e
			noError(t, b.CreateServer(ctx, v))
			read, err := b.ServerBySlug(ctx, b.orgA, v.Slug)
			noError(t, err)
			equal(t, read, v)

			key := storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA1, ServerID: v.ID}
			c := connection(key)
			c.ClientID, c.Scope, c.Origin, c.Resource, c.Issuer, c.Reason = text, text, text, text, text, text
			c, err = b.PutConnection(untold(ctx), c)
			noError(t, err)
			stored, err := b.Connection(ctx, key)
			noError(t, err)
			equal(t, stored, c)
			stored, err = b.UpdateConnection(ctx, key, func(_ context.Context, c *storage.Connection) error { c.Reason += text; return nil })
			noError(t, err)
			equal(t, stored.Reason, text+text)

			a := attempt(key)
			a.Issuer, a.StateHash = text, []byte(text+"state")
			noError(t, b.CreateAttempt(ctx, a))
			taken, err := b.TakeAttempt(ctx, a.StateHash, start)
			noError(t, err)
			equal(t, taken, a)

			agent := newAgent(b.orgA, text)
			agent.Application.ExternalID, agent.Application.Description = text+" client", text
			noError(t, b.CreateAgent(ctx, agent))
			client, err := b.AgentByClient(ctx, b.orgA, issuer, agent.Application.ExternalID)
			noError(t, err)
			equal(t, client, agent)
			credential := agentCredential(agent)
			credential.Name, credential.Keys = text, text
			noError(t, b.CreateAgentCredential(ctx, credential))
			kept, err := b.AgentCredential(ctx, b.orgA, credential.ID)
			noError(t, err)
			equal(t, kept.AgentCredential, credential)
			b.hostilePolicy(t, v.ID, text)
			held := b.newApproval(text)
			held.Client, held.Tool, held.ArgumentsDigest, held.PolicyID, held.Rule = text, text, text, text, text
			created, err := b.CreateApproval(ctx, held, storage.AskLimits{Pending: 1})
			noError(t, err)
			equal(t, created, held)
			word := b.word(true)
			word.Client = text
			decided, err := b.DecideApproval(ctx, b.orgA, held.ID, word)
			noError(t, err)
			equal(t, decided.DecidedClient, text)
			used, err := b.TakeApproval(ctx, b.orgA, b.userA1, "", held.Binding, start.Add(2*time.Minute))
			noError(t, err)
			equal(t, used.ID, held.ID)

			_, err = b.ObserveTools(ctx, b.orgA, v.ID, []storage.ObservedTool{{Name: text, Hash: text, Definition: json.RawMessage(text)}}, start)
			noError(t, err)
			accepted, err := b.AcceptTools(ctx, b.orgA, []storage.ToolAcceptance{{ServerID: v.ID, Name: text, Hash: text}}, text, start)
			noError(t, err)
			pin := accepted[0]
			listed, err := b.Tools(ctx, storage.ToolFilter{OrganizationID: b.orgA, ServerID: v.ID, After: storage.ToolPlace{ServerID: v.ID}, Limit: 2})
			noError(t, err)
			equal(t, listed, []storage.ServerTool{{ToolPin: pin, Slug: v.Slug}})
			listed, err = b.Tools(ctx, storage.ToolFilter{OrganizationID: b.orgA, ServerID: v.ID, After: storage.ToolPlace{ServerID: v.ID, Name: text}, State: storage.ToolState(text), Limit: 2})
			noError(t, err)
			equal(t, len(listed), 0)
			pins, err := b.ToolPins(ctx, b.orgA, v.ID)
			noError(t, err)
			equal(t, pins, []storage.ToolPin{pin})
			equal(t, []string{pin.Name, pin.Hash, string(pin.Definition), string(pin.SeenDefinition), pin.AcceptedBy}, []string{text, text, text, text, text})
			j := b.newJob(b.orgA, b.userA1)
			j.Kind, j.Subject = storage.JobKind(text), text
			noError(t, b.AddJob(ctx, j, len(hostileTexts)))
			j, err = b.ClaimJob(ctx, b.orgA, j.ID, text, len(hostileTexts), start, start.Add(time.Hour))
			noError(t, err)
			j.State, j.SealedInput, j.Result, j.Problem, j.EndedAt = storage.JobDone, nil, json.RawMessage(text), text, start
			noError(t, b.EndJob(ctx, j))
			over, err := b.Job(ctx, b.orgA, j.ID)
			noError(t, err)
			equal(t, over, j)
			equal(t, []string{string(over.Kind), over.Subject, over.Node}, []string{text, text, text})
			chunk := storage.AuditChunk{OrganizationID: text, Node: text, Segment: text, First: 1, Last: 2, From: start, To: start, Data: []byte(text)}
			noError(t, b.AddAuditChunks(ctx, []storage.AuditChunk{chunk}))
			chunks, err := b.AuditChunks(ctx, storage.AuditFilter{OrganizationID: text})
			noError(t, err)
			equal(t, chunks, []storage.AuditChunk{chunk})
			auditing, event := b.audited(t, text, text)
			event.Node = text
			noError(t, b.RecordAudit(auditing))
			records, err := b.AuditRecords(ctx, storage.AuditFilter{OrganizationID: text})
			noError(t, err)
			equal(t, len(records), 1)
			equal(t, records[0].Sum(), records[0].Hash)
			equal(t, []string{records[0].OrganizationID, records[0].Node}, []string{text, text})
			checkpoint := storage.AuditCheckpoint{Node: text, Segment: text, Number: 1, At: start, Data: []byte(text), Signature: []byte(text)}
			noError(t, b.AddAuditCheckpoint(ctx, checkpoint))
			checkpoints, err := b.AuditCheckpoints(ctx, text)
			noError(t, err)
			equal(t, checkpoints, []storage.AuditCheckpoint{checkpoint})

			id := newID()
			o, err := b.ResolveOrganization(ctx, storage.OrganizationClaim{Issuer: issuer + text, ID: id, Slug: text, DerivedID: newID()}, start)
			noError(t, err)
			equal(t, o, storage.Organization{ID: id, Issuer: issuer + text, Slug: text, CreatedAt: start})
			u, err := b.ResolveUser(ctx, storage.UserClaim{OrganizationID: id, Issuer: issuer + text, Subject: text, DerivedID: newID(),
				Kind: storage.UserPerson, Name: text, Email: text}, start)
			noError(t, err)
			equal(t, []string{u.Subject, u.Name, u.Email}, []string{text, text, text})
		})
	}
	equal(t, b.everything(t, b.orgB, b.userB1), bystander)
	noError(t, b.Ping(ctx))
}

// hostilePolicy stores a policy made of text, where that is UTF-8: JSON could not hold other text, which is refused.
func (b *bundle) hostilePolicy(t *testing.T, server, text string) {
	t.Helper()
	ctx := t.Context()
	condition, err := json.Marshal(map[string]any{"match": map[string]string{"expr": text}})
	noError(t, err)
	p := b.newPolicy(b.orgA, text+" policy")
	p.ServerID, p.Description, p.SupportContact, p.Tags, p.CreatedBy = server, text, text, []string{text, ""}, text
	p.Rules = []storage.Rule{{Name: text, Description: text, Actions: []string{text}, RolesGroups: []string{text}, Condition: condition}}
	_, err = b.CreatePolicy(ctx, p)
	if !utf8.ValidString(text) {
		if err == nil {
			t.Error("a policy that is not UTF-8 was stored")
		}
		return
	}
	noError(t, err)
	read, err := b.PolicyByName(ctx, b.orgA, p.Name)
	noError(t, err)
	equal(t, read.Policy, p)
	renamed, err := b.UpdatePolicy(ctx, b.orgA, p.ID, text, start, func(p *storage.Policy) error { p.Description += text + "!"; return nil })
	noError(t, err)
	revisions, err := b.PolicyRevisions(ctx, b.orgA, p.ID, storage.PageRequest{})
	noError(t, err)
	equal(t, revisions.Items[0].Policy, renamed.Policy)
	equal(t, revisions.Items[1].Policy, p)
}

// testHostileSearch uses every text as id, slug, search and filter. It finds only records that contain it literally,
// and is never an error of the store.
func testHostileSearch(t *testing.T, b *bundle) {
	ctx := t.Context()
	b.connect(t, b.connectionA1)
	b.policy(t, "Policy A", storage.PolicyActive, b.agent(t, b.orgA, "Agent A").ID)
	approved := b.approved(t, "approved")
	before := b.everything(t, b.orgA, b.userA1, b.userA2)
	for i, text := range hostileTexts {
		t.Run(fmt.Sprintf("%d %.30q", i, text), func(t *testing.T) {
			want := 0
			if strings.Contains("shared name", text) || strings.Contains(b.serverA.Slug, text) {
				want = 1
			}
			page := storage.PageRequest{Number: 1, Limit: 10}
			found, err := b.Servers(ctx, storage.ServerFilter{OrganizationID: b.orgA, UserID: text, Search: text, Now: start, Page: page})
			noError(t, err)
			equal(t, found.Total, want)
			for _, f := range []storage.ServerFilter{
				{OrganizationID: text}, {OrganizationID: b.orgA, ID: text}, {OrganizationID: b.orgA, Slug: text},
				{OrganizationID: b.orgA, Status: []storage.ServerStatus{storage.ServerStatus(text)}},
				{OrganizationID: b.orgA, ConnectionStatuses: []storage.ConnectionStatus{storage.ConnectionStatus(text)}},
			} {
				f.Now, f.Page = start, page
				found, err := b.Servers(ctx, f)
				noError(t, err)
				equal(t, found.Total, 0)
			}
			entries, err := b.DirectoryEntries(ctx, storage.DirectoryFilter{OrganizationID: text, Search: "notes", Page: page})
			noError(t, err)
			equal(t, names(entries.Items), []string{"Notes"})
			_, err = b.DirectoryEntries(ctx, storage.DirectoryFilter{OrganizationID: b.orgA, Search: text, Page: page})
			noError(t, err)

			want = 0
			if strings.Contains("policy a", text) || strings.Contains("about policy a", text) || strings.Contains("help@example.com", text) {
				want = 1
			}
			policies, err := b.Policies(ctx, storage.PolicyFilter{OrganizationID: b.orgA, Search: text, Page: page})
			noError(t, err)
			equal(t, policies.Total, want)
			for _, f := range []storage.PolicyFilter{
				{OrganizationID: text}, {OrganizationID: b.orgA, Status: []storage.PolicyStatus{storage.PolicyStatus(text)}},
				{OrganizationID: b.orgA, ServerIDs: []string{text}}, {OrganizationID: b.orgA, AgentIDs: []string{text}},
			} {
				f.Page = page
				found, err := b.Policies(ctx, f)
				noError(t, err)
				equal(t, found.Total, 0)
			}
			agents, err := b.Agents(ctx, storage.AgentFilter{OrganizationID: text, Page: page})
			noError(t, err)
			equal(t, agents.Total, 0)
			agents, err = b.Agents(ctx, storage.AgentFilter{OrganizationID: b.orgA, Types: []storage.AgentType{storage.AgentType(text)}, Page: page})
			noError(t, err)
			equal(t, agents.Total, 0)
			_, err = b.Agents(ctx, storage.AgentFilter{OrganizationID: b.orgA, Search: text, Page: page})
			noError(t, err)
			of, err := b.ServerPolicies(ctx, b.orgA, text)
			noError(t, err)
			equal(t, len(of), 0)
			of, err = b.OverlappingPolicies(ctx, b.orgA, b.serverA.ID, []string{text}, text)
			noError(t, err)
			equal(t, len(of), 0)
			_, err = b.Policy(ctx, b.orgA, text)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.PolicyByName(ctx, b.orgA, text)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.Agent(ctx, b.orgA, text)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.AgentByClient(ctx, b.orgA, text, text)
			wantError(t, err, storage.ErrNotFound)
			wantError(t, b.DeleteAgent(ctx, b.orgA, text, text, start), storage.ErrNotFound)
			_, err = b.UpdateAgent(ctx, b.orgA, text, start, setChannel)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.Users(ctx, storage.UserFilter{OrganizationID: b.orgA, Search: text, Limit: 10})
			noError(t, err)
			_, err = b.Users(ctx, storage.UserFilter{OrganizationID: text, After: text, Limit: 10})
			noError(t, err)
			connected, err := b.ServerConnections(ctx, storage.ConnectionFilter{OrganizationID: b.orgA, ServerID: text, After: text, Limit: 10})
			noError(t, err)
			equal(t, len(connected), 0)
			_, err = b.AgentCredential(ctx, b.orgA, text)
			wantError(t, err, storage.ErrNotFound)
			_, _, err = b.CredentialsOfClient(ctx, text)
			wantError(t, err, storage.ErrNotFound)
			wantError(t, b.DeleteAgentCredential(ctx, b.orgA, text, text), storage.ErrNotFound)
			_, err = b.UpdatePolicy(ctx, b.orgA, text, text, start, setStatus(storage.PolicyArchived))
			wantError(t, err, storage.ErrNotFound)

			for _, f := range []storage.ApprovalFilter{
				{OrganizationID: text}, {OrganizationID: b.orgA, UserID: text}, {OrganizationID: b.orgA, Status: []storage.ApprovalStatus{storage.ApprovalStatus(text)}},
			} {
				f.Now, f.Page = start, page
				found, err := b.Approvals(ctx, f)
				noError(t, err)
				equal(t, found.Total, 0)
			}
			_, err = b.Approval(ctx, b.orgA, text, start)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.DecideApproval(ctx, b.orgA, text, b.word(true))
			wantError(t, err, storage.ErrNotFound)
			_, err = b.TakeApproval(ctx, b.orgA, b.userA1, text, approved.Binding, start)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.TakeApproval(ctx, b.orgA, b.userA1, "", []byte(text), start)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.RevokeUser(ctx, b.orgA, text, start)
			wantError(t, err, storage.ErrNotFound)
			wantError(t, b.LogOutUser(ctx, b.orgA, text, start), storage.ErrNotFound)
			_, err = b.OffboardUser(ctx, storage.OffboardRequest{OrganizationID: b.orgA, UserID: text, At: start})
			wantError(t, err, storage.ErrNotFound)
			_, err = b.DivertApproval(ctx, b.orgA, text, b.userA1, start)
			wantError(t, err, storage.ErrNotFound)
			_, _, err = b.ApprovalStatus(ctx, b.orgA, text, start)
			wantError(t, err, storage.ErrNotFound)

			_, err = b.Server(ctx, b.orgA, text)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.Server(ctx, text, b.serverA.ID)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.ServerBySlug(ctx, b.orgA, text)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.DeleteServer(ctx, b.orgA, text, "", start)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.User(ctx, b.orgA, text)
			wantError(t, err, storage.ErrNotFound)
			_, err = b.Connection(ctx, storage.ConnectionKey{OrganizationID: b.orgA, UserID: text, ServerID: b.serverA.ID})
			wantError(t, err, storage.ErrNotFound)
			_, err = b.DeleteConnection(ctx, storage.ConnectionKey{OrganizationID: b.orgA, UserID: text, ServerID: text})
			wantError(t, err, storage.ErrNotFound)
			wantError(t, b.DeleteDirectoryEntry(ctx, b.orgA, text), storage.ErrNotFound)
			_, err = b.TakeAttempt(ctx, []byte(text), start)
			wantError(t, err, storage.ErrNotFound)
		})
	}
	equal(t, b.everything(t, b.orgA, b.userA1, b.userA2), before)
}

// testContexts checks that an ended context ends calls, with the errors that callers distinguish.
func testContexts(t *testing.T, b *bundle) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, stop := context.WithDeadline(t.Context(), time.Now())
	defer stop()
	b.connect(t, b.connectionA1)
	for ctx, want := range map[context.Context]error{canceled: context.Canceled, expired: storage.ErrUnavailable} {
		_, err := b.Server(ctx, b.orgA, b.serverA.ID)
		wantError(t, err, want)
		_, err = b.Servers(ctx, storage.ServerFilter{OrganizationID: b.orgA, Now: start, Page: storage.PageRequest{Number: 1, Limit: 10}})
		wantError(t, err, want)
		_, err = b.UpdateServer(ctx, b.orgA, b.serverA.ID, func(*storage.Server) error { return nil })
		wantError(t, err, want)
		_, err = b.DeleteConnection(untold(ctx), b.connectionA1)
		wantError(t, err, want)
		_, err = b.TakeAttempt(ctx, []byte("x"), start)
		wantError(t, err, want)
		wantError(t, b.Ping(ctx), want)
	}
	_, err := b.Connection(t.Context(), b.connectionA1)
	noError(t, err)
}
