// Package durward is the whole gateway as one import: linking it into a Caddy
// build adds durward's modules, its Caddyfile directives and its subcommands.
//
// `xcaddy build --with github.com/durward-gateway/durward`, cmd/durward and the
// binaries of cmd/durward-build compile this package. It holds no code of its own.
package durward

import (
	// The Caddyfile's words.
	_ "github.com/durward-gateway/durward/caddyfile"
	// The subcommands, and what stands in for Caddy's upgrade.
	_ "github.com/durward-gateway/durward/cmd/commands"
	// The modules.
	_ "github.com/durward-gateway/durward/modules/standard"
)
