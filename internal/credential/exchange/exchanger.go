package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Protocol is the OAuth client protocol, as *oauth.Client implements it.
type Protocol interface {
	FetchProvider(ctx context.Context, issuer string) (oauth.Discovery, error)
	ObtainClient(ctx context.Context, d oauth.Discovery, app oauth.Application) (oauth.Registration, error)
	ExchangeToken(ctx context.Context, r oauth.TokenExchangeRequest) (oauth.Tokens, error)
	ExchangeForAssertion(ctx context.Context, r oauth.TokenExchangeRequest) (seal.Secret, error)
	RedeemAssertion(ctx context.Context, r oauth.AssertionRequest) (oauth.Tokens, error)
	ClientCredentials(ctx context.Context, r oauth.ClientCredentialsRequest) (oauth.Tokens, error)
}

var _ Protocol = (*oauth.Client)(nil)

// Opener opens sealed values.
type Opener interface {
	Open(sealed []byte, at seal.AD) ([]byte, error)
}

// Upstreams knows the gateway's clients at the authorization servers of upstreams, as *connection.Broker does.
type Upstreams interface {
	OwnClient(ctx context.Context, s *storage.Server) (storage.OAuthClient, oauth.ClientAuth, error)
}

// Event is a result of an exchange.
type Event string

// Events that are counted.
const (
	Exchanged Event = "exchanged"
	Failed    Event = "exchange_failed"
)

// Options holds the settings of an exchanger. Members without a default must be given.
type Options struct {
	// Memory outlives the exchanger.
	Memory  *Memory
	OAuth   Protocol
	Keyring Opener
	// Upstreams is needed for tokens of upstreams' own authorization servers.
	Upstreams Upstreams
	// PublicURL is the gateway's own issuer.
	PublicURL string
	// LoginClient returns the gateway's own client at an identity provider, to which ID tokens are issued; ok is false when
	// the configuration has none. Default: it has none.
	LoginClient func(issuer string) (id string, secret seal.Secret, ok bool)
	// Statement reads the file with the platform's statement about the gateway. Default: there is none.
	Statement func(path string) (seal.Secret, error)
	// Known reports whether an issuer is an identity provider of the configuration.
	Known func(issuer string) bool
	// Opens reports whether a token opens the gateway itself. An upstream that got such a token could act as its user here.
	// Its error is that of a check that cannot be made now. Default: no token does.
	Opens func(ctx context.Context, token seal.Secret, audience, resource string) (bool, error)
	// Count receives every event. Default: events are not counted.
	Count func(Event)
	// Log receives the messages for operators, never a secret. Default: nothing is logged.
	Log *slog.Logger
	Now func() time.Time
}

// Exchanger gets tokens for servers. It is safe for concurrent use.
type Exchanger struct {
	Options

	flights singleflight.Group
	// ctx is the context of work that outlives requests.
	ctx     context.Context
	cancel  context.CancelFunc
	closing sync.Mutex
	work    sync.WaitGroup
}

// New makes an exchanger.
func New(o Options) *Exchanger {
	if o.Count == nil {
		o.Count = func(Event) {}
	}
	if o.Opens == nil {
		o.Opens = func(context.Context, seal.Secret, string, string) (bool, error) { return false, nil }
	}
	if o.LoginClient == nil {
		o.LoginClient = func(string) (string, seal.Secret, bool) { return "", seal.Secret{}, false }
	}
	if o.Statement == nil {
		o.Statement = func(string) (seal.Secret, error) { return seal.Secret{}, errors.New("statements are not read here") }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Exchanger{Options: o}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Close ends all exchanges. It is idempotent.
func (e *Exchanger) Close() {
	e.closing.Lock()
	e.cancel()
	e.closing.Unlock()
	e.work.Wait()
}

// begin registers work that Close waits for. It returns false when the exchanger is closed.
func (e *Exchanger) begin() bool {
	e.closing.Lock()
	defer e.closing.Unlock()
	if e.ctx.Err() != nil {
		return false
	}
	e.work.Add(1)
	return true
}

// rejectedTwice is the time within which a second refusal is final: the server refuses a token so soon after its
// predecessor. A third token would not help either.
const rejectedTwice = 5 * time.Minute

// Credential returns the token for the server: the user's, or the gateway's own. Errors are *connection.NotConnectedError, *connection.UnavailableError
// (worth trying again) and the store's.
func (e *Exchanger) Credential(ctx context.Context, a Asking) (connection.Credential, error) {
	if a.Server.OrganizationID != a.OrganizationID {
		return connection.Credential{}, storage.ErrNotFound
	}
	switch a.Server.Status {
	case storage.ServerPending:
		return connection.Credential{}, &connection.NotConnectedError{Reason: "an administrator must give this server its OAuth client first"}
	case storage.ServerError:
		return connection.Credential{}, refused("an administrator must look at this server first")
	}
	k := a.key()
	token, ok := e.Memory.tokens.Get(k, e.Now())
	if !ok {
		var err error
		if token, err = e.exchange(ctx, &a, k, 0); err != nil {
			return connection.Credential{}, err
		}
		issued, err := connection.Issued(a.Server, token.token, token.version, token.expires)
		return issued.Renewed(), err
	}
	return connection.Issued(a.Server, token.token, token.version, token.expires)
}

// Rejected handles a 401 answer of the server to a token. It exchanges once more, and returns the other token. A caller
// gets a token that another caller has received meanwhile. If another token cannot help, because the former one was
// refused just now, the error is *connection.NotConnectedError.
func (e *Exchanger) Rejected(ctx context.Context, a Asking, used connection.Credential) (connection.Credential, error) {
	k, now := a.key(), e.Now()
	token, ok := e.Memory.tokens.Get(k, now)
	switch {
	case ok && token.version != used.Version():
	case ok && token.forced && now.Sub(token.at) < rejectedTwice:
		return connection.Credential{}, refused("the server does not accept the token that " + a.giver() + ". Ask an administrator")
	default:
		var err error
		if token, err = e.exchange(ctx, &a, k, used.Version()); err != nil {
			return connection.Credential{}, err
		}
	}
	issued, err := connection.Issued(a.Server, token.token, token.version, token.expires)
	return issued.Renewed(), err
}

// deadline limits an exchange together with what it needs: metadata, and a renewal of the proof.
const deadline = 30 * time.Second

// exchange gets another token than that of a version, 0 for none. All callers with the same version share one exchange, which
// goes on when they leave.
func (e *Exchanger) exchange(ctx context.Context, a *Asking, k key, rejected int64) (kept, error) {
	if err := e.Memory.failed(k, e.Now()); err != nil {
		return kept{}, err
	}
	answer := e.flights.DoChan(fmt.Sprintf("%d %q", rejected, k), func() (result any, err error) {
		if !e.begin() {
			return nil, connection.ErrClosed
		}
		defer e.work.Done()
		defer func() {
			// A panic in singleflight would end the process.
			if r := recover(); r != nil {
				// The panic value could be a secret (L02).
				e.Log.Error("token exchange panicked", "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
				err = e.Memory.fail(k, &connection.UnavailableError{Cause: errors.New("internal error")}, e.Now())
			}
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
		defer cancel()
		defer context.AfterFunc(e.ctx, cancel)() //nolint:contextcheck // it ends with the exchanger, too
		return e.exchangeOnce(ctx, a, k, rejected)
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return kept{}, r.Err
		}
		return r.Val.(kept), nil
	case <-ctx.Done():
		return kept{}, context.Cause(ctx)
	}
}

// exchangeOnce exchanges, unless another caller has done so since the last look.
func (e *Exchanger) exchangeOnce(ctx context.Context, a *Asking, k key, rejected int64) (kept, error) {
	if token, ok := e.Memory.tokens.Get(k, e.Now()); ok && token.version != rejected {
		return token, nil
	}
	if err := e.Memory.failed(k, e.Now()); err != nil {
		return kept{}, err
	}
	at := e.Now()
	tokens, err := e.ask(ctx, a)
	if err == nil {
		err = e.closedTo(ctx, a, tokens.Access)
	}
	if err == nil {
		e.Memory.failures.Delete(k)
		e.Count(Exchanged)
		return e.Memory.keep(k, tokens, rejected != 0, at), nil
	}
	if rejected != 0 {
		e.Memory.tokens.Delete(k)
	}
	if e.ctx.Err() != nil {
		return kept{}, connection.ErrClosed
	}
	e.Count(Failed)
	public := e.explain(a, err)
	if !errors.Is(public, connection.ErrNotConnected) && !errors.Is(public, connection.ErrUnavailable) {
		return kept{}, public // the store's: nobody outside was asked in vain
	}
	return kept{}, e.Memory.fail(k, public, e.Now())
}

// closedTo refuses a token that opens the gateway. An administrator who asks for its audience, or an identity provider that
// gives all tokens the same ones, would hand the gateway's users to the upstream.
func (e *Exchanger) closedTo(ctx context.Context, a *Asking, token seal.Secret) error {
	opens, err := e.Opens(ctx, token, a.Server.Entry.Options.Audience, a.Server.Entry.OAuth.Resource)
	switch {
	case err != nil:
		return &connection.UnavailableError{Cause: err}
	case opens:
		return refused("the token for it would open this gateway too. An administrator must look at audience and resource of its directory entry")
	}
	return nil
}
