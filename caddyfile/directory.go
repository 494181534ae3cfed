package caddyfile

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/directory"
	"github.com/durward-gateway/durward/modules/app"
)

// parseDirectory reads one of
//
//	directory {file.<path>}
//	directory <name> {
//		url <url>
//		...
//	}
//
// The words of the block are the members of a directory entry.
func parseDirectory(d *caddyfile.Dispenser, a *app.App) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	if a.Directory == nil {
		a.Directory = new(app.Directory)
	}
	name := d.Val()
	if strings.HasPrefix(name, "{file.") {
		a.Directory.Files = append(a.Directory.Files, name)
		if d.NextArg() || d.NextBlock(d.Nesting()) {
			return d.Err("a directory file takes no further arguments and no block")
		}
		return nil
	}
	entry := directory.Record{Name: name}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		arguments := d.RemainingArgs()
		if len(arguments) == 0 {
			return d.ArgErr()
		}
		if err := entry.Set(word, arguments); err != nil {
			return d.WrapErr(err)
		}
	}
	a.Directory.Entries = append(a.Directory.Entries, entry)
	return nil
}
