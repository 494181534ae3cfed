package app

import "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

// NoArguments reads a directive that takes neither arguments nor a block.
func NoArguments(d *caddyfile.Dispenser) error {
	for d.Next() {
		if d.NextArg() {
			return d.ArgErr()
		}
		if d.NextBlock(0) {
			return d.Errf("unrecognized word %q: this directive takes no block", d.Val())
		}
	}
	return nil
}

// AppendArguments appends the arguments of a line, of which there must be one at least.
func AppendArguments(d *caddyfile.Dispenser, list *[]string) error {
	arguments := d.RemainingArgs()
	if len(arguments) == 0 {
		return d.ArgErr()
	}
	*list = append(*list, arguments...)
	return nil
}

// unmarshalTransport reads a directive whose block may hold `transport { ... }`. Syntax of the block:
//
//	transport [net_http] {
//		<words of Caddy's transport http>
//	}
func unmarshalTransport(d *caddyfile.Dispenser) (*Transport, error) {
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
