package commands

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPlaceOfTheSiteThatTakes checks that the error says the line of the site that takes the gateway's requests, and
// none where it could be another one.
func TestPlaceOfTheSiteThatTakes(t *testing.T) {
	const text = `{
	durward {
		store sqlite x.db
	}
}
http://127.0.0.1:8080 {
	durward
}
http://127.0.0.1:8080 {
	bind 127.0.0.1
	durward_auth
	durward_platform health_only
}
gate.example.com {
	respond "ours"
}
*.example.com {
	durward_auth
	durward_platform
}
:8082, http://localhost:8083 {
	respond "every host"
}
http://127.0.0.1:8084 {
	bind 127.0.0.2
	respond "a"
}
http://127.0.0.1:8084 {
	bind 127.0.0.1
	respond "b"
}
`
	file := filepath.Join(t.TempDir(), "gate.caddyfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for said, line := range map[string]string{
		"the site 127.0.0.1 on 127.0.0.1:8080 takes every request": ":9",
		"the site gate.example.com on :443 takes every request":    ":14",
		"the site *.example.com on :443 takes every request":       "", // it is the gateway's
		"the site without a host on :8082 takes every request":     ":21",
		"the site localhost on 127.0.0.1:8083 takes what connects": ":21",
		"the site 127.0.0.1 on 127.0.0.1:8084 takes what connects": ":28",
		"the site 127.0.0.1 on :8084 takes every request":          "", // two fit
		"the site 127.0.0.1 on 127.0.0.1:8081 takes every request": "",
		"something else": "",
	} {
		want := ""
		if line != "" {
			want = file + line
		}
		if got := placeOfSite(file, said); got != want {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
	if got := placeOfSite(filepath.Join(t.TempDir(), "absent"), "the site x on :1 takes y"); got != "" {
		t.Errorf("a file that is not there: %q", got)
	}
}
