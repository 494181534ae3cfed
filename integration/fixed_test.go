package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFixed checks what administrators and auditors see of the configuration: each option with the line that has it, no
// secret or reference to one, no path of a file, and no identity provider of another organization. The health of the node
// names none of those either.
func TestFixed(t *testing.T) {
	t.Parallel()
	const rival = "https://login.rival.example"
	provider := newIdentityProvider(t)
	g := startGateway(t, settings{
		provider: provider, identity: "auditor_role reader\n\t\t\toperator_role keeper",
		option: "identity oidc " + rival + " {\n\t\t\torganization rival-co\n\t\t\taudience https://canary-audience.example\n\t\t}\n" +
			"\t\tnotify {\n\t\t\twebhook https://hooks.example.com/canary-path {\n\t\t\t\tsecret {env.CANARY_SECRET}\n\t\t\t}\n\t\t}\n" +
			"\t\taudit {\n\t\t\tsink log\n\t\t\tsink file canary-file.ndjson\n\t\t}\n\t\tlimits {\n\t\t\tmode share\n\t\t}",
		env: []string{"CANARY_SECRET=whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5"},
	})
	const path = "/api/config"
	g.send(http.MethodGet, path, g.token(alice), nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodGet, path, g.token(alice.with(claims{"roles": []string{"keeper"}})), nil).wantError(t, http.StatusForbidden, "Forbidden")
	var seen struct {
		Providers []struct {
			Issuer, At   string
			Audience     []string
			Organization *string
		} `json:"identity_providers"`
		Options []struct {
			Option, At string
			Values     []string
			Given      bool
		}
	}
	text := g.send(http.MethodGet, path, g.token(alice.with(claims{"roles": []string{"reader"}})), nil).want(t, http.StatusOK)
	g.api(g.token(admin), http.MethodGet, path, nil).decode(t, &seen)
	for _, hidden := range []string{rival, "rival-co", "canary", "CANARY", "whsec_", "{env.", "{file.", ".ndjson", filepath.Dir(g.config)} {
		if strings.Contains(string(text.body), hidden) {
			t.Errorf("it tells of %s: %s", hidden, text.body)
		}
	}
	written, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(written), "\n")
	place := func(at string) string {
		file, number, _ := strings.Cut(strings.TrimPrefix(at, filepath.Base(g.config)), ":")
		n := 0
		for _, digit := range number {
			n = 10*n + int(digit-'0')
		}
		if file != "" || n < 1 || n > len(lines) {
			return "nowhere: " + at
		}
		return strings.TrimSpace(lines[n-1])
	}
	if len(seen.Providers) != 1 || seen.Providers[0].Issuer != g.identity.issuer() || !strings.HasPrefix(place(seen.Providers[0].At), "identity oidc "+g.identity.issuer()) {
		t.Errorf("identity providers: %+v", seen.Providers)
	}
	found := 0
	for _, want := range []struct {
		option string
		values []string
		line   string
	}{
		{"public_url", []string{g.url}, "public_url " + g.url}, {"limits mode", []string{"share"}, "limits {"}, {"limits nodes", []string{"1"}, ""},
		{"audit sink", []string{"log", "file"}, "audit {"}, {"notify", []string{"webhook hooks.example.com"}, "notify {"}, {"branding name", []string{"durward"}, ""},
	} {
		for _, o := range seen.Options {
			if o.Option != want.option {
				continue
			}
			found++
			if !slices.Equal(o.Values, want.values) || o.Given != (want.line != "") || o.Given && place(o.At) != want.line || !o.Given && o.At != "" {
				t.Errorf("%+v, want %+v", o, want)
			}
		}
	}
	if found != 6 {
		t.Errorf("%d of 6 options are there: %+v", found, seen.Options)
	}
	if health := g.send(http.MethodGet, "/api/health/detail", g.token(admin), nil).want(t, http.StatusOK); strings.Contains(string(health.body), rival) || !strings.Contains(string(health.body), g.identity.issuer()) {
		t.Errorf("the health tells of other organizations' identity providers, or not of its own: %s", health.body)
	}
}
