package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseDirectory reads one of
//
//	directory {file.<path>}
//	directory <name> {
//		url <url>
//		...
//	}
//
// The words of the block are the members of a directory entry, each given once.
func parseDirectory(d *caddyfile.Dispenser, a *app.App) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	if a.Directory == nil {
		a.Directory = new(settings.Directory)
	}
	name := d.Val()
	if settings.IsReference(name) {
		a.Directory.Files = append(a.Directory.Files, name)
		if d.NextArg() || d.NextBlock(d.Nesting()) {
			return d.Err("a directory file takes no further arguments and no block")
		}
		return nil
	}
	if d.NextArg() {
		return d.Err("put a directory entry's name in quotes when it has several words")
	}
	entry := directory.Record{Name: name}
	seen := make(map[string]bool)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word := d.Val()
		if seen[word] {
			return d.Errf("%s may be given once", word)
		}
		seen[word] = true
		arguments := d.RemainingArgs()
		if len(arguments) == 0 {
			return d.ArgErr()
		}
		if err := entry.Set(word, arguments); err != nil {
			return d.WrapErr(err)
		}
	}
	if entry.URL == "" {
		return d.Errf("directory %q needs a url", name)
	}
	a.Directory.Entries = append(a.Directory.Entries, entry)
	return nil
}
