// Package storagetest tests the behaviour of a store: each promise in package storage's comments has a case here, and
// every store passes all of them. A driver's tests call Run.
package storagetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/durward-gateway/durward/storage"
)

// Run checks a store. open returns an empty one that is closed when its test ends; every case opens its own.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, *bundle)
	}{
		{"organizations", testOrganizations},
		{"organizations/removed", testRemovedOrganizations},
		{"organizations/concurrent first sight", testOrganizationRace},
		{"users", testUsers},
		{"users/concurrent first sight", testUserRace},
		{"users/facts", testUserFacts},
		{"users/lists", testUserLists},
		{"users/revoked", testRevokeUser},
		{"users/logged out", testLogOutUser},
		{"users/offboarded", testOffboardUser},
		{"users/offboarded, or not at all", testOffboardAtomic},
		{"directory/sync", testSyncDirectory},
		{"directory/custom entries", testCustomEntries},
		{"directory/lists", testDirectoryLists},
		{"servers/create and read", testServers},
		{"servers/unique names and slugs", testServerConflicts},
		{"servers/concurrent creation of one name", testServerNameRace},
		{"servers/notes", testNoteServer},
		{"servers/update", testUpdateServer},
		{"servers/delete", testDeleteServer},
		{"servers/lists", testServerLists},
		{"servers/G02 paging under concurrent inserts", testPagingUnderInserts},
		{"servers/OAuth clients", testOAuthClients},
		{"connections/status", testConnectionStatus},
		{"connections/life", testConnections},
		{"connections/of a server", testServerConnections},
		{"connections/update", testUpdateConnection},
		{"connections/A12 edits are exclusive", testExclusiveEdits},
		{"connections/A12 an edit outlives its caller", testEditOutlivesCaller},
		{"connections/an edit's panic releases the connection", testEditPanics},
		{"connections/an edit of what went meanwhile", testEditOfDeleted},
		{"connections/waiting for an edit ends with the context", testEditWaitEnds},
		{"attempts", testAttempts},
		{"attempts/taken exactly once", testAttemptRace},
		{"data keys", testDataKeys},
		{"agents/create and read", testAgents},
		{"agents/of known applications", testAdoptApplication},
		{"agents/registered on first sight", testRegisterAgent},
		{"agents/lists", testAgentLists},
		{"agents/update", testUpdateAgent},
		{"agents/delete", testDeleteAgent},
		{"agents/deleted while policies come to name it", testDeleteAgentRace},
		{"agents/credentials", testAgentCredentials},
		{"agents/credentials are few", testAgentCredentialsBounded},
		{"policies/create and read", testPolicies},
		{"policies/update", testUpdatePolicy},
		{"policies/several at once", testUpdatePolicies},
		{"policies/names", testPolicyNames},
		{"policies/concurrent creation of one name", testPolicyNameRace},
		{"policies/O02 references", testPolicyReferences},
		{"policies/overlap", testPolicyOverlap},
		{"policies/M23 concurrent overlap", testPolicyOverlapRace},
		{"policies/lists", testPolicyLists},
		{"policies/of a server", testServerPolicies},
		{"policies/revisions", testPolicyRevisions},
		{"together/all or nothing", testTogether},
		{"policies/archived with their server", testDeleteServerPolicies},
		{"approvals/life", testApprovals},
		{"approvals/decisions", testDecideApproval},
		{"approvals/W30 diverted", testDivertApproval},
		{"approvals/by others", testForeignApprovals},
		{"users/facts of browsers", testSessionFacts},
		{"conversations/life", testConversations},
		{"conversations/bounded", testConversationsBounded},
		{"holds", testHolds},
		{"logins/codes", testLogins},
		{"logins/refresh tokens", testRefreshLogin},
		{"logins/refreshed at one moment", testRefreshLoginRace},
		{"logins/facts renewed", testRenewLogin},
		{"logins/ID tokens renewed", testBeginRenewal},
		{"logins/lists", testLoginLists},
		{"logins/bounded", testLoginsBounded},
		{"logins/waiting", testWaitingLogins},
		{"logins/asserted", testAssertLogin},
		{"logins/asserted of people who may not come in", testAssertLoginRefused},
		{"logins/asserted, bounded", testAssertedLoginsBounded},
		{"consents", testConsents},
		{"registered clients", testRegisteredClients},
		{"signing keys", testSigningKeys},
		{"signing keys/concurrent first ones", testSigningKeyRace},
		{"assertions", testAssertions},
		{"assertions/presented to several nodes", testAssertionRace},
		{"declared objects", testDeclared},
		{"provisioned/users", testProvisionedUsers},
		{"provisioned/users of the gateway", testProvisionedStanding},
		{"provisioned/another address", testProvisionedLink},
		{"provisioned/groups", testProvisionedGroups},
		{"provisioned/bounded", testProvisionedBounded},
		{"provisioned/O01 another organization's ids", testProvisionedIsolation},
		{"provisioned/Q01 hostile text is data", testProvisionedHostileText},
		{"tasks/life", testTasks},
		{"tasks/given again", testTaskGivenAgain},
		{"tasks/bounded", testTasksBounded},
		{"jobs/life", testJobs},
		{"jobs/bounded", testJobsBounded},
		{"jobs/claimed by several nodes", testJobRace},
		{"revocations/life", testRevocations},
		{"revocations/endings", testEndings},
		{"announcements/life", testAnnouncements},
		{"announcements/claimed by one node", testAnnouncementRace},
		{"announcements/shares", testAnnouncementShare},
		{"announcements/addressees", testAddressees},
		{"approvals/a call tried again", testApprovalAgain},
		{"approvals/M16 pending ones are few", testApprovalCap},
		{"approvals/lists", testApprovalLists},
		{"approvals/arguments", testApprovalArguments},
		{"approvals/M15 taken exactly once", testTakeApprovalRace},
		{"approvals/decided exactly once", testDecideApprovalRace},
		{"approvals/forgotten", testApprovalsForgotten},
		{"approvals/O15 end with what they are for", testApprovalsEnd},
		{"tool pins", testToolPins},
		{"tool pins/of all servers", testTools},
		{"tool pins/M13 concurrent first sights", testToolPinRace},
		{"tool pins/M14 many at once", testToolPinFlood},
		{"audit/in the transaction of the write", testAudit},
		{"audit/every write", testAuditedWrites},
		{"audit/concurrent writes", testAuditRace},
		{"audit/records", testAuditRecords},
		{"audit/chunks and chains", testAuditChunks},
		{"audit/checkpoints", testAuditCheckpoints},
		{"audit/what cannot be kept", testAuditPoison},
		{"API keys/create and read", testAPIKeys},
		{"API keys/of an agent", testAPIKeyOfAgent},
		{"API keys/K03 a shared prefix", testAPIKeyPrefixes},
		{"API keys/valid", testAPIKeyValid},
		{"API keys/K05 disabled and revoked", testAPIKeyLife},
		{"API keys/edits and new secrets", testUpdateAPIKey},
		{"API keys/uses", testNoteAPIKey},
		{"API keys/end with their user's tokens", testRevokeUserKeys},
		{"API keys/made while their user is revoked", testRevokeUserKeyRace},
		{"API keys/K08 revoked with its record", testRevocationRecord},
		{"rate limits/T10 one for a scope and traffic", testRateLimits},
		{"rate limits/update and delete", testUpdateRateLimit},
		{"rate limits/concurrent writes of one scope", testRateLimitRace},
		{"models/providers", testProviders},
		{"models/mappings", testMappings},
		{"models/smart models", testSmartModels},
		{"models/in use", testModelsInUse},
		{"models/concurrent writes of one alias", testAliasRace},
		{"models/concurrent references and deletions", testModelReferenceRace},
		{"usage/sums", testUsage},
		{"usage/refused rows", testUsageRefused},
		{"usage/nodes", testUsageNodes},
		{"usage/overflow", testUsageOverflow},
		{"usage/concurrent nodes", testUsageRace},
		{"budgets/create, update, delete", testBudgets},
		{"budgets/what is spent", testBudgetSpends},
		{"budgets/periods", testBudgetPeriods},
		{"gateway/changes", testGatewayChanges},
		{"gateway/every write is recorded", testGatewayAudit},
		{"gateway/O01 another organization's ids", testGatewayIsolation},
		{"gateway/Q01 hostile text is data", testGatewayHostileText},
		{"changes", testChanges},
		{"O01 another organization's ids", testIsolation},
		{"Q01 hostile text is data", testHostileText},
		{"Q01 hostile text finds only itself", testHostileSearch},
		{"contexts", testContexts},
		{"ping", func(t *testing.T, b *bundle) { noError(t, b.Ping(t.Context())) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, newBundle(t, open(t)))
		})
	}
}

// The issuers of the cases.
const (
	issuer      = "https://id.example.com"
	otherIssuer = "https://other.example.com"
)

// start is the time at which every case begins; no store reads a clock.
var start = time.Date(2026, 2, 3, 4, 5, 6, 789_000, time.UTC)

var lastID atomic.Int64

// newID makes ids that no other case has.
func newID() string { return fmt.Sprintf("01900000-0000-7000-8000-%012x", lastID.Add(1)) }

// bundle holds a store with two organizations, their users and a directory entry that both see.
type bundle struct {
	storage.Store
	orgA, orgB       string
	userA1, userA2   string
	userB1           string
	entry            storage.DirectoryEntry
	serverA, serverB storage.Server // active servers of the same name and slug
	connectionA1     storage.ConnectionKey
	connectionB1     storage.ConnectionKey
	unknown          string // an id of no record
}

func newBundle(t *testing.T, store storage.Store) *bundle {
	t.Helper()
	b := &bundle{Store: store, orgA: newID(), orgB: newID(), unknown: newID()}
	for _, id := range []string{b.orgA, b.orgB} {
		_, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuer, ID: id}, start)
		noError(t, err)
	}
	b.userA1, b.userA2, b.userB1 = b.user(t, b.orgA), b.user(t, b.orgA), b.user(t, b.orgB)
	b.entry = entry("Notes")
	noError(t, store.SyncDirectory(t.Context(), storage.SourceCatalogue, []storage.DirectoryEntry{b.entry}, start))
	b.entry.Source, b.entry.CreatedAt, b.entry.UpdatedAt = storage.SourceCatalogue, start, start
	b.serverA = b.server(t, b.orgA, "Shared name")
	b.serverB = b.server(t, b.orgB, "Shared name")
	b.connectionA1 = storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA1, ServerID: b.serverA.ID}
	b.connectionB1 = storage.ConnectionKey{OrganizationID: b.orgB, UserID: b.userB1, ServerID: b.serverB.ID}
	return b
}

// user makes a user of an organization.
func (b *bundle) user(t *testing.T, organization string) string {
	t.Helper()
	id := newID()
	u, err := b.ResolveUser(t.Context(), storage.UserClaim{OrganizationID: organization, Issuer: issuer, Subject: id, ID: id,
		DerivedID: newID(), Kind: storage.UserPerson}, start)
	noError(t, err)
	return u.ID
}

// entry returns a directory entry with every member set.
func entry(name string) storage.DirectoryEntry {
	return storage.DirectoryEntry{
		ID: newID(), Name: name, Description: "About " + name, Icon: "icon.svg", Slug: "slug-" + newID()[24:],
		URL: "https://mcp.example.com/", Protocol: storage.ProtocolMCP, Provider: storage.ProviderOAuth2,
		AuthParams: storage.AuthParams{In: "header", Name: "X-Key", Prefix: "Key "},
		Scopes:     []string{"read", "write"},
		OAuth:      storage.OAuthEndpoints{Issuer: "https://as.example.com", TokenEndpoint: "https://as.example.com/token", Resource: "https://mcp.example.com/"},
		Public:     true, RequiresAuth: true, Categories: []string{"notes"}, EventsURL: "https://mcp.example.com/events",
		Meta: []byte(`{"kept":  "as written"}`),
		Options: storage.EntryOptions{
			ResourceOff: true, AuthMethod: "client_secret_post", AuthorizationParams: map[string]string{"prompt": "consent"}, RefreshScope: true, IndependentTokens: true, TrustedCA: "pem",
		},
	}
}

// customEntry stores a custom entry of an organization.
func (b *bundle) customEntry(t *testing.T, organization, name string) storage.DirectoryEntry {
	t.Helper()
	e := entry(name)
	e.OrganizationID, e.Source, e.CreatedAt, e.UpdatedAt = organization, storage.SourceCustom, start, start
	noError(t, b.CreateDirectoryEntry(t.Context(), e))
	return e
}

// newServer returns an active server with every member set, not stored.
func (b *bundle) newServer(organization, name, slug string) storage.Server {
	return storage.Server{ID: newID(), OrganizationID: organization, Name: name, Slug: slug, DirectoryID: b.entry.ID,
		Status: storage.ServerActive, ClientID: "client", SealedClientSecret: []byte{0, 1, 2, 0xff}, Meta: []byte(`{"a": 1}`),
		CreatedBy: newID(), CreatedAt: start, UpdatedAt: start, Entry: b.entry}
}

// server stores an active server whose slug is made from its name.
func (b *bundle) server(t *testing.T, organization, name string) storage.Server {
	t.Helper()
	v := b.newServer(organization, name, fmt.Sprintf("s-%x", name))
	noError(t, b.CreateServer(t.Context(), v))
	return v
}

// connection returns a connection with every member set, not stored.
func connection(key storage.ConnectionKey) storage.Connection {
	return storage.Connection{ConnectionKey: key, ID: newID(), Status: storage.ConnectionConnected, Kind: storage.ProviderOAuth2,
		SealedCredential: []byte("sealed\x00credential"), ClientID: "client", Scope: "read", Origin: "https://mcp.example.com",
		Resource: "https://mcp.example.com/", Issuer: "https://as.example.com", ExpiresAt: start.Add(time.Hour), Reason: "none",
		CreatedAt: start, UpdatedAt: start}
}

// connect stores a connection.
func (b *bundle) connect(t *testing.T, key storage.ConnectionKey) storage.Connection {
	t.Helper()
	c, err := b.PutConnection(untold(t.Context()), connection(key))
	noError(t, err)
	return c
}

// attempt returns a connection attempt of ten minutes, not stored.
func attempt(key storage.ConnectionKey) storage.Attempt {
	return storage.Attempt{ConnectionKey: key, StateHash: []byte(newID()), ConnectionID: newID(), Issuer: "https://as.example.com",
		Sealed: []byte{9, 0, 9}, CreatedAt: start, ExpiresAt: start.Add(10 * time.Minute)}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// wantConflict checks that an error is a ConflictError on the field.
func wantConflict(t *testing.T, err error, field string) {
	t.Helper()
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, storage.ErrConflict) || conflict.Field != field {
		t.Fatalf("got error %v, want a conflict on %s", err, field)
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}
