package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/caller"
	"github.com/durward-gateway/durward/internal/directory"
	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/token"
	"github.com/durward-gateway/durward/storage"
)

// StoreOpener is a guest of the namespace durward.stores: the configuration of one kind of store.
type StoreOpener interface {
	// Key identifies what would be opened: two openers with the same key share one open store, across reloads too. It
	// must hold no secret.
	Key() string
	// Open opens the store, brings its schema up to date and takes over its background work. A storage.RemoteStore is only
	// made: it is connected to when the configuration starts.
	Open(ctx context.Context) (storage.Store, error)
}

// CounterStore is implemented by stores whose database can keep counters that nodes share.
type CounterStore interface {
	// Counters makes them. It does not wait for the database.
	Counters() (storage.SharedCounters, error)
}

// CoordinatorOpener is a guest of the namespace durward.coordinators: where nodes count rate limits together.
type CoordinatorOpener interface {
	// Key identifies where it is; it must hold no secret.
	Key() string
	// Counters makes the counters that nodes share; store is the configuration's. It does not wait for a server. nil: this
	// node counts alone.
	Counters(store StoreOpener) (storage.SharedCounters, error)
}

// DataDirectory is implemented by stores that keep their data in a local directory, where development mode may keep
// what belongs to it.
type DataDirectory interface {
	DataDirectory() string
}

// ModelProvider is a guest of the namespace durward.providers: how one kind of provider of models is spoken to. It has no
// settings and keeps nothing: one value serves every account of its kind.
type ModelProvider interface {
	// BaseURL is where the provider is when an account does not say; "" when it must.
	BaseURL() string
	// Path is the path of an endpoint, to be appended to the base URL. ok is false for one that the kind does not serve.
	Path(endpoint limit.Endpoint) (path string, ok bool)
	// Authorize puts an account's secret, which may be empty, and what else every request needs on the headers of a request.
	Authorize(h http.Header, secret seal.Secret)
	// Headers are those of the client and of the answer that pass. What tells of the gateway's own account does not.
	Headers() *forward.Rules
}

// Identity is a guest of the namespace durward.identities: one issuer of tokens.
type Identity interface {
	// Bind is called once, before any request, when the gateway's public URL is known.
	Bind(Binding) error
	// IssuerID is the exact `iss` of its tokens.
	IssuerID() string
	// Verifier checks its tokens.
	Verifier() *token.Verifier
	// Rules say where its tokens keep organization, roles, groups and agent, and what they mean.
	Rules() IdentityRules
}

// ScopedIdentity is implemented by identities whose clients have to ask for scopes.
type ScopedIdentity interface {
	Identity
	// RequestedScopes are those that clients should ask for; each is a scope of RFC 6749 section 3.3.
	RequestedScopes() []string
}

// IdentityRules is how the claims of one issuer are read, and what they mean.
type IdentityRules struct {
	caller.Mapping
	// AdminRole is the role that makes an administrator.
	AdminRole string
}

// Binding is what an identity may use of the gateway.
type Binding struct {
	PublicURL string
	// DataDirectory is where development mode keeps its own files; "" when the store is not local.
	DataDirectory string
	// EgressID stands for the egress rules of the configuration.
	EgressID string
	Store    storage.Store
	Guard    Guard
	Log      *slog.Logger
	Now      func() time.Time
}

// DevelopmentIdentity is implemented by the development identity provider. Its presence relaxes what only a developer's
// own machine can relax: a master key is made, loopback is allowed as upstream, origin and return URL, and the site may
// listen on loopback only.
type DevelopmentIdentity interface {
	Identity
	// Handler serves the provider's own addresses, which Owns tells.
	Handler() http.Handler
	Owns(path string) bool
	// Records are directory entries of what development mode brings along.
	Records() []directory.Record
	// Models are those that development mode brings along.
	Models() DevelopmentModels
	// Seed makes sure that what a developer finds at the first start is there. It runs after the directory is stored.
	// configured is what the configuration says of models, with those of Models.
	Seed(ctx context.Context, store storage.Store, configured storage.ConfiguredModels) error
}

// DevelopmentModels are models in addition to those of the configuration, which take precedence where names are the same.
type DevelopmentModels struct {
	Providers []ConfiguredProvider
	Aliases   []ConfiguredAlias
	// Prices is a table of what they cost, as metering.Prices.With reads it.
	Prices []byte
}
