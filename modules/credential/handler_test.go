package credential

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// slowStore calls a function once a connection was read, before its reader has it.
type slowStore struct {
	storage.Store
	meanwhile func()
}

func (s *slowStore) Connection(ctx context.Context, key storage.ConnectionKey) (storage.Connection, error) {
	c, err := s.Store.Connection(ctx, key)
	if run := s.meanwhile; run != nil {
		s.meanwhile = nil
		run()
	}
	return c, err
}

// connected makes a call of a user who is connected to its server.
func connected(t *testing.T) (*app.Call, *slowStore) {
	t.Helper()
	store := &slowStore{Store: sqlitetest.Open(t)}
	now := func() time.Time { return start }
	organization, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: "https://id.example", Slug: "acme", DerivedID: "0192f0c1-5bd2-7000-8000-0000000000aa"}, start)
	if err != nil {
		t.Fatal(err)
	}
	user, err := store.ResolveUser(t.Context(), storage.UserClaim{
		OrganizationID: organization.ID, Issuer: "https://id.example", Subject: "alice", DerivedID: "0192f0c1-5bd2-7000-8000-0000000000ab", Kind: storage.UserPerson,
	}, start)
	if err != nil {
		t.Fatal(err)
	}
	entry := storage.DirectoryEntry{ID: "entry", OrganizationID: organization.ID, Name: "n", Slug: "n", URL: "https://upstream.example/mcp",
		Protocol: storage.ProtocolMCP, Source: storage.SourceCustom, Provider: storage.ProviderBearerToken, RequiresAuth: true}
	server := storage.Server{ID: "server", OrganizationID: organization.ID, Name: "n", Slug: "n", DirectoryID: entry.ID, Status: storage.ServerActive}
	if err := errors.Join(store.CreateDirectoryEntry(t.Context(), entry), store.CreateServer(t.Context(), server)); err != nil {
		t.Fatal(err)
	}
	epochs := new(cache.Epochs)
	t.Cleanup(store.OnChange(epochs.Bump))
	connections, err := connection.NewMemory(epochs, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connections.Close)
	servers, err := evaluator.NewMemory(epochs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, now)
	if err != nil {
		t.Fatal(err)
	}
	guard := netguard.New(netguard.Policy{})
	broker, err := connection.New(connection.Config{
		Store: store, Keyring: keyring, OAuth: oauth.New(guard, now), Memory: connections, CheckURL: guard.CheckURL, PublicURL: "https://gate.example", Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	call := &app.Call{
		Core:   &app.Core{Store: store, Broker: broker, Streams: new(streams.Registry), Evaluator: evaluator.New(evaluator.Options{Memory: servers, Store: store})},
		Caller: &authn.Caller{OrganizationID: organization.ID, UserID: user.ID},
	}
	if err := call.ResolveServer(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	who := connection.Who{OrganizationID: organization.ID, UserID: user.ID}
	if _, err := broker.Connect(t.Context(), who, *call.Server, connection.ConnectRequest{BearerToken: seal.NewSecret("secret")}); err != nil {
		t.Fatal(err)
	}
	return call, store
}

// TestDisconnectedElsewhereMeanwhile checks that a stream ends when another node takes its connection away while this one
// reads it: this node learns only that something was written.
func TestDisconnectedElsewhereMeanwhile(t *testing.T) {
	call, store := connected(t)
	ctx, done := call.Streams().Open(t.Context(), streams.Listen)
	defer done()
	s := &source{call: call}
	store.meanwhile = func() {
		if _, err := store.DeleteConnection(t.Context(), s.call.Account().Key()); err != nil {
			t.Error(err)
		}
		call.Core.Streams.Judge(t.Context(), streams.Owner{Organization: call.Caller.OrganizationID}, streams.PolicyChanged, true)
	}
	if _, err := s.Credential(t.Context()); err != nil || store.meanwhile != nil {
		t.Fatalf("%v", err)
	}
	if reason, ended := streams.EndedFor(ctx); !ended || reason != streams.Disconnected {
		t.Errorf("the stream runs on: %q", reason)
	}
}

// TestStreamsWithoutConnection checks that a stream whose user is not connected does not end for that.
func TestStreamsWithoutConnection(t *testing.T) {
	call, store := connected(t)
	s := &source{call: call}
	if _, err := store.DeleteConnection(t.Context(), s.call.Account().Key()); err != nil {
		t.Fatal(err)
	}
	ctx, done := call.Streams().Open(t.Context(), streams.Listen)
	defer done()
	if _, err := s.Credential(t.Context()); !errors.Is(err, connection.ErrNotConnected) {
		t.Fatalf("%v", err)
	}
	call.Core.Streams.Judge(t.Context(), streams.Owner{Organization: call.Caller.OrganizationID}, streams.PolicyChanged, true)
	if reason, ended := streams.EndedFor(ctx); ended {
		t.Errorf("ended for %q", reason)
	}
}
