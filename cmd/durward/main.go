// Command durward is Caddy with the durward modules linked in: an edge gateway in
// front of MCP servers. `durward help` lists what it can do.
package main

import (
	"os"
	_ "time/tzdata"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/durward-gateway/durward"
	"github.com/durward-gateway/durward/cmd/commands"
)

// version is set by the linker in release builds (make build VERSION=v1.2.3).
var version string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		adaptCollector()
	}
	commands.Main(version)
}
