// Package netguard checks and dials the addresses that others choose (an upstream MCP server, a provider of models, an
// authorization server, a metadata document). It is the only way out: no other package may dial such an address.
//
// A name is resolved once, every address of the answer is checked against an explicit table of the special-purpose
// ranges, and the checked address itself is dialled, so that a second answer of the name server changes nothing (DNS
// rebinding). The socket's real address is checked again by a control hook. https is the rule; plain http is used
// only for ranges that the policy names. No proxy is used, whatever the environment says.
//
// The error for users is the same for a refused, a closed and an unreachable address: see Error.
package netguard

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// DefaultConnectTimeout bounds resolving a name and connecting, together.
const DefaultConnectTimeout = 5 * time.Second

// maxAddresses is the number of addresses of one name that are tried. All are checked.
const maxAddresses = 8

// headStart is the time for which one address is tried before the next is tried beside it (RFC 8305 section 5).
const headStart = 250 * time.Millisecond

// Policy names the destinations that may be dialled beyond public addresses over https. The zero value allows none.
type Policy struct {
	// Allow lists special-purpose ranges that may be dialled. A range that embeds IPv4 addresses (64:ff9b::/96,
	// 2002::/16) opens only those of its addresses whose IPv4 address may be dialled too.
	Allow []netip.Prefix
	// HTTP lists the ranges to which plain http may be used. It opens no range by itself: a special-purpose range
	// must be in Allow too.
	HTTP []netip.Prefix
}

// Resolver looks names up. *net.Resolver implements it.
type Resolver interface {
	// LookupNetIP resolves host to addresses; network is ip, ip4 or ip6.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Guard dials the destinations that its policy allows. It is safe for concurrent use and holds no connections.
type Guard struct {
	allow, http []netip.Prefix
	resolver    Resolver
	timeout     time.Duration
	roots       *x509.CertPool
}

// Option changes a guard under construction.
type Option func(*Guard)

// WithResolver replaces the system's resolver.
func WithResolver(r Resolver) Option { return func(g *Guard) { g.resolver = r } }

// WithConnectTimeout replaces DefaultConnectTimeout.
func WithConnectTimeout(d time.Duration) Option { return func(g *Guard) { g.timeout = d } }

// WithRootCAs replaces the system's certificate authorities in the clients that FetchClient makes.
func WithRootCAs(pool *x509.CertPool) Option { return func(g *Guard) { g.roots = pool } }

// Trusting returns the guard with other certificate authorities for the clients that FetchClient makes; nil keeps the
// present ones.
func (g *Guard) Trusting(roots *x509.CertPool) *Guard {
	if roots == nil {
		return g
	}
	trusting := *g
	trusting.roots = roots
	return &trusting
}

// New makes a guard.
func New(p Policy, opts ...Option) *Guard {
	g := &Guard{
		allow:    normalize(p.Allow),
		http:     normalize(p.HTTP),
		resolver: net.DefaultResolver,
		timeout:  DefaultConnectTimeout,
	}
	for _, opt := range opts {
		opt(g)
	}
	return g
}

// ErrRefused is matched by every error that means a refusal by policy, and by no other.
var ErrRefused = errors.New(publicText)

const publicText = "the address cannot be reached"

// Error describes a connection that failed. Its text does not say why: a refused address, a closed port, one that
// does not answer and a name that does not exist look alike. Otherwise a user who may enter a URL has a port scanner
// of the inner network. The reason is for the log: see Cause.
type Error struct{ cause error }

func (e *Error) Error() string { return publicText }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.cause }

// Cause returns the reason below the Error in err's chain, or err itself when there is no Error. It is for logs,
// never for users.
func Cause(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.cause
	}
	return err
}

// refusal describes a decision of the policy.
type refusal struct {
	reason  string
	address netip.Addr // the refused address; invalid when the refusal is about something else
	plain   bool       // it is refused for http without TLS, and may be allowed for https
}

func (r *refusal) Error() string { return r.reason }

func (r *refusal) Is(target error) bool { return target == ErrRefused }

func refuse(format string, args ...any) error { return &refusal{reason: fmt.Sprintf(format, args...)} }

// Refused returns the address that an error is about, when the policy could open it: by Policy.HTTP when http is
// true, by Policy.Allow otherwise. A user who may not change the policy must not learn the addresses of a name.
func Refused(err error) (address netip.Addr, http, ok bool) {
	if r, found := errors.AsType[*refusal](err); found && r.address.IsValid() {
		return r.address, r.plain, true
	}
	return netip.Addr{}, false, false
}

// checkAddr refuses an address that the policy does not open; plain means http without TLS.
func (g *Guard) checkAddr(a netip.Addr, plain bool) error {
	if !a.IsValid() {
		return refuse("no address")
	}
	if a.Zone() != "" {
		return refuse("address %s has a zone", a)
	}
	a = a.Unmap()
	if name, ok := specialName(a); ok && !contains(g.allow, a) {
		return &refusal{reason: fmt.Sprintf("address %s is not public: %s", a, name), address: a, plain: plain}
	}
	if inner, ok := embedded(a); ok {
		if err := g.checkAddr(inner, false); err != nil {
			return fmt.Errorf("address %s embeds another: %w", a, err)
		}
	}
	if plain && !contains(g.http, a) {
		return &refusal{reason: fmt.Sprintf("plain http is not spoken to %s", a), address: a, plain: true}
	}
	return nil
}
