package sites_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/modules/caddytest"
	"github.com/durward-gateway/durward/modules/caddytest/probe"
)

// TestSiteThatTakesTheGatewaysRequests: a configuration in which no request for the public URL can come to the gateway does not load,
// and says which site takes them; what other sites take besides is told.
func TestSiteThatTakesTheGatewaysRequests(t *testing.T) {
	handlers := []any{auth, probe.Handler, caddytest.Named("durward_platform")}
	gateway := object{"handler": "durward_pipeline", "handle": handlers}
	health := object{"handler": "subroute", "routes": []any{object{"handle": []any{auth, object{"handler": "durward_platform", "health_only": true}}}}}
	other := object{"handler": "static_response"}
	route := func(handler object, hosts ...string) object {
		r := object{"handle": []any{handler}, "terminal": true}
		if len(hosts) > 0 {
			r["match"] = []any{object{"host": hosts}}
		}
		return r
	}
	server := func(listen string, routes ...any) object {
		return object{"listen": strings.Fields(listen), "automatic_https": object{"disable": true}, "routes": routes}
	}
	partial := route(other, "127.0.0.1")
	partial["match"] = []any{object{"host": []string{"127.0.0.1"}, "path": []string{"/docs/*"}}}
	passing := route(other, "127.0.0.1")
	passing["terminal"] = false
	proxy := object{"handler": "reverse_proxy", "upstreams": []any{object{"dial": "127.0.0.1:8081"}}}
	handlePath := object{"handler": "subroute", "routes": []any{
		object{"match": []any{object{"path": []string{"/docs/*"}}}, "group": "g", "handle": []any{object{"handler": "subroute", "routes": []any{object{"handle": []any{object{"handler": "rewrite", "strip_path_prefix": "/docs"}, other}}}}}},
		object{"group": "g", "handle": []any{gateway}},
	}}
	byHost := object{"handler": "subroute", "routes": []any{
		object{"match": []any{object{"host": []string{"www.example.com"}}}, "group": "g", "handle": []any{other}},
		object{"group": "g", "handle": []any{gateway}},
	}}
	asked := route(other, "127.0.0.1")
	asked["match"] = []any{object{"host": []string{"127.0.0.1"}, "method": []string{"GET"}}, object{"host": []string{"127.0.0.1"}, "remote_ip": object{"ranges": []string{"10.0.0.0/8"}}}}
	const local, name = "http://127.0.0.1:8080", "https://gate.example.com"
	for _, test := range []struct {
		name, public string
		servers      object
		refused      string   // "": it loads
		taken        []string // what is told
	}{
		{name: "a more specific host", public: local, servers: object{"a": server(":8080", route(health, "127.0.0.1"), route(gateway))}, refused: "the site 127.0.0.1 on :8080 takes every request for " + local},
		{name: "a more specific host, not of ours", public: local, servers: object{"a": server("127.0.0.1:8080", route(other, "127.0.0.1", "localhost"), route(gateway))}, refused: "the site 127.0.0.1,localhost on 127.0.0.1:8080 takes"},
		{name: "a host instead of a wildcard", public: name, servers: object{"a": server(":443", route(other, "gate.example.com"), route(gateway, "*.example.com"))}, refused: "the site gate.example.com on :443 takes every request for " + name},
		{name: "a site for every host", public: name, servers: object{"a": server(":443", route(other), route(gateway, "gate.example.com"))}, refused: "the site without a host on :443 takes"},
		{name: "IPv6", public: "http://[::1]:8080", servers: object{"a": server(":8080", route(health, "::1"), route(gateway))}, refused: "the site ::1 on :8080 takes"},
		{name: "a more specific address", public: local, servers: object{"a": server(":8080", route(gateway, "127.0.0.1")), "b": server("127.0.0.1:8080", route(health, "127.0.0.1"))}, refused: "the site 127.0.0.1 on 127.0.0.1:8080 takes every request for " + local},
		{name: "a more specific address, named", public: local, servers: object{"a": server(":8080", route(gateway, "127.0.0.1")), "b": server("localhost:8080", route(health, "127.0.0.1"))}, refused: "the site 127.0.0.1 on localhost:8080 takes"},
		{name: "a port of a range", public: "http://127.0.0.1:8082", servers: object{"a": server(":8080-8085", route(gateway)), "b": server("127.0.0.1:8082", route(health))}, refused: "the site without a host on 127.0.0.1:8082 takes"},
		{name: "a range with the port", public: local, servers: object{"a": server(":8080", route(gateway)), "b": server("127.0.0.1:8078-8081", route(health))}, refused: "the site without a host on 127.0.0.1:8078-8081 takes"},
		{name: "one of several addresses", public: local, servers: object{"a": server(":8443 :8080", route(health, "127.0.0.1"), route(gateway))}, refused: "the site 127.0.0.1 on :8080 takes"},
		{name: "one of several hosts", public: name, servers: object{"a": server(":443", route(other, "www.example.com", "*.example.com"), route(gateway, "gate.example.com"))}, refused: "the site www.example.com,*.example.com on :443 takes"},

		{name: "a more specific address that the public URL need not lead to", public: name, servers: object{"a": server(":8080", route(gateway)), "b": server("127.0.0.1:8080", route(health, "127.0.0.1"))},
			taken: []string{"the site 127.0.0.1 on 127.0.0.1:8080 takes what connects to that address from the gateway's site on :8080"}},
		{name: "a name for two addresses, one of which is taken", public: "http://localhost:8080", servers: object{"a": server(":8080", route(gateway, "localhost")), "b": server("127.0.0.1:8080", route(health, "127.0.0.1"))},
			taken: []string{"the site 127.0.0.1 on 127.0.0.1:8080 takes what connects to that address from the gateway's site on :8080"}},
		{name: "another port of a range", public: local, servers: object{"a": server(":9443 :8080-8085", route(gateway)), "b": server("127.0.0.1:8082", route(health))},
			taken: []string{"the site without a host on 127.0.0.1:8082 takes what connects to that address from the gateway's site on :8080-8085"}},
		{name: "ranges apart", public: local, servers: object{"a": server(":8080-8085", route(gateway)), "b": server("127.0.0.1:8086-8090", route(health))}},
		{name: "a site that proxies", public: local, servers: object{"a": server("127.0.0.1:8080", route(proxy, "127.0.0.1"), route(gateway)), "b": server("127.0.0.1:8081", route(gateway))},
			taken: []string{"the site 127.0.0.1 on 127.0.0.1:8080 takes every request for " + local + " from the gateway's site, unless it proxies them there"}},
		{name: "a more specific address that proxies", public: local, servers: object{"a": server(":8080", route(gateway)), "b": server("127.0.0.1:8080", route(object{"handler": "subroute", "routes": []any{object{"handle": []any{proxy}}}}, "127.0.0.1"))},
			taken: []string{"the site 127.0.0.1 on 127.0.0.1:8080 takes what connects to that address from the gateway's site on :8080"}},
		{name: "a host that is a placeholder", public: local, servers: object{"a": server("127.0.0.1:8080", route(other, "{env.OTHER}"), route(gateway))}},
		{name: "the gateway's host is a placeholder", public: local, servers: object{"a": server(":8080", route(gateway)), "b": server("127.0.0.1:8080", route(gateway, "{env.GATE}"))}},
		{name: "some paths beside the gateway (handle_path)", public: local, servers: object{"a": server("127.0.0.1:8080", route(handlePath, "127.0.0.1"), route(gateway))}},
		{name: "a wildcard's hosts, told apart inside", public: name, servers: object{"a": server(":443", route(byHost, "*.example.com"), route(other))}},
		{name: "some methods, some clients", public: local, servers: object{"a": server("127.0.0.1:8080", asked, route(gateway))}},
		{name: "several addresses, one of them taken from nobody", public: local, servers: object{"a": server("127.0.0.1:8080 [::1]:8080", route(gateway, "127.0.0.1")), "b": server("127.0.0.2:8080", route(health))}},
		{name: "one of another family", public: name, servers: object{"a": server("0.0.0.0:8080", route(gateway)), "b": server("[::1]:8080", route(health))}},
		{name: "another port", public: local, servers: object{"a": server(":8080", route(gateway, "127.0.0.1")), "b": server("127.0.0.1:8081", route(health, "127.0.0.1"))}},
		{name: "another host", public: name, servers: object{"a": server(":443", route(other, "www.example.com"), route(gateway))}},
		{name: "a wildcard beside the host", public: name, servers: object{"a": server(":443", route(gateway, "gate.example.com"), route(other, "*.example.com"))}},
		{name: "some paths", public: local, servers: object{"a": server("127.0.0.1:8080", partial, route(gateway))}},
		{name: "a route that passes on", public: local, servers: object{"a": server("127.0.0.1:8080", passing, route(gateway))}},
		{name: "the gateway, written out", public: local, servers: object{"a": server("127.0.0.1:8080", route(object{"handler": "subroute", "routes": []any{object{"handle": handlers}}}, "127.0.0.1"), route(gateway))}},
		{name: "the other port is the public one", public: "http://127.0.0.1:8443", servers: object{"a": server("127.0.0.1:8080", route(other, "127.0.0.1"), route(gateway)), "b": server("127.0.0.1:8443", route(gateway))}},
		{name: "behind a proxy", public: name, servers: object{"a": server(":8080", route(gateway)), "b": server("127.0.0.1:8081", route(health))}},
		{name: "a named route", public: local, servers: object{"a": object{
			"listen": []string{"127.0.0.1:8080"}, "automatic_https": object{"disable": true}, "routes": []any{route(object{"handler": "invoke", "name": "gate"}, "127.0.0.1"), route(gateway)},
			"named_routes": object{"gate": object{"handle": []any{gateway}}},
		}}},
		{name: "a socket", public: name, servers: object{"a": server("unix//tmp/gate.sock", route(other, "gate.example.com"), route(gateway))}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := production(t, test.public)
			err := caddytest.Validate(caddytest.Servers(config, test.servers))
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), "give it another port") {
					t.Fatalf("error %v, want one that says %q and what to do", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.taken, probe.Found.App.Taken()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
