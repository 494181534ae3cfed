package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const evaluatedID = "0198c6a0-0000-7000-8000-000000000001"

// previewer is a gateway with one smart model, whose determiner goes by the first letter: e for easy, h for hard.
type previewer struct {
	mu     sync.Mutex
	asked  []string // bodies
	answer func(w http.ResponseWriter, text string) bool
}

func (p *previewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer good" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"Unauthorized","message":"The token is not valid"}`)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET " + smartModelsPath + "/" + evaluatedID:
		fmt.Fprint(w, `{"id":"`+evaluatedID+`","model_alias":"smart","slots":[{"model_alias":"small","label":"easy"},{"model_alias":"large","label":"hard"}],"default_slot_on_failure":1}`)
	case "POST " + smartModelsPath + "/preview":
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.asked = append(p.asked, string(body))
		p.mu.Unlock()
		var q struct {
			PolicyID string `json:"policy_id"`
			Messages []struct{ Content string }
		}
		if err := json.Unmarshal(body, &q); err != nil || q.PolicyID != evaluatedID || len(q.Messages) != 1 || r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		text := q.Messages[0].Content
		if p.answer != nil && p.answer(w, text) {
			return
		}
		answer := `{"target_model_alias":"small","decision":{"slot":0,"reason":"determiner","prompt_version":"1"}}`
		if strings.HasPrefix(text, "h") {
			answer = `{"target_model_alias":"large","decision":{"slot":1,"reason":"determiner","prompt_version":"1"}}`
		}
		fmt.Fprint(w, answer)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":"NotFound","message":"Smart model not found"}`)
	}
}

// evaluate runs the command on examples.
func evaluate(t *testing.T, p *previewer, examples string, change func(*evalOptions)) (string, error) {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "labelled.jsonl")
	if err := os.WriteFile(file, []byte(examples), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DURWARD_TOKEN", "good")
	o := evalOptions{policy: evaluatedID, file: file, gateway: server.URL, token: adminToken, format: "text", parallel: evalParallel}
	if change != nil {
		change(&o)
	}
	var out strings.Builder
	err := o.run(t.Context(), &out, io.Discard)
	return out.String(), err
}

func TestModelsEval(t *testing.T) {
	var p previewer
	const examples = `{"text":"easy","slot":0}
{"text":"hard","label":"hard"}

{"messages":[{"role":"user","content":"half hard"}],"slot":0}
{"text":"early and hard","label":"hard"}
{"text":"else","label":"easy"}`
	out, err := evaluate(t, &p, examples, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"Smart model smart (" + evaluatedID + "), 2 slots, 5 examples, prompt version 1\n", "60.0 %  went where they should (3)\n",
		"  line 4: slot 1 in place of 0 (determiner)\n  line 5: slot 0 in place of 1 (determiner)\n", "This policy is no better than always taking slot 0.\n",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	if len(p.asked) != 5 {
		t.Errorf("asked %q", p.asked)
	}
}

func TestModelsEvalOfAWorseOne(t *testing.T) {
	out, err := evaluate(t, &previewer{}, `{"text":"hard","slot":0}`+"\n"+`{"text":"e","slot":0}`, func(o *evalOptions) { o.format = "json" })
	var report struct {
		Worse    bool `json:"worse_than_baseline"`
		Examples int
	}
	if jsonErr := json.Unmarshal([]byte(out), &report); jsonErr != nil || !report.Worse || report.Examples != 2 {
		t.Errorf("%v: %s", jsonErr, out)
	}
	if err == nil || !strings.Contains(err.Error(), "worse than always taking slot 0") {
		t.Error(err)
	}
}

func TestModelsEvalFails(t *testing.T) {
	const one = `{"text":"e","slot":0}`
	t.Setenv("EMPTY", "")
	t.Setenv("OTHER", "bad")
	for name, tt := range map[string]struct {
		examples string
		change   func(*evalOptions)
		answer   func(http.ResponseWriter, string) bool
		want     string
	}{
		"no policy":           {one, func(o *evalOptions) { o.policy = "" }, nil, "--policy"},
		"no file":             {one, func(o *evalOptions) { o.file = "" }, nil, "--file"},
		"a missing file":      {one, func(o *evalOptions) { o.file += "x" }, nil, "no such file"},
		"a broken file":       {one + "\n{}\n[]", nil, nil, "line 3: this is not a JSON object"},
		"a format":            {one, func(o *evalOptions) { o.format = "yaml" }, nil, "--format"},
		"no workers":          {one, func(o *evalOptions) { o.parallel = 0 }, nil, "--parallel"},
		"many workers":        {one, func(o *evalOptions) { o.parallel = 65 }, nil, "--parallel"},
		"an address":          {one, func(o *evalOptions) { o.gateway = "ftp://x" }, nil, "--url"},
		"in the clear":        {one, func(o *evalOptions) { o.gateway = "http://gate.example.com" }, nil, "in the clear"},
		"a token as it is":    {one, func(o *evalOptions) { o.token = "ey" }, nil, "--token"},
		"an empty token":      {one, func(o *evalOptions) { o.token = "{env.EMPTY}" }, nil, "--token"},
		"another token":       {one, func(o *evalOptions) { o.token = "{env.OTHER}" }, nil, "401 The token is not valid; the token may have expired"},
		"an unknown policy":   {one, func(o *evalOptions) { o.policy = "../x" }, nil, "404 Smart model not found"},
		"an error":            {one, nil, answers(503, `{"error":"Unavailable","message":"no \u001b[2Jruntime"}`), "line 1: the gateway answers 503 no �[2Jruntime"},
		"somebody's error":    {one, nil, answers(502, `<html>`), "line 1: the gateway answers 502 Bad Gateway"},
		"not an admin's":      {one, nil, answers(403, `{"error":"Forbidden","message":"No"}`), "administrator"},
		"no JSON":             {one, nil, answers(200, `<html>`), "not what it should be"},
		"a changed policy":    {one, nil, answers(200, `{"target_model_alias":"other","decision":{"slot":0,"reason":"single"}}`), "changed meanwhile"},
		"a slot that is none": {one, nil, answers(200, `{"target_model_alias":"small","decision":{"slot":2,"reason":"single"}}`), "changed meanwhile"},
		"an endless answer":   {one, nil, answers(200, strings.Repeat(" ", maxEvalAnswer+1)), "more than"},
		"a redirect":          {one, nil, answers(302, ``), "302"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := evaluate(t, &previewer{answer: tt.answer}, tt.examples, tt.change)
			if err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func answers(status int, body string) func(http.ResponseWriter, string) bool {
	return func(w http.ResponseWriter, _ string) bool {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}

// TestModelsEvalIsBounded checks that at most the allowed number of requests run, and that the first error ends all.
func TestModelsEvalIsBounded(t *testing.T) {
	const parallel, examples = 3, 60
	var mu sync.Mutex
	open, most := 0, 0
	full := make(chan struct{})
	p := &previewer{answer: func(http.ResponseWriter, string) bool {
		mu.Lock()
		open++
		if most = max(most, open); open == parallel && most == parallel {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-full // as many as are allowed come at once
		mu.Lock()
		open--
		mu.Unlock()
		return false
	}}
	out, err := evaluate(t, p, strings.Repeat(`{"text":"e","slot":0}`+"\n", examples), func(o *evalOptions) { o.parallel = parallel })
	if err != nil || most != parallel || len(p.asked) != examples {
		t.Errorf("%d at once, %d asked, %v\n%s", most, len(p.asked), err, out)
	}

	p = &previewer{answer: answers(500, "")}
	if _, err := evaluate(t, p, strings.Repeat(`{"text":"e","slot":0}`+"\n", examples), func(o *evalOptions) { o.parallel = 1 }); err == nil || len(p.asked) != 1 {
		t.Errorf("%d asked, %v", len(p.asked), err)
	}
}

func TestModelsEvalEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &previewer{answer: func(http.ResponseWriter, string) bool { cancel(); return false }}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "labelled.jsonl")
	if err := os.WriteFile(file, []byte(strings.Repeat(`{"text":"e","slot":0}`+"\n", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DURWARD_TOKEN", "good")
	err := evalOptions{policy: evaluatedID, file: file, gateway: server.URL, token: adminToken, format: "text", parallel: 1}.run(ctx, io.Discard, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
