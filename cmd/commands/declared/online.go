package declared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/internal/seal"
)

const configurationPath = "/api/configuration"

// Online is the API of a running gateway.
type Online struct {
	// Ask sends a request with the token.
	Ask func(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error)
	// Refused makes the error of an answer that refuses.
	Refused func(status int, answer []byte) error
	// Secret resolves a reference here: the gateway resolves none for its callers.
	Secret func(reference string) (seal.Secret, error)
}

// givenSecret is the value of a reference in a request.
type givenSecret struct {
	Reference string `json:"reference"`
	Value     string `json:"value"`
}

// Run implements Target.
func (o Online) Run(ctx context.Context, files []declare.File, how How) ([]declare.Plan, error) {
	references := declare.References(files)
	slices.Sort(references)
	secrets := []givenSecret{}
	for _, reference := range slices.Compact(references) {
		secret, err := Secrets(o.Secret)(reference)
		if err != nil {
			return nil, fmt.Errorf("resolving a reference of the files: %w", err)
		}
		secrets = append(secrets, givenSecret{reference, secret.Reveal()})
	}
	body, err := json.Marshal(map[string]any{"files": files, "secrets": secrets, "prune": how.Prune})
	if err != nil {
		return nil, err
	}
	path := configurationPath + "/apply"
	if how.Dry {
		path = configurationPath + "/plan"
	}
	status, answer, err := o.Ask(ctx, http.MethodPost, path, body)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusUnprocessableEntity:
		return nil, o.problems(answer)
	case status != http.StatusOK:
		return nil, o.Refused(status, answer)
	}
	var made struct {
		Plans []declare.Plan `json:"plans"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return nil, fmt.Errorf("the gateway's answer is not what it should be: %w", err)
	}
	return made.Plans, nil
}

// problems reads the problems of the files from an answer.
func (o Online) problems(answer []byte) error {
	var said struct {
		Detail []struct {
			Message string          `json:"msg"`
			Ctx     declare.Problem `json:"ctx"`
		} `json:"detail"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || len(said.Detail) == 0 {
		return o.Refused(http.StatusUnprocessableEntity, answer)
	}
	var problems declare.Problems
	for _, d := range said.Detail {
		if d.Ctx.File == "" {
			return errors.New("the gateway refuses the request: " + d.Message)
		}
		problems = append(problems, d.Ctx)
	}
	return problems
}

// Export implements Target.
func (o Online) Export(ctx context.Context, organization string) ([]byte, error) {
	if organization != "" {
		return nil, errors.New("with --url the token names the organization: leave --organization out")
	}
	status, answer, err := o.Ask(ctx, http.MethodGet, configurationPath, nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, o.Refused(status, answer)
	}
	var given struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(answer, &given); err != nil {
		return nil, fmt.Errorf("the gateway's answer is not what it should be: %w", err)
	}
	return []byte(given.Text), nil
}

// Close implements Target.
func (Online) Close() error { return nil }
