package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// audited returns a context that records one event of an organization.
func (b *bundle) audited(t *testing.T, organization, event string) (context.Context, *storage.Audited) {
	t.Helper()
	a := &storage.Audited{OrganizationID: organization, Node: "node", Entries: []storage.AuditEntry{
		{ID: newID(), At: start, Kind: storage.AuditAdmin, Event: event, UserID: b.userA1, Detail: map[string]any{"text": "<'\x00\u2028>"}},
	}}
	return storage.WithAudit(t.Context(), a), a
}

// chain reads the store's records for an organization, the oldest first, and checks that they are a sound chain with
// the end that the store reports.
func (b *bundle) chain(t *testing.T, organization string) (events []string) {
	t.Helper()
	records, err := b.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: organization})
	noError(t, err)
	slices.SortFunc(records, func(a, b storage.AuditRecord) int { return int(a.Sequence - b.Sequence) })
	follow := storage.AuditChain{OrganizationID: organization, Node: "node", Segment: storage.AuditStoreSegment}
	for _, r := range records {
		var e storage.AuditEntry
		noError(t, json.Unmarshal(r.Text, &e))
		equal(t, r.At, e.At.Truncate(time.Microsecond))
		r.At = time.Time{}
		equal(t, r, follow.Next(r.Text))
		events = append(events, e.Event)
	}
	chains, err := b.AuditChains(t.Context(), "node")
	noError(t, err)
	i := slices.IndexFunc(chains, func(c storage.AuditChain) bool {
		return c.OrganizationID == organization && c.Segment == storage.AuditStoreSegment
	})
	if i < 0 {
		equal(t, len(records), 0)
	} else {
		equal(t, chains[i], follow)
	}
	return events
}

func testAudit(t *testing.T, b *bundle) {
	var told []storage.AuditRecord
	ctx, a := b.audited(t, b.orgA, "first")
	a.Entries = append(a.Entries, storage.AuditEntry{ID: newID(), At: start.Add(time.Nanosecond), Kind: storage.AuditLogin, Event: "second", Arguments: json.RawMessage(`{"a":1}`)})
	a.Committed = func(records []storage.AuditRecord) {
		b.chain(t, b.orgA) // it is there for everyone
		told = append(told, records...)
	}

	// Reads, failures and writes that change nothing record nothing, and leave the entries to the next write.
	_, err := b.Server(ctx, b.orgA, b.serverA.ID)
	noError(t, err)
	wantConflict(t, b.CreateServer(ctx, b.newServer(b.orgA, b.serverA.Name, "other")), "name")
	refusal := errors.New("refused")
	_, err = b.UpdateServer(ctx, b.orgA, b.serverA.ID, func(s *storage.Server) error { s.Name = "never"; return refusal })
	wantError(t, err, refusal)
	_, err = b.UpdateServer(ctx, b.orgA, b.serverA.ID, func(*storage.Server) error { return nil })
	noError(t, err)
	_, err = b.UpdateServerAndClient(ctx, b.orgA, b.serverA.ID, func(*storage.Server) (bool, error) { return true, nil })
	noError(t, err)
	noError(t, b.UpdatePolicies(ctx, b.orgA, nil, "", start, setStatus(storage.PolicyActive)))
	_, err = b.DeleteConnection(untold(ctx), b.connectionA1)
	wantError(t, err, storage.ErrNotFound)
	equal(t, b.chain(t, b.orgA), nil)
	equal(t, len(told), 0)

	noError(t, b.CreateServer(ctx, b.newServer(b.orgA, "New", "new")))
	equal(t, b.chain(t, b.orgA), []string{"first", "second"})
	equal(t, len(told), 2)
	for i, r := range told {
		want, err := json.Marshal(a.Entries[i])
		noError(t, err)
		equal(t, string(r.Text), string(want))
		equal(t, []any{r.OrganizationID, r.Node, r.Segment, r.Sequence}, []any{b.orgA, "node", storage.AuditStoreSegment, int64(i + 1)})
	}
	equal(t, told[0].Previous, [32]byte{})

	// The entries are recorded once.
	noError(t, b.CreateServer(ctx, b.newServer(b.orgA, "Newer", "newer")))
	noError(t, b.RecordAudit(ctx))
	equal(t, len(b.chain(t, b.orgA)), 2)
	equal(t, len(told), 2)

	// These events write nothing else.
	ctx, _ = b.audited(t, b.orgA, "third")
	noError(t, b.RecordAudit(ctx))
	noError(t, b.RecordAudit(ctx))
	noError(t, b.RecordAudit(t.Context()))
	ctx, _ = b.audited(t, "", "the gateway's own")
	noError(t, b.RecordAudit(ctx))
	equal(t, b.chain(t, b.orgA), []string{"first", "second", "third"})
	equal(t, b.chain(t, ""), []string{"the gateway's own"})
	equal(t, b.chain(t, b.orgB), nil) // each organization has its own

	// A write that cannot be recorded is not done.
	ctx, a = b.audited(t, b.orgA, "broken")
	a.Entries[0].Arguments = json.RawMessage(`{`)
	if err := b.CreateServer(ctx, b.newServer(b.orgA, "Unrecorded", "unrecorded")); err == nil {
		t.Error("a write whose record failed was acknowledged")
	}
	_, err = b.ServerBySlug(t.Context(), b.orgA, "unrecorded")
	wantError(t, err, storage.ErrNotFound)
	a.Entries[0].Arguments = nil
	noError(t, b.CreateServer(ctx, b.newServer(b.orgA, "Unrecorded", "unrecorded")))
	equal(t, b.chain(t, b.orgA), []string{"first", "second", "third", "broken"})
}

// testAuditedWrites checks that each writing method records, in whatever way it writes.
func testAuditedWrites(t *testing.T, b *bundle) {
	job := b.newJob(b.orgA, b.userA1)
	agent, gone := b.agent(t, b.orgA, "Agent"), b.agent(t, b.orgA, "Gone")
	credential := agentCredential(agent)
	noError(t, b.CreateAgentCredential(t.Context(), credential))
	policy := b.policy(t, "Policy", storage.PolicyDraft)
	server := b.server(t, b.orgA, "Doomed")
	custom := b.customEntry(t, b.orgA, "Custom")
	held, approved := b.approval(t, "held"), b.approved(t, "approved")
	b.connect(t, b.connectionA1)
	pending := attempt(b.connectionA1)
	noError(t, b.CreateAttempt(t.Context(), pending))
	freed := newAgent(b.orgA, "Freed")
	noError(t, b.CreateAgent(t.Context(), freed))
	noError(t, b.DeleteAgent(t.Context(), b.orgA, freed.ID, "", start))
	tools := []storage.ObservedTool{{Name: "tool", Hash: "hash", Definition: json.RawMessage(`{}`)}}
	var want []string
	for _, c := range []struct {
		method string
		write  func(ctx context.Context) error
	}{
		{"RevokeUser", func(ctx context.Context) error { _, err := b.RevokeUser(ctx, b.orgA, b.userA2, start); return err }},
		{"OffboardUser", func(ctx context.Context) error {
			_, err := b.OffboardUser(ctx, storage.OffboardRequest{OrganizationID: b.orgA, UserID: b.userA2, At: start.Add(-time.Hour)})
			return err
		}},
		{"LogOutUser", func(ctx context.Context) error { return b.LogOutUser(ctx, b.orgA, b.userA2, start) }},
		{"SyncDirectory", func(ctx context.Context) error {
			return b.SyncDirectory(ctx, storage.SourceConfig, []storage.DirectoryEntry{entry("New")}, start)
		}},
		{"CreateDirectoryEntry", func(ctx context.Context) error {
			e := entry("Created")
			e.OrganizationID, e.Source = b.orgA, storage.SourceCustom
			return b.CreateDirectoryEntry(ctx, e)
		}},
		{"UpdateDirectoryEntry", func(ctx context.Context) error {
			_, err := b.UpdateDirectoryEntry(ctx, b.orgA, custom.ID, func(e *storage.DirectoryEntry) error { e.Name = "Renamed"; return nil })
			return err
		}},
		{"DeleteDirectoryEntry", func(ctx context.Context) error { return b.DeleteDirectoryEntry(ctx, b.orgA, custom.ID) }},
		{"SetDeclared", func(ctx context.Context) error {
			return b.SetDeclared(ctx, b.orgA, []storage.DeclaredObject{{Kind: "server", ID: server.ID}}, nil)
		}},
		{"CreateServer", func(ctx context.Context) error { return b.CreateServer(ctx, b.newServer(b.orgA, "New", "new")) }},
		{"UpdateServer", func(ctx context.Context) error {
			_, err := b.UpdateServer(ctx, b.orgA, server.ID, func(s *storage.Server) error { s.Name = "Renamed"; return nil })
			return err
		}},
		{"PutOAuthClient", func(ctx context.Context) error { return b.PutOAuthClient(ctx, oauthClient(b.orgA, server.ID), "") }},
		{"UpdateServerAndClient", func(ctx context.Context) error {
			_, err := b.UpdateServerAndClient(ctx, b.orgA, server.ID, func(*storage.Server) (bool, error) { return true, nil })
			return err
		}},
		{"UpdateConnection", func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := b.UpdateConnection(ctx, b.connectionA1, func(_ context.Context, c *storage.Connection) error { cancel(); c.Scope = "new"; return nil })
			return err
		}},
		{"CreateAttempt", func(ctx context.Context) error { return b.CreateAttempt(ctx, attempt(b.connectionA1)) }},
		{"TakeAttempt", func(ctx context.Context) error { _, err := b.TakeAttempt(ctx, pending.StateHash, start); return err }},
		{"DeleteConnection", func(ctx context.Context) error { _, err := b.DeleteConnection(untold(ctx), b.connectionA1); return err }},
		{"CreateConnection", func(ctx context.Context) error { return b.CreateConnection(ctx, connection(b.connectionA1)) }},
		{"PutConnection", func(ctx context.Context) error {
			_, err := b.PutConnection(untold(ctx), connection(b.connectionA1))
			return err
		}},
		{"CreateAgent", func(ctx context.Context) error { return b.CreateAgent(ctx, newAgent(b.orgA, "Created")) }},
		{"AdoptApplication", func(ctx context.Context) error { _, err := b.AdoptApplication(ctx, freed); return err }},
		{"RegisterAgent", func(ctx context.Context) error {
			_, err := b.RegisterAgent(ctx, newAgent(b.orgA, "Registered"), 100)
			return err
		}},
		{"CreateAgentCredential", func(ctx context.Context) error { return b.CreateAgentCredential(ctx, agentCredential(agent)) }},
		{"DeleteAgentCredential", func(ctx context.Context) error { return b.DeleteAgentCredential(ctx, b.orgA, agent.ID, credential.ID) }},
		{"UpdateAgent", func(ctx context.Context) error {
			_, err := b.UpdateAgent(ctx, b.orgA, agent.ID, start, func(a *storage.Agent) error { a.Application.Name = "Changed"; return nil })
			return err
		}},
		{"DeleteAgent", func(ctx context.Context) error { return b.DeleteAgent(ctx, b.orgA, gone.ID, "", start) }},
		{"CreatePolicy", func(ctx context.Context) error {
			_, err := b.CreatePolicy(ctx, b.newPolicy(b.orgA, "Created", agent.ID))
			return err
		}},
		{"UpdatePolicy", func(ctx context.Context) error {
			_, err := b.UpdatePolicy(ctx, b.orgA, policy.ID, "", start, setStatus(storage.PolicyActive))
			return err
		}},
		{"UpdatePolicies", func(ctx context.Context) error {
			return b.UpdatePolicies(ctx, b.orgA, []string{policy.ID}, "", start, setStatus(storage.PolicyInactive))
		}},
		{"CreateApproval", func(ctx context.Context) error {
			_, err := b.CreateApproval(ctx, b.newApproval("new"), storage.AskLimits{Pending: 10})
			return err
		}},
		{"DecideApproval", func(ctx context.Context) error {
			_, err := b.DecideApproval(ctx, b.orgA, held.ID, b.word(false))
			return err
		}},
		{"TakeApproval", func(ctx context.Context) error {
			_, err := b.TakeApproval(ctx, b.orgA, b.userA1, "", approved.Binding, start)
			return err
		}},
		{"ObserveTools", func(ctx context.Context) error {
			_, err := b.ObserveTools(ctx, b.orgA, b.serverA.ID, tools, start)
			return err
		}},
		{"AddJob", func(ctx context.Context) error { return b.AddJob(ctx, job, someJobs) }},
		{"CancelJob", func(ctx context.Context) error {
			_, err := b.CancelJob(ctx, b.orgA, job.ID, start)
			return err
		}},
		{"AcceptTools", func(ctx context.Context) error {
			_, err := b.AcceptTools(ctx, b.orgA, []storage.ToolAcceptance{{ServerID: b.serverA.ID, Name: "tool", Hash: "hash"}}, "", start)
			return err
		}},
		{"DeleteServer", func(ctx context.Context) error {
			_, err := b.DeleteServer(untold(ctx), b.orgA, server.ID, "", start)
			return err
		}},
		{"AddDataKey", func(ctx context.Context) error {
			return b.AddDataKey(ctx, storage.DataKey{Version: 1, Wrapped: []byte{1}})
		}},
	} {
		ctx, _ := b.audited(t, b.orgA, c.method)
		if err := c.write(ctx); err != nil {
			t.Fatalf("%s: %v", c.method, err)
		}
		want = append(want, c.method)
		equal(t, b.chain(t, b.orgA), want)
	}
	for method, write := range map[string]func(ctx context.Context) error{ // the second time there is nothing to do
		"ObserveTools": func(ctx context.Context) error {
			_, err := b.ObserveTools(ctx, b.orgA, b.serverA.ID, tools, start)
			return err
		},
		"CreateApproval": func(ctx context.Context) error {
			_, err := b.CreateApproval(ctx, b.newApproval("new"), storage.AskLimits{Pending: 10})
			return err
		},
		"RevokeUser": func(ctx context.Context) error { _, err := b.RevokeUser(ctx, b.orgA, b.userA2, start); return err },
		"UpdatePolicy": func(ctx context.Context) error {
			_, err := b.UpdatePolicy(ctx, b.orgA, policy.ID, "", start, setStatus(storage.PolicyInactive))
			return err
		},
	} {
		ctx, _ := b.audited(t, b.orgA, method)
		noError(t, write(ctx))
		equal(t, b.chain(t, b.orgA), want)
	}
}

// testAuditRace checks that concurrent writes make one chain without gaps, and that entries which several of them
// share are in only one of them.
func testAuditRace(t *testing.T, b *bundle) {
	shared, _ := b.audited(t, b.orgB, "shared")
	var all sync.WaitGroup
	for i := range 32 {
		ctx, _ := b.audited(t, b.orgA, "own")
		all.Go(func() {
			if err := b.CreateServer(ctx, b.newServer(b.orgA, fmt.Sprint("Server ", i), fmt.Sprint("server-", i))); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if err := b.CreateServer(shared, b.newServer(b.orgB, fmt.Sprint("Server ", i), fmt.Sprint("server-", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, len(b.chain(t, b.orgA)), 32)
	equal(t, len(b.chain(t, b.orgB)), 1)
}

func testAuditRecords(t *testing.T, b *bundle) {
	ctx := t.Context()
	for i, organization := range []string{b.orgA, b.orgB, b.orgA, b.orgA, b.orgA} {
		ctx, a := b.audited(t, organization, fmt.Sprint(i))
		a.Entries[0].At = start.Add(time.Duration(i/3) * time.Minute) // 0 to 2 at one time, 3 and 4 at another
		noError(t, b.RecordAudit(ctx))
	}
	later := start.Add(time.Minute)
	for name, c := range map[string]struct {
		filter storage.AuditFilter
		want   []string
	}{
		"everything":           {storage.AuditFilter{OrganizationID: b.orgA}, []string{"4", "3", "2", "0"}},
		"limit":                {storage.AuditFilter{OrganizationID: b.orgA, Limit: 3}, []string{"4", "3", "2"}},
		"from":                 {storage.AuditFilter{OrganizationID: b.orgA, From: later}, []string{"4", "3"}},
		"to":                   {storage.AuditFilter{OrganizationID: b.orgA, To: later}, []string{"2", "0"}},
		"a span":               {storage.AuditFilter{OrganizationID: b.orgA, From: start, To: later, Limit: 1}, []string{"2"}},
		"an empty span":        {storage.AuditFilter{OrganizationID: b.orgA, From: later, To: later}, nil},
		"another organization": {storage.AuditFilter{OrganizationID: b.orgB}, []string{"1"}},
		"no organization":      {storage.AuditFilter{}, nil},
		"an unknown one":       {storage.AuditFilter{OrganizationID: b.unknown}, nil},
	} {
		records, err := b.AuditRecords(ctx, c.filter)
		noError(t, err)
		var events []string
		for _, r := range records {
			var e storage.AuditEntry
			noError(t, json.Unmarshal(r.Text, &e))
			events = append(events, e.Event)
			equal(t, r.OrganizationID, c.filter.OrganizationID)
		}
		t.Run(name, func(t *testing.T) { equal(t, events, c.want) })
	}
}

func testAuditChunks(t *testing.T, b *bundle) {
	ctx := t.Context()
	chunk := func(organization, node string, first, last int64, from, to time.Duration) storage.AuditChunk {
		return storage.AuditChunk{OrganizationID: organization, Node: node, Segment: "0001", First: first, Last: last,
			From: start.Add(from), To: start.Add(to), Data: []byte(fmt.Sprint("\x00\xff", node, first))}
	}
	early, middle, late := chunk(b.orgA, "one", 1, 9, 0, time.Minute), chunk(b.orgA, "one", 10, 19, time.Minute, 2*time.Minute), chunk(b.orgA, "two", 1, 5, 0, 3*time.Minute)
	theirs := chunk(b.orgB, "one", 1, 2, 0, time.Hour)
	noError(t, b.AddAuditChunks(ctx, []storage.AuditChunk{middle, early, theirs}))
	noError(t, b.AddAuditChunks(ctx, nil))
	noError(t, b.AddAuditChunks(ctx, []storage.AuditChunk{middle, late})) // shipped twice
	again, longer := middle, middle
	again.Data, longer.Last = []byte("other"), 99
	for _, another := range []storage.AuditChunk{again, longer} {
		wantConflict(t, b.AddAuditChunks(ctx, []storage.AuditChunk{chunk(b.orgA, "three", 1, 5, 0, time.Minute), another}), "first")
	}
	for name, c := range map[string]struct {
		filter storage.AuditFilter
		want   []storage.AuditChunk
	}{
		"everything":           {storage.AuditFilter{OrganizationID: b.orgA}, []storage.AuditChunk{late, middle, early}},
		"limit":                {storage.AuditFilter{OrganizationID: b.orgA, Limit: 2}, []storage.AuditChunk{late, middle}},
		"from within":          {storage.AuditFilter{OrganizationID: b.orgA, From: start.Add(90 * time.Second)}, []storage.AuditChunk{late, middle}},
		"from the last moment": {storage.AuditFilter{OrganizationID: b.orgA, From: start.Add(2 * time.Minute)}, []storage.AuditChunk{late, middle}},
		"to the first moment":  {storage.AuditFilter{OrganizationID: b.orgA, To: start.Add(time.Minute)}, []storage.AuditChunk{late, early}},
		"another organization": {storage.AuditFilter{OrganizationID: b.orgB}, []storage.AuditChunk{theirs}},
		"no organization":      {storage.AuditFilter{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.AuditChunks(ctx, c.filter)
			noError(t, err)
			equal(t, got, c.want)
		})
	}

	ownCtx, _ := b.audited(t, b.orgA, "own")
	noError(t, b.RecordAudit(ownCtx))
	own, err := b.AuditChains(ctx, "node")
	noError(t, err)
	equal(t, len(own), 1)
	shipped := func(organization, node string, last int64) storage.AuditChain {
		return storage.AuditChain{OrganizationID: organization, Node: node, Segment: "0001", Sequence: last}
	}
	all, err := b.AuditChains(ctx, "")
	noError(t, err)
	equal(t, all, []storage.AuditChain{own[0], shipped(b.orgA, "one", 19), shipped(b.orgA, "two", 5), shipped(b.orgB, "one", 2)})
	one, err := b.AuditChains(ctx, "one")
	noError(t, err)
	equal(t, one, []storage.AuditChain{shipped(b.orgA, "one", 19), shipped(b.orgB, "one", 2)})
}

// testAuditPoison checks that chunks and checkpoints that cannot be stored are told apart from an unavailable store:
// the shipper leaves them out, and the others continue.
func testAuditPoison(t *testing.T, b *bundle) {
	ctx := t.Context()
	good := storage.AuditChunk{OrganizationID: b.orgB, Node: "one", Segment: "0001", First: 1, Last: 2, From: start, To: start, Data: []byte("x")}
	bad := good
	bad.OrganizationID, bad.Segment = b.orgA, "\x00"
	err := b.AddAuditChunks(ctx, []storage.AuditChunk{good, bad})
	kept := err == nil // not every store refuses such text
	if !kept && !storage.Unstorable(err) {
		t.Errorf("refused for %v", err)
	}
	noError(t, b.AddAuditChunks(ctx, []storage.AuditChunk{good}))
	got, err := b.AuditChunks(ctx, storage.AuditFilter{OrganizationID: b.orgB})
	noError(t, err)
	equal(t, got, []storage.AuditChunk{good})
	got, err = b.AuditChunks(ctx, storage.AuditFilter{OrganizationID: b.orgA})
	noError(t, err)
	equal(t, len(got) == 1, kept)
	err = b.AddAuditCheckpoint(ctx, storage.AuditCheckpoint{Node: "one", Segment: "\x00", Number: 1, At: start, Data: []byte{0}, Signature: []byte{0}})
	equal(t, err == nil, kept)
	if !kept && !storage.Unstorable(err) {
		t.Errorf("refused for %v", err)
	}
}

func testAuditCheckpoints(t *testing.T, b *bundle) {
	ctx := t.Context()
	checkpoint := func(node string, number int64) storage.AuditCheckpoint {
		return storage.AuditCheckpoint{Node: node, Segment: fmt.Sprintf("%04d", number), Number: number, At: start, Data: []byte{0, byte(number)}, Signature: []byte{0xff, 0}}
	}
	a1, a2, b1 := checkpoint("a", 1), checkpoint("a", 2), checkpoint("b", 1)
	for _, c := range []storage.AuditCheckpoint{a2, b1, a1} {
		noError(t, b.AddAuditCheckpoint(ctx, c))
	}
	twin := checkpoint("a", 2)
	twin.Data = []byte("other")
	wantConflict(t, b.AddAuditCheckpoint(ctx, twin), "number")
	got, err := b.AuditCheckpoint(ctx, "a", 2)
	noError(t, err)
	equal(t, got, a2)
	for node, number := range map[string]int64{"a": 3, "b": 2, "c": 1, "": 1} {
		_, err := b.AuditCheckpoint(ctx, node, number)
		wantError(t, err, storage.ErrNotFound)
	}
	for node, want := range map[string][]storage.AuditCheckpoint{"": {a1, a2, b1}, "a": {a1, a2}, "c": nil} {
		got, err := b.AuditCheckpoints(ctx, node)
		noError(t, err)
		equal(t, got, want)
	}
}
