package authserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// registering returns the registration that a body asks for.
func registering(body []byte) (*Registration, error) {
	r := httptest.NewRequest(http.MethodPost, "/oauth/register", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	return ReadRegistration(httptest.NewRecorder(), r)
}

// TestLongestRegistrations checks that what is stored of a registration is bounded, in bytes of the store, and that the
// clients which people have are far from it.
func TestLongestRegistrations(t *testing.T) {
	wide := strings.Repeat("\U00020000", maxName) // a printable character of four bytes
	for name, c := range map[string]struct{ character, client string }{
		"an address": {"a", ""}, "characters that JSON escapes": {"&", ""}, "a name too": {"a", wide},
	} {
		taken := 0
		for number := range maxText {
			body, err := json.Marshal(map[string]any{"redirect_uris": []string{"https://a.test/?" + strings.Repeat(c.character, number)}, "client_name": c.client})
			if err != nil {
				t.Fatal(err)
			}
			r, err := registering(body)
			if err != nil {
				continue
			}
			taken++
			stored, err := json.Marshal(r.Client.RedirectURIs)
			if err != nil || len(stored)+len(r.Client.Name) > storage.MaxClientTexts {
				t.Fatalf("%s: %d bytes are stored, %v", name, len(stored)+len(r.Client.Name), err)
			}
		}
		if taken < 100 {
			t.Errorf("%s: %d lengths are taken", name, taken)
		}
	}
	if _, err := registering([]byte(`{"client_name":"Visual Studio Code","redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect",
		"http://localhost/","http://127.0.0.1/","http://localhost:33418/","http://127.0.0.1:33418/"]}`)); err != nil {
		t.Error(err)
	}
}
