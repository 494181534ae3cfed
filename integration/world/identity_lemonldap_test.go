package world

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestGuideOfLemonLDAP checks that docs/identity/lemonldap-ng.md leads from Debian's LemonLDAP::NG to a first call,
// with nothing but what the page says (W20 to W22).
func TestGuideOfLemonLDAP(t *testing.T) {
	lab(t, all, newest)
	tools(t) // installs it where that is possible
	for _, program := range []string{"/usr/share/lemonldap-ng/bin/lemonldap-ng-cli", "starman"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: integration/world/setup names Debian's packages", program)
		}
	}
	if settings, err := os.Open("/var/lib/lemonldap-ng/conf/lmConf-1.json"); err != nil {
		t.Skipf("the package's configuration is for root and www-data: %v", err)
	} else {
		_ = settings.Close()
	}
	r := &row{section: identityProviders, software: "LemonLDAP::NG", version: debianVersion(t, "liblemonldap-ng-portal-perl"), tried: "docs/identity/lemonldap-ng.md: log in, administrator by group, a first call; clients that register at the gateway"}
	record(t, r)

	gatePort, issuerPort, upstreamPort, callbackPort := rig.FreePort(t), rig.FreePort(t), rig.FreePort(t), rig.FreePort(t)
	gate, issuer, upstream := "http://127.0.0.1:"+gatePort, "http://localhost:"+issuerPort+"/", "http://127.0.0.1:"+upstreamPort+"/mcp"
	g := readGuide(t, "lemonldap-ng.md", "http://127.0.0.1:8080", gate, "http://localhost:5050/", issuer, "http://127.0.0.1:9001", "http://127.0.0.1:"+callbackPort)
	g.installs("@modelcontextprotocol/server-everything")
	g.names(r)
	if output, err := g.script([]string{loginSecret}, "prepare"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	portal := g.start([]string{"LLNG_DEFAULTCONFFILE=lemonldap-ng.ini"}, "starman", "--workers", "4", "--listen", "127.0.0.1:"+issuerPort, "portal.psgi")
	portal.WaitFor(t, issuer+".well-known/openid-configuration")
	// A browser keeps a spare connection, which a portal of one process waits for while the gateway redeems the code.
	spare, err := net.Dial("tcp", "127.0.0.1:"+issuerPort) //nolint:noctx // the test's own
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	durward := g.gateway(gate)

	env := []string{"GATE=" + gate, "ISSUER=" + issuer, "UPSTREAM=" + upstream}
	// The users of its demonstration have their names for passwords.
	pages := forms{gate: gate, fill: func(user string) map[string]string { return map[string]string{"user": user, "password": user} }}
	root, alice := g.login(env, "dwho", pages.browse), g.login(env, "rtyler", pages.browse)
	g.firstCall(env, gate, durward, root, alice)
	pages.visit(t, "rtyler", "rtyler@badwolf.org")
	pages.letsIn(t, "rtyler")
	if t.Failed() {
		t.Log(rig.Tail(portal.Output.String(), 3_000))
	}
}
