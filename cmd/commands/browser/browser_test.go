package browser

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loginPage has a second form, and an input outside of both.
const loginPage = `<!doctype html><html><head><title>not this</title></head><body><h1>Log in &amp; <b>go</b></h1>
<input name="outside" value="no"><p>First.</p><form method="post" action="/login?again=1"><input type="hidden" name="ticket" value="a&quot;b">
<p><label>Account <input name="account" value="alice"></label></p>
<button name="user" value="alice">Alice</button><button name="user" value="bob">Bob</button><button>Go</button></form>
<form action="/other"><input name="other" value="no"></form></body></html>`

func TestWalk(t *testing.T) {
	var sent url.Values
	mux := http.NewServeMux()
	mux.HandleFunc("GET /start", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "begun", Value: "here", Path: "/", HttpOnly: true})
		http.Redirect(w, r, "/login?state=secret", http.StatusFound)
	})
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(loginPage)) })
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		sent = r.PostForm
		if c, err := r.Cookie("begun"); err != nil || c.Value != "here" {
			t.Errorf("the cookie did not come back: %v", err)
		}
		http.Redirect(w, r, "http://127.0.0.1/callback?code=secret&state=secret", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", http.StatusFound) })
	mux.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	})
	mux.HandleFunc("GET /refused", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("<h1>No</h1><p>The client is not\n known.</p>"))
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	stop, err := url.Parse("http://127.0.0.1/callback")
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(server.Client(), stop)
	if err != nil {
		t.Fatal(err)
	}

	page, err := b.Open(t.Context(), server.URL+"/start")
	if err != nil {
		t.Fatal(err)
	}
	want := []*Form{
		{Action: "/login?again=1", Fields: map[string]string{"ticket": `a"b`, "account": "alice"}, Choices: map[string][]string{"user": {"alice", "bob"}}},
		{Action: "/other", Fields: map[string]string{"other": "no"}, Choices: map[string][]string{}},
	}
	if diff := cmp.Diff(want, page.Forms); diff != "" || page.Title != "Log in & go" || page.Status != http.StatusOK {
		t.Errorf("page %q, %d; forms (-want +got):\n%s", page.Title, page.Status, diff)
	}
	if page.FormWith("user") != page.Forms[0] || page.FormWith("account") != page.Forms[0] || page.FormWith("other") != page.Forms[1] || page.FormWith("outside") != nil {
		t.Error("a form is not found by its fields")
	}
	page, err = b.Submit(t.Context(), page, page.FormWith("user"), map[string]string{"user": "bob"})
	if err != nil {
		t.Fatal(err)
	}
	if !page.Stopped || page.URL.Query().Get("code") != "secret" {
		t.Errorf("it stopped at %v", page.URL)
	}
	if diff := cmp.Diff(url.Values{"ticket": {`a"b`}, "account": {"alice"}, "user": {"bob"}}, sent); diff != "" {
		t.Errorf("the form (-want +got):\n%s", diff)
	}
	wantVisits := []Visit{
		{"GET", server.URL + "/start", nil, 302}, {"GET", server.URL + "/login", []string{"state"}, 200}, {"POST", server.URL + "/login", []string{"again"}, 303},
	}
	if diff := cmp.Diff(wantVisits, b.Visits()); diff != "" {
		t.Errorf("visits (-want +got):\n%s", diff)
	}

	if page, err = b.Open(t.Context(), server.URL+"/refused"); err != nil || page.Status != http.StatusBadRequest || page.Text != "The client is not known." || page.Forms != nil {
		t.Errorf("got %+v, %v", page, err)
	}
	if _, err := b.Open(t.Context(), server.URL+"/circle"); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("got %v", err)
	}
	if _, err := b.Open(t.Context(), server.URL+"/away"); err == nil {
		t.Error("it opened a file")
	}
}

func TestErrorsHoldNoQuery(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	b, err := New(http.DefaultClient, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Open(t.Context(), address+"/callback?code=secret")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "/callback") {
		t.Errorf("got %v", err)
	}
}
