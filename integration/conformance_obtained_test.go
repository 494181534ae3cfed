package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConformanceClientObtained lets the official suite's servers and authorization servers judge the gateway as the client of
// an upstream to which no user connects an account.
func TestConformanceClientObtained(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	admin, alice := d.tokenOf(t, "admin@example.test"), d.tokenOf(t, "alice@example.test")
	for _, scenario := range []string{"client-credentials-basic", "client-credentials-jwt"} {
		t.Run(scenario, func(t *testing.T) {
			if _, said := runClientScenario(t, scenario, func(u *suiteServer) error {
				u.d, u.admin, u.user = d, admin, alice
				return u.obtain(map[string]any{"provider": "client_credentials"})
			}); said != nil {
				t.Error(said)
			}
		})
	}
	t.Run("enterprise-managed-authorization", func(t *testing.T) {
		if _, said := runClientScenario(t, "enterprise-managed-authorization", vouchedFor); said != nil {
			t.Error(said)
		}
	})
	for scopes, told := range map[string]string{
		"":                         "",
		"wif.rejected":             "does not give the scopes of this server",
		"wif.trigger-unauthorized": "does not accept the server's OAuth client",
	} {
		t.Run("wif-jwt-bearer "+scopes, func(t *testing.T) {
			output, said := runClientScenario(t, "wif-jwt-bearer", func(u *suiteServer) error { return u.asWorkload(scopes) })
			if (said == nil) != (told == "") || said != nil && !strings.Contains(said.Error(), told) {
				t.Errorf("the user was told: %v", said)
			}
			// A refused statement is not sent again, nor another grant tried: the suite warns of that.
			if strings.Contains(output, "wif-no-retry") || strings.Contains(output, "wif-grant-fallback") {
				t.Errorf("%s", tail(output, 5_000))
			}
		})
	}
}

// obtain calls all tools of a server to which nobody connects an account.
func (u *suiteServer) obtain(entry map[string]any) error {
	entry["name"], entry["url"] = u.name, u.Server
	id, err := u.make("/api/server-directory", entry)
	if err != nil {
		return err
	}
	if err = u.serve(id); err != nil {
		return err
	}
	return u.call()
}

// vouchedFor has alice log in at an identity provider that stands before the suite's. That one knows no logins: it exchanges
// the one ID token that the suite hands out.
func vouchedFor(u *suiteServer) error {
	v := newVoucher(u.t)
	v.answer = func(w http.ResponseWriter, r *http.Request) bool {
		form := r.PostForm
		if !strings.Contains(form.Get("subject_token"), ".") || form.Get("client_id") != loginClient {
			return false
		}
		form.Set("subject_token", u.Context.IDToken)
		form.Set("client_id", u.Context.Client)
		return forwardForm(w, r, u.Context.Provider, form) == nil
	}
	g := startGateway(u.t, settings{provider: v.identityProvider, identity: "login_client " + loginClient, option: approvalConsole})
	u.d, u.admin = &dev{url: g.url}, g.token(admin)
	u.user = newOAuthClient(u.t, g.url, newLanding(u.t)+"/back").loggedIn(newPerson(u.t), "")
	return u.obtain(map[string]any{"provider": "token_exchange", "requested_token_type": "id-jag"})
}

// forwardForm answers a request with another server's answer to a form.
func forwardForm(w http.ResponseWriter, r *http.Request, to string, form url.Values) error {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, err = io.Copy(w, response.Body)
	return err
}

// asWorkload calls all tools of a server that knows the gateway by what its platform says of it.
func (u *suiteServer) asWorkload(scopes string) error {
	file := filepath.Join(u.t.TempDir(), "statement")
	if err := os.WriteFile(file, []byte(u.Context.Statement+"\n"), 0o600); err != nil {
		return err
	}
	if scopes != "" {
		scopes = "scopes " + scopes
	}
	g := startGateway(u.t, settings{option: fmt.Sprintf("directory %s {\n\turl %s\n\tprovider workload_identity\n\tassertion_file %s\n\t%s\n}", u.name, u.Server, file, scopes)})
	u.d, u.admin, u.user = &dev{url: g.url}, g.token(admin), g.token(alice)
	var page struct {
		Data []struct{ ID string }
	}
	status, body := u.d.asked(u.t, u.user, http.MethodGet, "/api/server-directory?search="+u.name, "")
	if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Data) != 1 {
		return fmt.Errorf("the directory: %d %s", status, body)
	}
	if err := u.serve(page.Data[0].ID); err != nil {
		return err
	}
	if u.call() == nil {
		return nil
	}
	return errors.New(string(g.send(http.MethodPost, "/mcp/"+u.name, u.user, pingMessage, mcpHeader("")...).body)) // which libraries do not show
}
