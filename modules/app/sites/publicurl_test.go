package sites_test

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/modules/caddytest"
	"github.com/durward-gateway/durward/modules/caddytest/probe"
)

func TestPublicURLIsThatOfTheSite(t *testing.T) {
	at := func(listen string, hosts ...string) object {
		return caddytest.Server(listen, hosts, auth, probe.Handler)
	}
	https := func(listen string, hosts ...string) object {
		s := at(listen, hosts...)
		s["automatic_https"] = object{"disable_certificates": true, "disable_redirects": true}
		return s
	}
	skipped := func(listen string, hosts ...string) object {
		s := https(listen, hosts...)
		s["automatic_https"] = object{"skip": hosts}
		return s
	}
	secure := func(listen string, hosts ...string) object {
		s := at(listen, hosts...)
		s["tls_connection_policies"] = []any{object{}}
		return s
	}
	for _, test := range []struct {
		name    string
		servers object
		want    string // public URL
		refused string // part of the error
	}{
		{name: "https on the standard port", servers: object{"a": https(":443", "gate.example.com")}, want: "https://gate.example.com"},
		{name: "https on another port", servers: object{"a": https(":8443", "gate.example.com")}, want: "https://gate.example.com:8443"},
		{name: "automatic https off, with a TLS policy", servers: object{"a": secure(":443", "gate.example.com")}, want: "https://gate.example.com"},
		{name: "http on the standard port", servers: object{"a": https(":80", "gate.example.com")}, want: "http://gate.example.com"},
		{name: "http on another port", servers: object{"a": at(":8080", "gate.example.com")}, want: "http://gate.example.com:8080"},
		{name: "written as http:// beside https sites", servers: object{"a": skipped(":8080", "gate.example.com")}, want: "http://gate.example.com:8080"},
		{name: "two addresses with the same port", servers: object{"a": object{
			"listen": []string{"127.0.0.1:8443", "127.0.0.2:8443"}, "routes": []any{object{"match": []any{object{"host": []string{"gate.example.com"}}}, "handle": []any{auth, probe.Handler}}},
		}}, want: "https://gate.example.com:8443"},
		{name: "the host is written in capitals", servers: object{"a": https(":443", "Gate.Example.COM")}, want: "https://gate.example.com"},
		{name: "an address of IPv6", servers: object{"a": https(":8443", "2001:db8::1")}, want: "https://[2001:db8::1]:8443"},
		{name: "another site without the gateway", servers: object{
			"a": https(":8443", "gate.example.com"), "b": caddytest.Server(":8444", []string{"www.example.com"}, object{"handler": "static_response"}),
		}, want: "https://gate.example.com:8443"},
		{name: "several hosts", servers: object{"a": https(":443", "gate.example.com", "gate.example.org")}, refused: "not a single host"},
		{name: "any host", servers: object{"a": https(":443")}, refused: "not a single host"},
		{name: "a wildcard", servers: object{"a": https(":443", "*.example.com")}, refused: "not a single host"},
		{name: "two sites", servers: object{"a": https(":443", "gate.example.com"), "b": https(":8443", "gate.example.com")}, refused: "several sites"},
		{name: "a unix socket", servers: object{"a": at("unix//tmp/gate.sock", "gate.example.com")}, refused: "not listen on one known port"},
		{name: "a range of ports", servers: object{"a": at(":8000-8003", "gate.example.com")}, refused: "not listen on one known port"},
		{name: "no address", servers: object{"a": object{"routes": []any{object{"match": []any{object{"host": []string{"gate.example.com"}}}, "handle": []any{auth}}}}}, refused: "not listen on one known port"},
		{name: "a named route", servers: object{"a": object{
			"listen": []string{":8080"}, "routes": []any{object{"handle": []any{object{"handler": "invoke", "name": "gate"}}}},
			"named_routes": object{"gate": object{"handle": []any{auth}}},
		}}, refused: "not a single host"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := production(t, "")
			err := caddytest.Validate(caddytest.Servers(config, test.servers))
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), "set public_url in the durward option: ") || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("error %v, want one that says %q and what to do", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := probe.Found.PublicURL; got != test.want {
				t.Errorf("public URL %q, want %q", got, test.want)
			}
		})
	}
}

func TestPublicURLThatIsWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"https://gate.example.com":           "https://gate.example.com",
		"https://gate.example.com/":          "https://gate.example.com",
		"https://Gate.Example.com:443":       "https://gate.example.com",
		"https://gate.example.com:8443":      "https://gate.example.com:8443",
		"http://gate.example.com:80":         "http://gate.example.com",
		"http://gate.example.com:443":        "http://gate.example.com:443",
		"https://[2001:db8::1]:443":          "https://[2001:db8::1]",
		"gate.example.com":                   "",
		"//gate.example.com":                 "",
		"ftp://gate.example.com":             "",
		"https://":                           "",
		"https://:8443":                      "",
		"https://gate.example.com/gateway":   "",
		"https://gate.example.com?x":         "",
		"https://gate.example.com?":          "",
		"https://gate.example.com#x":         "",
		"https://me@gate.example.com":        "",
		"https://*.example.com":              "",
		"https://bücher.example":             "",
		"{env.PUBLIC_URL}":                   "",
		"https://{http.request.host}":        "",
		"https://gate.example.com:8443:8443": "",
	} {
		config := production(t, text)
		err := caddytest.Validate(caddytest.Config(config, "127.0.0.1:0", auth, probe.Handler))
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "public_url: ")):
			t.Errorf("%q: error %v, want a refusal that names public_url", text, err)
		case want != "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && probe.Found.PublicURL != want:
			t.Errorf("%q became %q, want %q", text, probe.Found.PublicURL, want)
		}
	}
}

func TestDevelopmentIdentitiesStayOnLoopback(t *testing.T) {
	dev := caddytest.Named("durward_dev")
	at := func(listen ...string) object {
		return object{"listen": listen, "automatic_https": object{"disable": true}, "routes": []any{object{"handle": []any{dev, auth, probe.Handler}}}}
	}
	for _, test := range []struct {
		name    string
		servers object
		public  string
		want    string
		refused string
	}{
		{name: "127.0.0.1", servers: object{"a": at("127.0.0.1:8080")}, want: "http://127.0.0.1:8080"},
		{name: "port 80", servers: object{"a": at("127.0.0.1:80")}, want: "http://127.0.0.1"},
		{name: "another loopback address", servers: object{"a": at("127.3.2.1:8080")}, want: "http://127.3.2.1:8080"},
		{name: "localhost", servers: object{"a": at("localhost:8080")}, want: "http://localhost:8080"},
		{name: "IPv6", servers: object{"a": at("[::1]:8080")}, want: "http://[::1]:8080"},
		{name: "a unix socket with a public URL", servers: object{"a": at("unix//tmp/durward-test.sock")}, public: "http://localhost:8080", want: "http://localhost:8080"},
		{name: "a unix socket alone", servers: object{"a": at("unix//tmp/durward-test.sock")}, refused: "set public_url"},
		{name: "two addresses", servers: object{"a": at("127.0.0.1:8080", "[::1]:8080")}, refused: "several addresses"},
		{name: "a port that is chosen by the system", servers: object{"a": at("127.0.0.1:0")}, refused: "not listen on one known port"},
		{name: "every address", servers: object{"a": at(":8080")}, refused: `listens on ":8080"`},
		{name: "every address of IPv4", servers: object{"a": at("0.0.0.0:8080")}, refused: `"0.0.0.0:8080"`},
		{name: "every address of IPv6", servers: object{"a": at("[::]:8080")}, refused: `"[::]:8080"`},
		{name: "a public address beside loopback", servers: object{"a": at("127.0.0.1:8080", "192.0.2.7:8080")}, refused: `"192.0.2.7:8080"`},
		{name: "a public URL does not help", servers: object{"a": at(":8080")}, public: "http://localhost:8080", refused: `":8080"`},
		{name: "a second site that others can reach", servers: object{"a": at("127.0.0.1:8080"), "b": at(":8081")}, public: "http://localhost:8080", refused: `":8081"`},
		{name: "only the provider on a site that others can reach", servers: object{
			"a": at("127.0.0.1:8080"), "b": caddytest.Server(":8081", nil, dev),
		}, public: "http://localhost:8080", refused: `":8081"`},
		{name: "a named route", servers: object{"a": object{
			"listen": []string{":8081"}, "routes": []any{object{"handle": []any{object{"handler": "invoke", "name": "gate"}}}},
			"named_routes": object{"gate": object{"handle": []any{dev}}},
		}}, public: "http://localhost:8080", refused: `":8081"`},
		{name: "an error route", servers: object{"a": object{
			"listen": []string{":8081"}, "errors": object{"routes": []any{object{"handle": []any{dev}}}},
		}}, public: "http://localhost:8080", refused: `":8081"`},
		{name: "inside another handler", servers: object{"a": object{
			"listen": []string{":8081"}, "routes": []any{object{"handle": []any{object{"handler": "subroute", "routes": []any{object{"handle": []any{dev}}}}}}},
		}}, public: "http://localhost:8080", refused: `":8081"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := development(t.TempDir())
			if test.public != "" {
				config["public_url"] = test.public
			}
			err := caddytest.Validate(caddytest.Servers(config, test.servers))
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("error %v, want one with %s", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if probe.Found.PublicURL != test.want {
				t.Errorf("public URL %q, want %q", probe.Found.PublicURL, test.want)
			}
		})
	}
}
