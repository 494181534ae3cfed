package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// DialContext connects for a protocol that brings its own TLS; network is tcp, tcp4 or tcp6, address is host:port.
// When any of the host's addresses is refused, all are: a name that mixes public and inner addresses is an attack or
// an accident. Every error is an *Error.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return g.dial(ctx, network, address, false)
}

// DialPlain connects like DialContext, for http without TLS: addresses must lie in the policy's HTTP ranges as well.
func (g *Guard) DialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	return g.dial(ctx, network, address, true)
}

func (g *Guard) dial(ctx context.Context, network, address string, plain bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	addrs, err := g.resolve(ctx, network, address, plain)
	if err != nil {
		return nil, &Error{cause: fmt.Errorf("dialling %s: %w", address, err)}
	}
	conn, err := g.race(ctx, addrs, plain)
	if err != nil {
		return nil, &Error{cause: fmt.Errorf("dialling %s: %w", address, err)}
	}
	return conn, nil
}

// resolve turns host:port into checked addresses. IPv6 and IPv4 alternate, in the resolver's order.
func (g *Guard) resolve(ctx context.Context, network, address string, plain bool) ([]netip.AddrPort, error) {
	family, ok := map[string]string{"tcp": "ip", "tcp4": "ip4", "tcp6": "ip6"}[network]
	if !ok {
		return nil, refuse("network %q", network)
	}
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, refuse("malformed address")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return nil, refuse("port %q", portText)
	}
	addr, isLiteral, reason := parseHost(host)
	if reason != "" {
		return nil, refuse("%s", reason)
	}
	addrs := []netip.Addr{addr}
	if !isLiteral {
		if addrs, err = g.resolver.LookupNetIP(ctx, family, host); err != nil {
			return nil, fmt.Errorf("resolving: %w", err)
		}
	}
	if len(addrs) == 0 {
		return nil, errors.New("resolving: no addresses")
	}
	out := make([]netip.AddrPort, 0, len(addrs))
	for _, a := range addrs {
		if err := g.checkAddr(a, plain); err != nil {
			return nil, err
		}
		out = append(out, netip.AddrPortFrom(a.Unmap(), uint16(port)))
	}
	out = alternate(out)
	return out[:min(len(out), maxAddresses)], nil
}

// alternate reorders addresses so that the families alternate, the family of the first one leading (RFC 8305 section
// 4).
func alternate(addrs []netip.AddrPort) []netip.AddrPort {
	if len(addrs) < 3 {
		return addrs
	}
	var first, second []netip.AddrPort
	for _, a := range addrs {
		if a.Addr().Is4() == addrs[0].Addr().Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	out := make([]netip.AddrPort, 0, len(addrs))
	for i := range max(len(first), len(second)) {
		out = append(out, first[min(i, len(first)):min(i+1, len(first))]...)
		out = append(out, second[min(i, len(second)):min(i+1, len(second))]...)
	}
	return slices.Clip(out)
}

// race connects to the first address that answers. Each address gets a head start over the next.
func (g *Guard) race(ctx context.Context, addrs []netip.AddrPort, plain bool) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	attempt := func(a netip.AddrPort) {
		conn, err := g.connect(ctx, a, plain)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close() // lost the race
			}
		}
	}
	var failures []error
	next, running := 0, 0
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	for {
		if next < len(addrs) {
			go attempt(addrs[next])
			next++
			running++
			timer.Reset(headStart)
		}
		select {
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			failures = append(failures, r.err)
			if running--; running == 0 && next == len(addrs) {
				return nil, errors.Join(failures...)
			}
		case <-timer.C:
		case <-ctx.Done():
			return nil, errors.Join(append(failures, ctx.Err())...)
		}
	}
}

// connect dials one checked address. The control hook sees the address to which the socket is really connected, after
// everything that could have changed it.
func (g *Guard) connect(ctx context.Context, a netip.AddrPort, plain bool) (net.Conn, error) {
	dialer := net.Dialer{
		KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			actual, err := netip.ParseAddrPort(address)
			if err != nil {
				return refuse("socket address %q", address)
			}
			return g.checkAddr(actual.Addr(), plain)
		},
	}
	return dialer.DialContext(ctx, "tcp", a.String())
}
