package outbound

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// Transport tunes the connections to upstreams in the words of Caddy's `transport http`: dial_timeout,
// response_header_timeout, max_response_header, read_buffer, write_buffer, versions, keepalive, keepalive_idle_conns,
// keepalive_idle_conns_per_host, max_conns_per_host, read_timeout (an answer that is silent for that long ends) and the
// tls ones. The others are refused: a handler may not change the target of a connection or the way to it.
//
// Requests go out over an HTTP/1.1 client of the gateway's own, and over Go's net/http when `client` is net_http or
// `versions` names 2. Only net/http has buffers of a size that can be chosen.
type Transport struct {
	reverseproxy.HTTPTransport
	// The HTTP client that is used: `net_http` for Go's own. Default: the gateway's own, unless `versions` names 2.
	Client string `json:"client,omitempty"`
}

// clientNetHTTP is the name of Go's HTTP client.
const clientNetHTTP = "net_http"

func (t *Transport) netHTTP() bool {
	return t.Client == clientNetHTTP || slices.Contains(t.Versions, "2")
}

// UnmarshalTransport reads a directive whose block may hold `transport { ... }`. Syntax of the block:
//
//	transport [net_http] {
//		<words of Caddy's transport http>
//	}
func UnmarshalTransport(d *caddyfile.Dispenser) (*Transport, error) {
	d.Next() // the directive's name
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	var transport *Transport
	for d.NextBlock(0) {
		if d.Val() != "transport" {
			return nil, d.Errf("unrecognized word %q; known is transport", d.Val())
		}
		if transport != nil {
			return nil, d.Err("transport may be given once")
		}
		transport = new(Transport)
		if d.NextArg() {
			if d.Val() != clientNetHTTP {
				return nil, d.Errf("transport %s is not known; it is %s or without a name", d.Val(), clientNetHTTP)
			}
			transport.Client = clientNetHTTP
			if d.CountRemainingArgs() > 0 {
				return nil, d.ArgErr()
			}
		}
		if err := transport.HTTPTransport.UnmarshalCaddyfile(d.NewFromNextSegment()); err != nil {
			return nil, err
		}
		if err := transport.unsupported(); err != nil {
			return nil, d.WrapErr(err)
		}
	}
	return transport, nil
}

func (t *Transport) options(ctx caddy.Context) (forward.Options, forward.Limits, error) {
	if t == nil {
		return forward.Options{}, forward.Limits{}, nil
	}
	if err := t.unsupported(); err != nil {
		return forward.Options{}, forward.Limits{}, err
	}
	options := forward.Options{
		NetHTTP: t.netHTTP(), DialTimeout: time.Duration(t.DialTimeout), ReadBuffer: t.ReadBufferSize, WriteBuffer: t.WriteBufferSize,
		MaxResponseHeader: t.MaxResponseHeaderSize, MaxConnsPerHost: t.MaxConnsPerHost, Versions: t.Versions,
	}
	if t.TLS != nil {
		config, err := t.TLS.MakeTLSClientConfig(ctx)
		if err != nil {
			return options, forward.Limits{}, err
		}
		options.TLS, options.TLSHandshakeTimeout = config, time.Duration(t.TLS.HandshakeTimeout)
	}
	if k := t.KeepAlive; k != nil {
		options.KeepAlive, options.IdleConns, options.IdleConnsPerHost = time.Duration(k.IdleConnTimeout), k.MaxIdleConns, k.MaxIdleConnsPerHost
		if k.Enabled != nil && !*k.Enabled {
			options.KeepAlive = -1
		}
	}
	return options, forward.Limits{HeaderTimeout: time.Duration(t.ResponseHeaderTimeout), Idle: time.Duration(t.ReadTimeout)}, nil
}

// unsupported names the first setting that does not apply here.
func (t *Transport) unsupported() error {
	if t.TLS != nil && t.TLS.InsecureSkipVerify {
		return errors.New("tls_insecure_skip_verify would send credentials to anybody; trust the upstream's certificate authority instead")
	}
	if t.Client != "" && t.Client != clientNetHTTP {
		return fmt.Errorf("client %q is not known; it is %s or left out", t.Client, clientNetHTTP)
	}
	if (t.ReadBufferSize != 0 || t.WriteBufferSize != 0) && !t.netHTTP() {
		return errors.New("read_buffer and write_buffer apply to transport " + clientNetHTTP + " only")
	}
	for _, setting := range []struct {
		word string
		set  bool
	}{
		{"resolvers", t.Resolver != nil}, {"compression", t.Compression != nil && *t.Compression}, {"proxy_protocol", t.ProxyProtocol != ""},
		{"forward_proxy_url", t.ForwardProxyURL != ""}, {"network_proxy", t.NetworkProxyRaw != nil}, {"local_address", t.LocalAddress != ""},
		{"dial_fallback_delay", t.FallbackDelay != 0}, {"expect_continue_timeout", t.ExpectContinueTimeout != 0}, {"write_timeout", t.WriteTimeout != 0},
		{"tls_server_name", t.TLS != nil && t.TLS.ServerName != ""}, {"tls_except_ports", t.TLS != nil && len(t.TLS.ExceptPorts) > 0},
		{"keepalive_interval", t.KeepAlive != nil && t.KeepAlive.ProbeInterval != 0},
	} {
		if setting.set {
			return fmt.Errorf("%s does not apply to the gateway's connections", setting.word)
		}
	}
	return nil
}
