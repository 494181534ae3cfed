package tour

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/cmd/commands/browser"
)

const maxAnswer = 4 << 20

// answer is an answer of the platform API.
type answer struct {
	status int
	body   []byte
}

// serviceError is the body of the API's errors.
type serviceError struct {
	Name    string `json:"error"`
	Message string `json:"message"`
	Details struct {
		ConnectURL string `json:"connect_url"`
	} `json:"details"`
}

func (w *walk) ask(ctx context.Context, method, path string) (answer, error) {
	response, err := w.send(ctx, method, path, "application/json")
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	return answer{status: response.StatusCode, body: body}, nil
}

func (w *walk) send(ctx context.Context, method, path, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, w.Gateway+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.token.Reveal())
	request.Header.Set("Accept", accept)
	response, err := w.Client.Do(request)
	if err != nil {
		return nil, browser.WithoutQuery(err)
	}
	return response, nil
}

// expect reads the body into v (nil: no body) when the status is the expected one.
func (a answer) expect(status int, v any) error {
	if a.status != status {
		return a.unexpected()
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

// unexpected returns an error that describes the answer in place of the expected one.
func (a answer) unexpected() error {
	var known serviceError
	if json.Unmarshal(a.body, &known) == nil && known.Name != "" {
		return fmt.Errorf("the gateway answered %d %s: %s", a.status, known.Name, known.Message)
	}
	text := string(bytes.TrimSpace(a.body))
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	if text == "" {
		return fmt.Errorf("the gateway answered %d without a body", a.status)
	}
	return errors.New(fmt.Sprintf("the gateway answered %d: ", a.status) + text)
}
