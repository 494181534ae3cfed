package world

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/integration/rig"
)

// mcpServer is a server of another project, and the questions to it.
type mcpServer struct {
	software  string                    // its name in the report
	version   string                    // of the npm package of this name, or the version itself
	clients   []string                  // by which it is asked: 1, 2, modern (see probe.mjs)
	transport string                    // "sse": that of 2024-11-05
	short     bool                      // CI asks it, too
	start     func(t *testing.T) string // starts it and returns its address
	plain     func(t *testing.T) string // starts the server that is asked directly, when that is another process
	connect   bool                      // it wants an account: the user connects one at the gateway
	probes    []probe
	mask      []string // regular expressions for the parts that differ from run to run
	differ    []string // probes that differ because the gateway is made so
	why       string   // why it is made so
	remark    string
}

// probe is a question to a server, see probe.mjs.
type probe struct {
	Name     string         `json:"name"`
	Method   string         `json:"method,omitempty"`
	Params   map[string]any `json:"params,omitempty"`
	Progress bool           `json:"progress,omitempty"`
	Wait     []string       `json:"wait,omitempty"`
	Quiet    bool           `json:"quiet,omitempty"`
	Cancel   bool           `json:"cancel,omitempty"`
	Task     bool           `json:"task,omitempty"`
	Resume   bool           `json:"resume,omitempty"`
	Listen   string         `json:"listen,omitempty"`
	HTTP     []exchange     `json:"http,omitempty"`
}

// exchange is an HTTP request of a probe.
type exchange struct {
	Method string            `json:"method"`
	Body   any               `json:"body,omitempty"`
	Header map[string]string `json:"header,omitempty"`
}

type object = map[string]any

// call returns a probe that calls a tool.
func call(tool string, arguments object) probe {
	if arguments == nil {
		arguments = object{}
	}
	return probe{Name: strings.TrimSpace(tool + " " + brief(arguments)), Method: "tools/call", Params: object{"name": tool, "arguments": arguments}}
}

// brief names a call's arguments.
func brief(arguments object) string {
	if len(arguments) == 0 {
		return ""
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	if len(text) > 60 {
		text = append(text[:60], "..."...)
	}
	return string(text)
}

func (p probe) withProgress() probe                 { p.Progress, p.Name = true, p.Name+", progress"; return p }
func (p probe) waits(notifications ...string) probe { p.Wait = notifications; return p }

func (p probe) named(name string) probe { p.Name = name; return p }

func complete(ref object, argument, value string) probe {
	return probe{Name: "complete " + argument, Method: "completion/complete", Params: object{"ref": ref, "argument": object{"name": argument, "value": value}}}
}

func logLevel(level string) probe {
	return probe{Name: "log level", Method: "logging/setLevel", Params: object{"level": level}}
}

func read(uri string) probe {
	return probe{Name: "read " + uri, Method: "resources/read", Params: object{"uri": uri}}
}

func prompt(name string, arguments object) probe {
	if arguments == nil {
		arguments = object{}
	}
	return probe{Name: "prompt " + name, Method: "prompts/get", Params: object{"name": name, "arguments": arguments}}
}

// servers returns all servers that are asked.
func servers(t *testing.T) []mcpServer {
	return slices.Concat(everythings(), sdkServers(), bridged(), goServers(), frameworks(t))
}

// TestMCPServers checks that a server gives the same answers directly and through the gateway.
func TestMCPServers(t *testing.T) {
	lab(t)
	g := startGateway(t, "")
	for _, s := range servers(t) {
		if form == short && !s.short {
			continue
		}
		clients := s.clients
		if form == short {
			clients = clients[:1]
		}
		for _, client := range clients {
			t.Run(s.software+"/"+client, func(t *testing.T) {
				t.Parallel()
				s.compare(t, g, client)
			})
		}
	}
}

// clientNames are those of probe.mjs, as the report says them.
var clientNames = map[string]string{"1": "TypeScript SDK 1.x", "2": "TypeScript SDK 2.x, 2025 era", "modern": "TypeScript SDK 2.x, 2026-07-28"}

// compare asks a server directly and through the gateway.
func (s mcpServer) compare(t *testing.T, g *gateway, client string) {
	r := &row{section: mcpServers, software: s.software, version: s.release(t), tried: "probes of " + clientNames[client], remark: s.remark}
	record(t, r)
	address := s.start(t)
	plain := address
	if s.plain != nil {
		plain = s.plain(t)
	}
	direct := s.ask(t, client, plain, "")
	var entry map[string]any
	if s.connect {
		entry = map[string]any{"provider": "oauth2", "requires_auth": true}
	}
	server := g.serve(address, entry)
	if s.connect {
		g.connect(server, alice)
	}
	through := s.ask(t, client, server, g.token(alice))
	r.tried += s.asked(direct)
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		want := direct[name]
		switch difference := cmp.Diff(want, through[name]); {
		case difference == "":
		case slices.Contains(s.differ, name):
			r.ours = s.why
		default:
			t.Errorf("%s: %s\n(-directly +through the gateway):\n%s\ndirectly: %s\nthrough:  %s", name, s.request(name), rig.Tail(difference, 5_000), shown(want), shown(through[name]))
		}
	}
}

// release returns the version in the report.
func (s mcpServer) release(t testing.TB) string {
	if strings.HasPrefix(s.version, "v") {
		return s.version
	}
	return version(t, s.version)
}

// ask puts the probes to an address.
func (s mcpServer) ask(t *testing.T, client, address, token string) map[string]any {
	t.Helper()
	output := run(t, map[string]any{"url": address, "token": token, "transport": s.transport, "probes": slices.Concat(s.probes, rough(s.transport, client)), "mask": s.mask}, "probe.mjs", client)
	var found map[string]any
	if err := json.Unmarshal(output, &found); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return found
}

// rough returns raw requests, which an official client never sends, or whose answers it does not show.
func rough(transport, client string) []probe {
	if transport != "" || client == "modern" {
		return nil
	}
	ping := object{"jsonrpc": "2.0", "id": 1, "method": "ping"}
	return []probe{{Name: "HTTP", HTTP: []exchange{
		{Method: "POST", Body: ping},
		{Method: "POST", Body: object{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}},
		{Method: "DELETE"},
		{Method: "POST", Body: ping},
	}}}
}

// asked returns the number of probes.
func (s mcpServer) asked(found map[string]any) string {
	return fmt.Sprintf(", %d of them", len(found))
}

// request returns the probe of a name, as JSON.
func (s mcpServer) request(name string) string {
	for _, p := range s.probes {
		if p.Name == name {
			return shown(p)
		}
	}
	return name
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return rig.Tail(string(text), 3_000)
}
