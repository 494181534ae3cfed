package app

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

	"github.com/durward-gateway/durward/internal/handover"
)

// sharedNetwork is Caddy's name for TCP sockets that configurations share. Caddy opens one for each configuration
// otherwise, and what waits for the old one is reset.
const sharedNetwork = "durward"

// defaultWriteIdle is Caddy's, and the forwarder's, for how long a client may take nothing. It is not set yet when handlers
// are provisioned.
const defaultWriteIdle = time.Minute

// sockets are those of all configurations.
var sockets handover.Sockets

func init() {
	caddy.RegisterNetwork(sharedNetwork, listenShared)
	caddyhttp.RegisterNetworkHTTP3(sharedNetwork, "udp")
}

// listenShared is a caddy.ListenerFunc.
func listenShared(ctx context.Context, _, host, portRange string, portOffset uint, config net.ListenConfig) (any, error) {
	address, err := caddy.ParseNetworkAddress(caddy.JoinNetworkAddress("tcp", host, portRange))
	if err != nil {
		return nil, err
	}
	// What the socket does to its connections is a part of what it is.
	key := fmt.Sprint(address.JoinHostPort(portOffset), config.KeepAliveConfig)
	listener, err := sockets.Listen(key, func() (net.Listener, error) {
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
			running.(*App).listening.add(listener)
		}
	}
	return listener, nil
}

// listening is what a configuration's servers listen on.
type listening struct {
	leaving   atomic.Bool // the next configuration serves
	mu        sync.Mutex
	servers   map[*caddyhttp.Server]struct{}
	listeners []*handover.Listener
}

func (l *listening) add(listener *handover.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(l.listeners, listener)
}

// share has the server of a handler that is being provisioned listen on shared sockets. An address that says how to listen
// is left alone, and so is every address when there is a shutdown_delay: Caddy would take each reload for an end of the
// socket, and wait.
func (l *listening) share(ctx caddy.Context) {
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

// AttendClient makes the departure of the request's client noticed at once from now on, instead of within 0.05 s. It is for
// callers that are about to wait.
func AttendClient(ctx context.Context) { handover.Attend(ctx) }

func delaysShutdown(ctx caddy.Context) bool {
	for _, module := range ctx.Modules() {
		if server, ok := module.(*caddyhttp.App); ok && server.ShutdownDelay > 0 {
			return true
		}
	}
	return false
}

// longestHandover bounds how long a reload waits for requests that are on their way to a handler of the old
// configuration, or to the begin of their answer, and for clients that keep connections which cannot be passed on. The new
// one serves meanwhile.
const longestHandover = 500 * time.Millisecond

// handOver passes connections on to the next configuration, whose servers are listening.
func (l *listening) handOver(ctx context.Context) {
	l.leaving.Store(true)
	l.mu.Lock()
	listeners := l.listeners
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longestHandover)
	defer cancel()
	var all sync.WaitGroup
	for _, listener := range listeners {
		all.Go(func() { listener.Retire(ctx) })
	}
	all.Wait()
}

// PartWith has the client of a request leave its connection after the answer when the next configuration serves already:
// connections of HTTP/1.1 over TLS cannot be passed on, and a request that is on its way when one is closed is lost.
func (a *App) PartWith(w http.ResponseWriter, r *http.Request) {
	if a.listening.leaving.Load() && r.TLS != nil && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}
