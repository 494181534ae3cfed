package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/issuers"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// Guard checks the gateway's outgoing connections.
type Guard = *netguard.Guard

// StoreOpener is a guest module of the namespace durward.stores: the configuration of one kind of store.
type StoreOpener interface {
	// Key identifies the store to open: two openers with the same key share one open store, across reloads too. It must
	// hold no secret.
	Key() string
	// Open opens the store, brings its schema up to date and takes over its background work. A storage.RemoteStore is only
	// made; the connection is made when the configuration starts.
	Open(ctx context.Context) (storage.Store, error)
}

// CounterStore is implemented by stores whose database can keep counters that nodes share.
type CounterStore interface {
	// Counters makes the shared counters. It does not wait for the database.
	Counters() (storage.SharedCounters, error)
}

// CoordinatorOpener is a guest module of the namespace durward.coordinators: the place at which nodes count rate limits
// together.
type CoordinatorOpener interface {
	// Key identifies the place; it must hold no secret.
	Key() string
	// Counters makes the counters that nodes share; store is the configuration's. It does not wait for a server. nil: this
	// node counts alone.
	Counters(store StoreOpener) (storage.SharedCounters, error)
}

// DataDirectory is implemented by stores that keep their data in a local directory, where development mode may keep its
// own files.
type DataDirectory interface {
	DataDirectory() string
}

// ModelProvider is a guest module of the namespace durward.providers: the protocol of one kind of provider of models.
type ModelProvider interface{ accounts.Protocol }

// Identity is a guest module of the namespace durward.identities: one issuer of tokens.
type Identity interface {
	// Bind gives the identity its binding. It is called once, before any request, when the gateway's public URL is known.
	Bind(Binding) error
	issuers.Issuer
}

// ScopedIdentity is implemented by identities whose clients have to ask for scopes.
type ScopedIdentity interface {
	Identity
	issuers.Scoped
}

// LoginIdentity is implemented by identities at which browsers can log in.
type LoginIdentity interface {
	Identity
	browsers.Issuer
}

// Binding holds the parts of the gateway that an identity may use.
type Binding struct {
	PublicURL string
	// DataDirectory is the directory for development mode's own files; "" when the store is not local.
	DataDirectory string
	// EgressID identifies the egress rules of the configuration.
	EgressID string
	Store    storage.Store
	Guard    Guard
	Log      *slog.Logger
	Now      func() time.Time
}

// DevelopmentIdentity is implemented by the development identity provider. Its presence relaxes rules that may be
// relaxed only on a developer's own machine: a master key is made, loopback is allowed as upstream, origin and return
// URL, and the site may listen on loopback only.
type DevelopmentIdentity interface {
	Identity
	// Handler serves the provider's own addresses; Owns reports which these are.
	Handler() http.Handler
	Owns(path string) bool
	// Records returns the directory entries of development mode.
	Records() []directory.Record
	// Clients returns the clients of development mode.
	Clients() DevelopmentClients
	// Models returns the models of development mode.
	Models() DevelopmentModels
	// Seed makes the objects that a developer finds at the first start, if they are missing. It runs after the directory
	// is stored.
	Seed(ctx context.Context, s Seeding) error
}

// Seeding holds the parts of the gateway with which development mode makes its objects.
type Seeding struct {
	Store   storage.Store
	Keyring *seal.Keyring
	Broker  *connection.Broker
	// Configured holds the models of the configuration, with those of Models.
	Configured storage.ConfiguredModels
	// At returns the store and the audit log as of a clock, whose times the records get.
	At func(now func() time.Time) (storage.Store, *record.Recorder)
}

// DevelopmentClients holds OAuth clients of the gateway.
type DevelopmentClients struct {
	// Known is added to the clients of the configuration, which take precedence when ids are the same.
	Known []settings.OAuthClient
	// Approval lists the clients with which users decide on held calls, unless the configuration does.
	Approval []string
}

// DevelopmentModels holds models that are added to those of the configuration; the configuration's take precedence when
// names are the same.
type DevelopmentModels struct {
	Providers []settings.Provider
	Aliases   []settings.Alias
	// Prices is a table of their prices, in the form that metering.Prices.With reads.
	Prices []byte
}
