// Package arguments reads the arguments of directives in a Caddyfile.
package arguments

import "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

// None reads a directive that takes neither arguments nor a block.
func None(d *caddyfile.Dispenser) error {
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

// Append appends the arguments of a line, of which there must be one at least.
func Append(d *caddyfile.Dispenser, list *[]string) error {
	arguments := d.RemainingArgs()
	if len(arguments) == 0 {
		return d.ArgErr()
	}
	*list = append(*list, arguments...)
	return nil
}
