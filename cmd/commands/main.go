package commands

import (
	"runtime/debug"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/durward-gateway/durward/cmd/commands/health" // registers itself
)

const ourModule = "github.com/durward-gateway/durward"

const description = `durward is an edge gateway in front of MCP servers: it knows who is calling and puts
that person's own third-party credential on the request at the last moment. It is
Caddy, with the durward modules linked in, so everything that is said of Caddy's
configuration, reloads and certificates holds here too.

` + firstSteps + `In production it is driven by a Caddyfile:

	$ durward run --config Caddyfile
`

// examples replaces Caddy's examples in help, which name another binary.
const examples = firstExample + `  $ durward run --config Caddyfile
  $ durward validate --config Caddyfile
  $ durward reload --config Caddyfile
  $ durward stop`

// Main is the main function of a binary that is durward rather than a Caddy with durward in it. version is set by the
// linker; "" means the version that the Go toolchain recorded.
func Main(version string) {
	running = version
	caddy.CustomBinaryName = "durward"
	caddy.CustomLongDescription = description
	caddy.CustomVersion = "durward " + ownVersion() + ", Caddy" // Caddy puts its own version behind it
	caddycmd.Main()
}

// running is the version that the linker has set; "" when it has not.
var running string

// ownVersion returns the version of this binary.
func ownVersion() string {
	if running != "" {
		return running
	}
	return recordedVersion(debug.ReadBuildInfo())
}

// recordedVersion returns the version of this module, which is the main one or, in a custom build, a dependency: a
// tag, a pseudo-version, or "(devel)".
func recordedVersion(info *debug.BuildInfo, ok bool) string {
	const unknown = "(devel)"
	if !ok {
		return unknown
	}
	for _, module := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if module.Path != ourModule {
			continue
		}
		if module.Replace != nil {
			module = module.Replace // by a directory, which has no version, or by a fork
		}
		if module.Version != "" {
			return module.Version
		}
	}
	return unknown
}
