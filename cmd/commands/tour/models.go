package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/cmd/commands/browser"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/devidp/clients"
)

const (
	modelsAPI   = "/api/llm-gateway/v1"
	keysPath    = "/api/llm-gateway/admin/api-keys"
	chatPath    = modelsAPI + "/chat/completions"
	modelHeader = "X-Durward-Model"
	whyHeader   = "X-Durward-Route-Reason"
)

// Aliases of development mode at its start.
const (
	smallModel = "small"
	largeModel = "large"
	smartModel = "auto"
)

// apiKey is the key that the tour makes.
type apiKey struct {
	id  string
	raw seal.Secret
}

// post sends a JSON body with a credential.
func (w *walk) post(ctx context.Context, path string, credential seal.Secret, body any) (*http.Response, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Gateway+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+credential.Reveal())
	request.Header.Set("Content-Type", "application/json")
	response, err := w.Client.Do(request)
	if err != nil {
		return nil, browser.WithoutQuery(err)
	}
	return response, nil
}

// read reads a response to its end.
func read(response *http.Response) (answer, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return answer{status: response.StatusCode, body: body}, err
}

// makeKey makes a key that may only call models. The gateway shows it in this one answer.
func makeKey(ctx context.Context, w *walk) ([]string, error) {
	if _, err := logInWith(ctx, w, clients.Console); err != nil {
		return nil, err
	}
	response, err := w.post(ctx, keysPath, w.token, map[string]any{"name": "Tour", "scopes": []string{"llm"}})
	if err != nil {
		return nil, err
	}
	got, err := read(response)
	if err != nil {
		return nil, err
	}
	var made struct {
		ID     string   `json:"id"`
		Key    string   `json:"key"`
		Prefix string   `json:"key_prefix"`
		Scopes []string `json:"scopes"`
	}
	if err := got.expect(http.StatusOK, &made); err != nil {
		return nil, err
	}
	w.key = apiKey{id: made.ID, raw: seal.NewSecret(made.Key)}
	detail := []string{
		"the administrator logs in with " + clients.Console + ": other clients make no keys, which would outlive the login",
		fmt.Sprintf("POST %s -> %d, scopes %s; the whole key is in this answer and nowhere else", keysPath, got.status, list(made.Scopes)),
	}
	if got, err = w.ask(ctx, http.MethodGet, keysPath+"/"+made.ID); err != nil {
		return detail, err
	}
	if err := got.expect(http.StatusOK, nil); err != nil {
		return detail, err
	}
	if made.Key == "" || bytes.Contains(got.body, []byte(made.Key)) {
		return detail, errors.New("the gateway shows the key a second time")
	}
	return append(detail, "asked for it again, the gateway shows that it begins with "+made.Prefix), nil
}

// ask asks a model with the tour's key. The caller closes the response.
func (k apiKey) ask(ctx context.Context, w *walk, model, text string, stream bool) (*http.Response, error) {
	return w.post(ctx, chatPath, k.raw, map[string]any{
		"model": model, "stream": stream, "messages": []map[string]string{{"role": "user", "content": text}},
	})
}

// streamCompletion reads a completion while it is being written.
func streamCompletion(ctx context.Context, w *walk) ([]string, error) {
	response, err := w.key.ask(ctx, w, largeModel, "How do I begin?", true)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		got, err := read(response)
		return nil, errors.Join(err, got.unexpected())
	}
	defer response.Body.Close()
	var text strings.Builder
	events := sse.NewReader(response.Body, 0)
	for chunks := 0; ; chunks++ {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("reading the stream: %w", err)
		}
		if string(event.Data) == "[DONE]" {
			return []string{
				fmt.Sprintf("POST %s {model: %s, stream: true} with the key -> %d, %d chunks", chatPath, largeModel, response.StatusCode, chunks),
				"they say: " + beginning(text.String()),
			}, nil
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(event.Data, &chunk); err != nil {
			return nil, fmt.Errorf("the stream has something else than chunks: %w", err)
		}
		for _, choice := range chunk.Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
}

func beginning(text string) string {
	const most = 80
	if text = strings.Join(strings.Fields(text), " "); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// routeTwice passes when the smart model sends an easy prompt to the small model, and a hard one to the large one.
func routeTwice(ctx context.Context, w *walk) (detail []string, err error) {
	for _, test := range []struct{ text, want string }{
		{"Good morning!", smallModel},
		{"Prove that there are infinitely many primes.", largeModel},
	} {
		response, err := w.key.ask(ctx, w, smartModel, test.text, false)
		if err != nil {
			return detail, err
		}
		got, err := read(response)
		if err != nil {
			return detail, err
		}
		if err := got.expect(http.StatusOK, nil); err != nil {
			return detail, err
		}
		chosen, why := response.Header.Get(modelHeader), response.Header.Get(whyHeader)
		detail = append(detail, fmt.Sprintf("%q -> %s: %s, %s: %s", test.text, strings.ToLower(modelHeader), chosen, strings.ToLower(whyHeader), why))
		if chosen != test.want {
			return detail, fmt.Errorf("%s answered, not %s", chosen, test.want)
		}
	}
	return detail, nil
}

// readUsage shows the key's usage of each model.
func readUsage(ctx context.Context, w *walk) ([]string, error) {
	path := "/api/llm-gateway/admin/usage?" + url.Values{"group_by": {"model_alias"}, "api_key_id": {w.key.id}}.Encode()
	got, err := w.ask(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	var usage struct {
		Data []struct {
			Alias    string      `json:"model_alias"`
			Requests int64       `json:"requests"`
			Input    int64       `json:"input_tokens"`
			Output   int64       `json:"output_tokens"`
			Cost     json.Number `json:"cost"`
		} `json:"data"`
	}
	if err := got.expect(http.StatusOK, &usage); err != nil {
		return nil, err
	}
	detail := []string{fmt.Sprintf("GET /api/llm-gateway/admin/usage?group_by=model_alias&api_key_id=... -> %d", got.status)}
	seen := make(map[string]bool)
	for _, u := range usage.Data {
		detail = append(detail, fmt.Sprintf("%s: %d request(s), %d tokens in, %d out, %s USD", u.Alias, u.Requests, u.Input, u.Output, u.Cost))
		cost, err := u.Cost.Float64()
		seen[u.Alias] = err == nil && cost > 0 && u.Requests > 0
	}
	if !seen[smallModel] || !seen[largeModel] {
		return detail, errors.New("the usage of the last steps is not in it")
	}
	return detail, nil
}

// revokeKey passes when the gateway refuses the key as soon as it is revoked.
func revokeKey(ctx context.Context, w *walk) ([]string, error) {
	got, err := w.ask(ctx, http.MethodDelete, keysPath+"/"+w.key.id)
	if err != nil {
		return nil, err
	}
	if got.status != http.StatusOK && got.status != http.StatusNoContent {
		return nil, got.unexpected()
	}
	detail := []string{fmt.Sprintf("DELETE %s/... -> %d", keysPath, got.status)}
	response, err := w.key.ask(ctx, w, smallModel, "Hello?", false)
	if err != nil {
		return detail, err
	}
	if got, err = read(response); err != nil {
		return detail, err
	}
	if got.status != http.StatusUnauthorized {
		return detail, fmt.Errorf("the gateway answered the revoked key with %d", got.status)
	}
	return append(detail, fmt.Sprintf("POST %s with the key -> %d %s", chatPath, got.status, errorCode(got))), nil
}

// errorCode returns the code of a refusal in OpenAI's envelope.
func errorCode(a answer) string {
	var said struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &said) != nil {
		return ""
	}
	return said.Error.Code
}
