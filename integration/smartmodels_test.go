package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smartModels = "/api/llm-gateway/admin/smart-models"

// evalModels runs `durward models eval` with the token of a caller on examples.
func (g *gateway) evalModels(caller claims, policy, examples string, arguments ...string) (string, error) {
	g.t.Helper()
	token, file := filepath.Join(g.directory, "token"), filepath.Join(g.directory, "labelled.jsonl")
	for path, content := range map[string]string{token: g.token(caller), file: examples} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
	return g.run(append([]string{"models", "eval", "--policy", policy, "--file", file, "--url", g.url, "--token", "{file." + token + "}"}, arguments...)...)
}

// TestModelsEvalCommand checks the output of the command, and the exit code that a pipeline goes by.
func TestModelsEvalCommand(t *testing.T) {
	t.Parallel()
	const base = "/api/llm-gateway"
	g := startGateway(t, settings{})
	boss := g.token(admin)
	provider := g.object(boss, http.MethodPost, base+"/admin/providers", members{"name": "Models", "kind": "openai", "api_key": "sk-very-secret"})
	g.api(boss, http.MethodPost, base+"/admin/model-mappings", members{"model_alias": "small", "targets": []any{members{"provider_id": provider["id"], "model": "s"}}})
	one, _ := g.object(boss, http.MethodPost, smartModels, members{"model_alias": "one", "slots": []any{members{"model_alias": "small", "label": "all"}}})["id"].(string)

	out, err := g.evalModels(admin, one, `{"text":"Hi","slot":0}`+"\n"+`{"input":"Prove it","label":"all"}`)
	if err != nil || !strings.Contains(out, "100.0 %  went where they should (2)") || !strings.Contains(out, "       2  single\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = g.evalModels(admin, one, `{"text":"Hi","slot":0}`, "--format", "json")
	var report struct {
		Right int
		Worse bool `json:"worse_than_baseline"`
	}
	if jsonErr := json.Unmarshal([]byte(out), &report); err != nil || jsonErr != nil || report.Right != 1 || report.Worse {
		t.Errorf("%v, %v\n%s", err, jsonErr, out)
	}
	for want, try := range map[string]func() (string, error){
		"line 2: slot 1 is none of 0 to 0":     func() (string, error) { return g.evalModels(admin, one, "\n"+`{"text":"Hi","slot":1}`) },
		"403":                                  func() (string, error) { return g.evalModels(alice, one, `{"text":"Hi","slot":0}`) },
		"the gateway answers 404 Smart model ": func() (string, error) { return g.evalModels(eve, one, `{"text":"Hi","slot":0}`) },
	} {
		if out, err := try(); exitCode(err) != 1 || !strings.Contains(out, want) {
			t.Errorf("%v: no %q in %s", err, want, out)
		}
	}
}

// TestSmartModelPreviewAndEval checks that a determiner is asked through the runtime, sees what it may, and its choices
// are scored.
func TestSmartModelPreviewAndEval(t *testing.T) {
	t.Parallel()
	const base = "/api/llm-gateway"
	// The determiner takes texts that begin with "h" for hard, answers at length when told to, and otherwise chooses the
	// first slot.
	model := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		said := "0"
		switch {
		case strings.Contains(string(body), `The request:\n\"h`):
			said = "1\n"
		case strings.Contains(string(body), `The request:\n\"g`):
			said = "Slot 1, as you wish."
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(members{
			"id": "c", "object": "chat.completion", "model": "s",
			"choices": []any{members{"index": 0, "finish_reason": "stop", "message": members{"role": "assistant", "content": said}}},
			"usage":   members{"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101},
		})
	})
	g := startGateway(t, settings{})
	boss := g.token(admin)
	provider := g.object(boss, http.MethodPost, base+"/admin/providers", members{"name": "Models", "kind": "openai", "api_key": "sk-very-secret", "base_url": model.server.URL + "/v1"})
	for _, alias := range []string{"judge", "small", "large"} {
		g.api(boss, http.MethodPost, base+"/admin/model-mappings", members{"model_alias": alias, "targets": []any{members{"provider_id": provider["id"], "model": "up-" + alias}}})
	}
	slots := []any{members{"model_alias": "small", "label": "easy"}, members{"model_alias": "large", "label": "hard"}}
	two, _ := g.object(boss, http.MethodPost, smartModels, members{
		"model_alias": "two", "enabled": false, "determiner_model_alias": "judge", "slots": slots, "default_slot_on_failure": 1, "determiner_input_max_chars": 20,
	})["id"].(string)

	got := g.object(boss, http.MethodPost, smartModels+"/preview", members{
		"policy_id": two, "messages": []any{members{"role": "system", "content": "the operator's words"}, members{"role": "user", "content": "hard, very hard: " + strings.Repeat("é", 100)}},
	})
	if got["target_model_alias"] != "large" || got["decision"].(members)["reason"] != "determiner" {
		t.Errorf("%v", got)
	}
	model.mu.Lock()
	asked := model.requests[len(model.requests)-1]
	model.mu.Unlock()
	if !strings.Contains(asked.body, `"model":"up-judge"`) || strings.Contains(asked.body, "the operator's words") || strings.Count(asked.body, "é") != 3 ||
		asked.header.Get("Authorization") != "Bearer sk-very-secret" {
		t.Errorf("%v %s", asked.header, asked.body)
	}

	out, err := g.evalModels(admin, two, strings.Join([]string{
		`{"text":"easy","slot":0}`, `{"text":"<|im_end|>","slot":0}`, `{"text":"hard","label":"hard"}`, `{"text":"garbage","slot":0}`,
	}, "\n"))
	for _, part := range []string{"75.0 %  went where they should (3)", "25.0 %  had no answer from the determiner (1)", "line 4: slot 1 in place of 0 (default:garbage)", "no better than always taking slot 0"} {
		if err != nil || !strings.Contains(out, part) {
			t.Errorf("%v: no %q in\n%s", err, part, out)
		}
	}
	out, err = g.evalModels(admin, two, `{"text":"hard","slot":0}`)
	if exitCode(err) != 1 || !strings.Contains(out, "worse than always taking slot 0") {
		t.Errorf("%v\n%s", err, out)
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	if n := len(model.requests); n != 6 {
		t.Errorf("%d requests went to models, 6 to the determiner were expected", n)
	}
}
