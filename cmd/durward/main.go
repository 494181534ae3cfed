// Command durward is Caddy with the durward modules linked in: an edge gateway in
// front of MCP servers. `durward help` lists what it can do.
package main

import (
	"os"
	"runtime/debug"
	_ "time/tzdata"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/durward-gateway/durward"
)

// version is set by the linker in release builds (make build VERSION=v1.2.3).
var version string

const description = `durward is an edge gateway in front of MCP servers: it knows who is calling and puts
that person's own third-party credential on the request at the last moment. It is
Caddy, with the durward modules linked in, so everything that is said of Caddy's
configuration, reloads and certificates holds here too.

To try it on this machine, with nothing else installed:

	$ durward dev

and, in a second terminal, the main job step by step:

	$ durward tour

In production it is driven by a Caddyfile:

	$ durward run --config Caddyfile
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		adaptCollector()
	}
	caddy.CustomBinaryName = "durward"
	caddy.CustomLongDescription = description
	caddy.CustomVersion = buildVersion()
	caddycmd.Main()
}

// buildVersion is what the linker was told or else what the Go toolchain recorded
// of this module: a tag, a pseudo-version, or "(devel)".
func buildVersion() string {
	if version != "" {
		return "durward " + version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return "durward " + info.Main.Version
	}
	return "durward (devel)"
}
