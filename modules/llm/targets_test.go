package llm_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
)

// twoTargets makes the alias `small` with two targets of different providers. The first is given settings of its own,
// and answered by a function; the second works. Models that are named have a price.
func twoTargets(t *testing.T, settings object, first func(w http.ResponseWriter, r *http.Request), priced ...string) (*gateway, *provider) {
	t.Helper()
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if strings.Contains(string(body), `"first"`) {
			first(w, r)
			return
		}
		reply(w, 200, whole)
	})
	up := object{"kind": "openai", "name": "up", "base_url": p.URL}
	maps.Copy(up, settings)
	return newGateway(t, p.URL, object{
		"prices":   prices(t, priced...),
		"provider": []any{up, object{"kind": "openai", "name": "other", "base_url": p.URL}},
		"alias": []any{object{"name": "small", "targets": []any{
			object{"provider": "up", "model": "first"}, object{"provider": "other", "model": "second"},
		}}},
	}), p
}

// tried returns the names of the targets that were called.
func (p *provider) tried() string {
	var tried []string
	for _, body := range p.calls() {
		for _, model := range []string{"first", "second"} {
			if strings.Contains(body, `"`+model+`"`) {
				tried = append(tried, model)
			}
		}
	}
	return strings.Join(tried, " ")
}

// TestNothingIsAskedTwice checks that an answer that has begun is not asked for at another target, however it goes on.
func TestNothingIsAskedTwice(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		first      func(w http.ResponseWriter, r *http.Request)
		status     int
	}{
		{"a stream that breaks off", askedStream, func(w http.ResponseWriter, _ *http.Request) {
			events(w)(chunk)
			panic(http.ErrAbortHandler)
		}, 200},
		{"a stream that tells of an error", askedStream, func(w http.ResponseWriter, _ *http.Request) {
			say := events(w)
			say(chunk)
			say(`{"error":{"message":"overloaded","type":"server_error"}}`)
		}, 200},
		{"a whole answer that is cut off", asked, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"choices":`))
		}, 502},
		{"a page", asked, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<p>"))
		}, 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, p := twoTargets(t, nil, tc.first)
			got := g.ask(tc.body).want(tc.status)
			if tried := p.tried(); tried != "first" || !strings.Contains(got.body, `"error"`) {
				t.Errorf("tried %q: %s", tried, got.body)
			}
		})
	}
}

// TestTimeouts checks that a provider has the time that it was given to begin its answer, and to be silent in it.
func TestTimeouts(t *testing.T) {
	g, p := twoTargets(t, object{"response_timeout": "300ms"}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	g.ask(asked).want(200)
	if tried := p.tried(); tried != "first second" {
		t.Errorf("tried %q", tried)
	}
	g, p = twoTargets(t, object{"idle_timeout": "300ms"}, func(w http.ResponseWriter, r *http.Request) {
		events(w)(chunk)
		<-r.Context().Done()
	})
	got := g.ask(askedStream).want(200)
	if tried := p.tried(); tried != "first" || !strings.Contains(got.body, chunk) || !strings.Contains(got.body, `"upstream_error"`) {
		t.Errorf("tried %q: %s", tried, got.body)
	}
}

// TestLimitedTargets checks that a call goes past a target of whose provider or model a limit or a budget is full, and
// no further than to the first one when it is its caller who has no room.
func TestLimitedTargets(t *testing.T) {
	works := func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, whole) }
	for _, tc := range []struct {
		name, path string
		body       object
		status     int
		tried      string
	}{
		{"a limit on the model", "/admin/rate-limits", object{"scope_type": "model", "scope_value": "first", "requests_per_minute": 0}, 200, "second"},
		{"a limit on each model", "/admin/rate-limits", object{"scope_type": "model", "requests_per_minute": 0}, 429, ""},
		{"a limit on the provider", "/admin/rate-limits", object{"scope_type": "llm_provider", "scope_value": "up", "tokens_per_minute": 10}, 200, "second"},
		{"a budget of the model", "/admin/budgets", object{"scope_type": "model", "scope_value": "first", "period": "day", "amount": 0}, 200, "second"},
		{"a limit on the last model", "/admin/rate-limits", object{"scope_type": "model", "scope_value": "second", "requests_per_minute": 0}, 200, "first"},
		{"a limit on the alias", "/admin/rate-limits", object{"scope_type": "model_alias", "scope_value": "small", "requests_per_minute": 0}, 429, ""},
		{"a limit on the caller", "/admin/rate-limits", object{"scope_type": "user", "tokens_per_minute": 10}, 429, ""},
		{"a budget of the organization", "/admin/budgets", object{"scope_type": "org", "period": "day", "amount": 0}, 429, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, p := twoTargets(t, nil, works, "first", "second")
			tc.body["name"] = "l"
			g.make(tc.path, tc.body)
			got := g.ask(asked).want(tc.status)
			if tried := p.tried(); tried != tc.tried {
				t.Errorf("tried %q", tried)
			}
			if tc.status == 429 && got.header.Get("Retry-After") == "" {
				t.Errorf("%v", got.header)
			}
		})
	}
}

// TestBrokenTargets checks that the usage of a target that broke off without a report is estimated and counted for that
// target, and what the next one used counts where that does; the request counts once (T07).
func TestBrokenTargets(t *testing.T) {
	g, p := twoTargets(t, nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, limit := range map[string]object{
		"org": {"scope_type": "org"}, "first": {"scope_type": "model", "scope_value": "first"}, "second": {"scope_type": "model", "scope_value": "second"},
	} {
		limit["name"], limit["requests_per_minute"], limit["tokens_per_minute"] = name, 1000, 10_000
		g.make("/admin/rate-limits", limit)
	}
	g.ask(asked).want(200)
	if tried := p.tried(); tried != "first second" {
		t.Errorf("tried %q", tried)
	}
	found := g.status()
	for name, tokens := range map[string]int64{"org": guessed + promptOf + 42, "first": guessed + promptOf, "second": 42} {
		if s := found[name]; s.Requests != 1 || !charged(s.Tokens, tokens) {
			t.Errorf("%s: %d requests, %d tokens instead of %d", name, s.Requests, s.Tokens, tokens)
		}
	}
}

// TestNothingToSpendByAlias checks that an alias of a model without a price is stopped by no budget, one of the alias's
// own among them (W45). Where the first target costs, its caller has no room.
func TestNothingToSpendByAlias(t *testing.T) {
	works := func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, whole) }
	for _, tc := range []struct {
		name   string
		budget object
		priced []string
		status int
		tried  string
	}{
		{"of the organization", object{"scope_type": "org"}, nil, 200, "first"},
		{"of each user", object{"scope_type": "user"}, nil, 200, "first"},
		{"of the alias", object{"scope_type": "model_alias", "scope_value": "small"}, nil, 200, "first"},
		{"of each alias", object{"scope_type": "model_alias"}, nil, 200, "first"},
		{"of the model", object{"scope_type": "model", "scope_value": "first"}, nil, 200, "first"},
		{"of the alias, and its first target costs", object{"scope_type": "model_alias", "scope_value": "small"}, []string{"first"}, 429, ""},
		{"of the alias, and its second target costs", object{"scope_type": "model_alias", "scope_value": "small"}, []string{"second"}, 200, "first"},
		{"of the alias, and both cost", object{"scope_type": "model_alias", "scope_value": "small"}, []string{"first", "second"}, 429, ""},
	} {
		for _, stream := range []string{asked, strings.Replace(asked, "{", `{"stream":true,`, 1)} {
			t.Run(tc.name, func(t *testing.T) {
				g, p := twoTargets(t, nil, works, tc.priced...)
				budget := object{"name": "spent", "period": "day", "amount": 0, "hard_stop": true}
				for k, v := range tc.budget {
					budget[k] = v
				}
				g.make("/admin/budgets", budget)
				got := g.send(http.MethodPost, chat, stream).want(tc.status)
				if tried := p.tried(); tried != tc.tried {
					t.Errorf("tried %q", tried)
				}
				if tc.status == http.StatusTooManyRequests {
					got.refused(tc.status, "budget_exceeded")
				}
			})
		}
	}
	g, p := twoTargets(t, nil, works)
	g.make("/admin/smart-models", object{"model_alias": "smart", "default_slot_on_failure": 0, "slots": []any{object{"model_alias": "small"}}})
	for _, budget := range []object{{"scope_type": "org"}, {"scope_type": "model_alias", "scope_value": "smart"}, {"scope_type": "model_alias", "scope_value": "small"}} {
		budget["name"], budget["period"], budget["amount"], budget["hard_stop"] = "spent", "day", 0, true
		g.make("/admin/budgets", budget)
		g.ask(strings.Replace(asked, "small", "smart", 1)).want(200)
	}
	if tried := p.tried(); tried != "first first first" {
		t.Errorf("a smart model tried %q", tried)
	}
}
