// Package sockets lets the servers of successive configurations share their sockets, and passes connections on from one
// configuration to the next.
package sockets

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/proxy/handover"
)

// sharedNetwork is Caddy's name for TCP sockets that configurations share. Otherwise Caddy opens a socket for each
// configuration, and connections that wait at the old one are reset.
const sharedNetwork = "durward"

// defaultWriteIdle is the time for which a client may take nothing, the default of Caddy and of the forwarder. It is
// not set yet when handlers are provisioned.
const defaultWriteIdle = time.Minute

// all holds the sockets of all configurations.
var all handover.Sockets

func init() {
	caddy.RegisterNetwork(sharedNetwork, listenShared)
	caddyhttp.RegisterNetworkHTTP3(sharedNetwork, "udp")
}

// listenShared opens a shared socket. It is a caddy.ListenerFunc.
func listenShared(ctx context.Context, _, host, portRange string, portOffset uint, config net.ListenConfig) (any, error) {
	address, err := caddy.ParseNetworkAddress(caddy.JoinNetworkAddress("tcp", host, portRange))
	if err != nil {
		return nil, err
	}
	// The key includes the settings that the socket applies to its connections.
	key := fmt.Sprint(address.JoinHostPort(portOffset), config.KeepAliveConfig)
	listener, err := all.Listen(key, func() (net.Listener, error) {
		opened, err := address.Listen(ctx, portOffset, config)
		if err != nil {
			return nil, err
		}
		return opened.(net.Listener), nil
	})
	if err != nil {
		return nil, err
	}
	if configuration, ok := ctx.(caddy.Context); ok {
		if running, err := configuration.AppIfConfigured("durward"); err == nil {
			running.(Holder).Listening().add(listener)
		}
	}
	return listener, nil
}

// Holder is the app of a configuration, which the network finds by its name.
type Holder interface{ Listening() *Listening }

// Listening holds the sockets of a configuration's servers.
type Listening struct {
	leaving   atomic.Bool // the next configuration serves
	mu        sync.Mutex
	servers   map[*caddyhttp.Server]struct{}
	listeners []*handover.Listener
}

func (l *Listening) add(listener *handover.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(l.listeners, listener)
}

// Share makes the server of a handler that is being provisioned listen on shared sockets. An address with its own way
// to listen is left alone. So is every address when there is a shutdown_delay: Caddy would take each reload for an end
// of the socket, and wait.
func (l *Listening) Share(ctx caddy.Context) {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || delaysShutdown(ctx) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, done := l.servers[server]; done {
		return
	}
	if l.servers == nil {
		l.servers = make(map[*caddyhttp.Server]struct{})
	}
	l.servers[server] = struct{}{}
	server.RegisterConnState(handover.State)
	silence := cmp.Or(time.Duration(server.WriteIdleTimeout), defaultWriteIdle)
	server.RegisterConnContext(func(ctx context.Context, c net.Conn) context.Context {
		if silence > 0 {
			handover.Unheard(c, silence)
		}
		return handover.Context(ctx, c)
	})
	for i, listen := range server.Listen {
		if address, err := caddy.ParseNetworkAddress(listen); err == nil && address.Network == "tcp" && address.StartPort != 0 {
			address.Network = sharedNetwork
			server.Listen[i] = address.String()
		}
	}
}

func delaysShutdown(ctx caddy.Context) bool {
	for _, module := range ctx.Modules() {
		if server, ok := module.(*caddyhttp.App); ok && server.ShutdownDelay > 0 {
			return true
		}
	}
	return false
}

// longestHandover is the longest time that a reload waits. It waits for requests that have not reached a handler of the
// old configuration or the begin of their answer, and for clients that keep connections which cannot be passed on. The
// new one serves meanwhile.
const longestHandover = 500 * time.Millisecond

// HandOver passes connections on to the next configuration, whose servers are listening.
func (l *Listening) HandOver(ctx context.Context) {
	l.leaving.Store(true)
	l.mu.Lock()
	listeners := l.listeners
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longestHandover)
	defer cancel()
	var retiring sync.WaitGroup
	for _, listener := range listeners {
		retiring.Go(func() { listener.Retire(ctx) })
	}
	retiring.Wait()
}

// PartWith makes the client of a request close its connection after the answer when the next configuration serves
// already. Connections of HTTP/1.1 over TLS cannot be passed on, and a request that is on its way when one is closed is
// lost.
func (l *Listening) PartWith(w http.ResponseWriter, r *http.Request) {
	if l.leaving.Load() && r.TLS != nil && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}
