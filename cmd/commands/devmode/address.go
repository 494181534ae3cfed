// Package devmode provides the surroundings of the gateway for `durward dev`: an address that only this machine
// reaches, a data directory that nothing else uses, and the text that is printed once it runs.
package devmode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// ParseListen reads the address to listen on, host:port with a loopback host. In development mode anybody can log in
// as anybody, so it is for this machine only. localhost means 127.0.0.1.
func ParseListen(text string) (netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("--listen %q is not an address such as 127.0.0.1:8080", text)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("--listen %q: the port is a number from 0 (choose a free one) to 65535", text)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() || ip.Zone() != "" {
		return netip.AddrPort{}, fmt.Errorf("--listen %q: development mode listens on this machine only, because anybody can log in to it as anybody; "+
			"use 127.0.0.1, ::1 or localhost (for others, write a Caddyfile and use `durward run`)", text)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), nil
}

// FreeAddress checks that nothing listens on an address, and chooses a port for port 0. Caddy itself would share the
// port with another process, and each would get half of the requests.
func FreeAddress(ctx context.Context, address netip.AddrPort) (netip.AddrPort, error) {
	var config net.ListenConfig
	listen := func() (net.Listener, error) { return config.Listen(ctx, "tcp", address.String()) }
	if address == netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0) {
		listen = func() (net.Listener, error) { return loopback.Listen(ctx) }
	}
	listener, err := listen()
	if errors.Is(err, syscall.EADDRINUSE) {
		return netip.AddrPort{}, fmt.Errorf("%s is taken by another program; stop it, or choose another address, such as --listen %s",
			address, netip.AddrPortFrom(address.Addr(), 0))
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	chosen, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return netip.AddrPort{}, errors.Join(fmt.Errorf("choosing a port: %w", err), listener.Close())
	}
	if err := listener.Close(); err != nil {
		return netip.AddrPort{}, fmt.Errorf("choosing a port: %w", err)
	}
	return chosen, nil
}
