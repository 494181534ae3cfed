package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

const (
	smartModelsPath = "/api/llm-gateway/admin/smart-models"
	adminToken      = "{env.DURWARD_TOKEN}" //nolint:gosec // where it is found, not what it is
	maxEvalAnswer   = 16 << 20              // bytes of an answer of the gateway
	// evalParallel is the number of requests that run at a time unless --parallel says otherwise. mostParallel is the
	// maximum.
	evalParallel = 4
	mostParallel = 64
	// evalStep is the number of examples that are decided between two lines of progress.
	evalStep = 100
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "models",
		Usage: "eval --policy <id> --file <examples>",
		Short: "Evaluates smart models",
		CobraFunc: func(cmd *cobra.Command) {
			cmd.AddCommand(modelsEvalCommand())
		},
	})
}

func modelsEvalCommand() *cobra.Command {
	var o evalOptions
	cmd := &cobra.Command{
		Use:   "eval --policy <id> --file <examples> [--url <address>] [--token <reference>] [--parallel <n>] [--format text|json]",
		Short: "Scores a smart model on labelled requests before it costs money",
		Long: `
Asks a running gateway where a smart model, enabled or not, would send each request of
a file, and holds that against where it should go: how many were right, too low and too
high, a table of where they went, and what always taking one slot would get right. No
request is sent to the model that it would go to, but the determiner is asked for real:
what it uses is paid for, and counts against the tokens of the administrator whose
token is given.

The file has one JSON object on each line: a request, and where it should go.

	{"text": "Hi there!", "slot": 0}
	{"messages": [{"role": "user", "content": "Prove it."}], "label": "hard"}

The request is text, or the messages or the input of a request to the gateway (with
system, instructions and tools where they make it longer). Where it should go is the
index of a slot, or the label that one slot has.

The token is an administrator's. Give a reference to it, {env.NAME} or {file./path}, so
that it is in no list of processes.

The exit code is 0 when the policy gets as many right as the best single slot, and 1
when it gets fewer, or could not be evaluated. The report is written in the first two
cases.
`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&o.policy, "policy", "", "Id of the smart model")
	cmd.Flags().StringVar(&o.file, "file", "", "File with the examples")
	cmd.Flags().StringVar(&o.gateway, "url", defaultGateway, "Address of the gateway")
	cmd.Flags().StringVar(&o.token, "token", adminToken, "Reference to an administrator's token, {env.NAME} or {file./path}")
	cmd.Flags().IntVar(&o.parallel, "parallel", evalParallel, "How many requests are under way at a time")
	cmd.Flags().StringVar(&o.format, "format", "text", "text or json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

type evalOptions struct {
	policy, file, gateway, token, format string
	parallel                             int
}

func (o evalOptions) run(ctx context.Context, out, progress io.Writer) error {
	switch {
	case o.policy == "":
		return errors.New("say which smart model to evaluate with --policy and its id, which GET " + smartModelsPath + " lists")
	case o.file == "":
		return errors.New("say with --file which examples to evaluate it on")
	case o.format != "text" && o.format != "json":
		return fmt.Errorf("--format %q is neither text nor json", o.format)
	case o.parallel < 1 || o.parallel > mostParallel:
		return fmt.Errorf("--parallel %d is not between 1 and %d", o.parallel, mostParallel)
	}
	e, err := o.evaluation()
	if err != nil {
		return err
	}
	policy, err := e.smartModel(ctx, o.policy)
	if err != nil {
		return fmt.Errorf("reading the smart model: %w", err)
	}
	examples, err := readExamples(o.file, policy.Slots)
	if err != nil {
		return fmt.Errorf("reading %s: %w", o.file, err)
	}
	if !isTerminal(progress) {
		progress = io.Discard
	}
	score := smart.NewScore(policy.Slots)
	prompt, err := e.decideAll(ctx, policy, examples, o.parallel, score, progress)
	if err != nil {
		return err
	}
	write := score.WriteText
	if o.format == "json" {
		write = score.WriteJSON
	}
	err = write(out, smart.Evaluated{PolicyID: policy.ID, Alias: policy.Alias, PromptVersion: prompt, DefaultSlot: policy.DefaultSlot})
	if err == nil && score.Worse() {
		err = fmt.Errorf("the smart model %s does worse than always taking slot %d", printable(policy.Alias), score.Baseline())
	}
	return err
}

func readExamples(path string, slots []storage.ModelSlot) ([]smart.Example, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	labels := make([]string, len(slots))
	for i, slot := range slots {
		labels[i] = slot.Label
	}
	return smart.ReadExamples(file, labels)
}

// evaluation asks a gateway as an administrator.
type evaluation struct {
	client  *http.Client
	gateway string
	token   seal.Secret
}

func (o evalOptions) evaluation() (*evaluation, error) {
	gateway, err := parseGateway(o.gateway)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(gateway); err != nil || u.Scheme != "https" && !loopback.IsHost(u.Host) {
		return nil, fmt.Errorf("--url %s would send the token in the clear; use https", gateway)
	}
	token, err := settings.ResolveSecret(o.token)
	if err != nil {
		return nil, fmt.Errorf("resolving --token: %w", err)
	}
	if token.Empty() {
		return nil, fmt.Errorf("--token %s is empty; in development mode `durward token --as <admin>` prints one", o.token)
	}
	return &evaluation{client: newClient(), gateway: gateway, token: token}, nil
}

// evaluatedPolicy holds the facts about a smart model that an evaluation needs.
type evaluatedPolicy struct {
	ID          string              `json:"id"`
	Alias       string              `json:"model_alias"`
	Slots       []storage.ModelSlot `json:"slots"`
	DefaultSlot int                 `json:"default_slot_on_failure"`
}

func (e *evaluation) smartModel(ctx context.Context, id string) (*evaluatedPolicy, error) {
	var policy evaluatedPolicy
	if err := e.do(ctx, http.MethodGet, smartModelsPath+"/"+url.PathEscape(id), nil, &policy); err != nil {
		return nil, err
	}
	if len(policy.Slots) == 0 {
		return nil, errors.New("the gateway answers with one that has no slots")
	}
	return &policy, nil
}

// decided holds the result of a preview.
type decided struct {
	Alias    string `json:"target_model_alias"`
	Decision struct {
		Slot          int          `json:"slot"`
		Reason        smart.Reason `json:"reason"`
		PromptVersion string       `json:"prompt_version"`
	} `json:"decision"`
}

// decideAll has the gateway decide on every example. It returns the version of the prompt; the first error ends it.
func (e *evaluation) decideAll(ctx context.Context, policy *evaluatedPolicy, examples []smart.Example, parallel int, score *smart.Score, progress io.Writer) (prompt string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan smart.Example)
	var mu sync.Mutex // over score, prompt, done and progress
	var done int
	var wg sync.WaitGroup
	for range min(parallel, len(examples)) {
		wg.Go(func() {
			for example := range work {
				d, err := e.decide(ctx, policy, example)
				if err != nil {
					cancel(fmt.Errorf("line %d: %w", example.Line, err))
					return
				}
				mu.Lock()
				score.Add(example, d.Decision.Slot, d.Decision.Reason)
				prompt = cmp.Or(prompt, d.Decision.PromptVersion)
				if done++; done%evalStep == 0 {
					fmt.Fprintf(progress, "%d of %d decided\n", done, len(examples))
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, example := range examples {
		select {
		case work <- example:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	return prompt, context.Cause(ctx)
}

func (e *evaluation) decide(ctx context.Context, policy *evaluatedPolicy, example smart.Example) (*decided, error) {
	id, err := json.Marshal(policy.ID)
	if err != nil {
		return nil, err
	}
	body := fmt.Appendf(nil, `{"policy_id":%s,%s}`, id, example.Request)
	var d decided
	if err := e.do(ctx, http.MethodPost, smartModelsPath+"/preview", body, &d); err != nil {
		return nil, err
	}
	if slot := d.Decision.Slot; slot < 0 || slot >= len(policy.Slots) || policy.Slots[slot].Alias != d.Alias {
		return nil, errors.New("the smart model was changed meanwhile; start again")
	}
	return &d, nil
}

// do asks the gateway and reads the answer into out.
func (e *evaluation) do(ctx context.Context, method, path string, body []byte, out any) error {
	status, answer, err := e.ask(ctx, method, path, body)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return refusedBy(status, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the gateway's answer is not what it should be: %w", err)
	}
	return nil
}

// ask returns the gateway's answer.
func (e *evaluation) ask(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, e.gateway+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+e.token.Reveal())
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w, err := e.client.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the gateway: %w", err)
	}
	defer w.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(w.Body, maxEvalAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("reading the gateway's answer: %w", err)
	case len(answer) > maxEvalAnswer:
		return 0, nil, fmt.Errorf("the gateway's answer has more than %d bytes", maxEvalAnswer)
	}
	return w.StatusCode, answer, nil
}

// refusedBy returns the error of an answer.
func refusedBy(status int, answer []byte) error {
	var said gateway.ServiceError
	_ = json.Unmarshal(answer, &said) // a foreign text is described by its status
	hint := ""
	switch status {
	case http.StatusUnauthorized:
		hint = "; the token may have expired"
	case http.StatusForbidden:
		hint = "; the token must be an administrator's"
	}
	return fmt.Errorf("the gateway answers %d %s%s", status, printable(cmp.Or(said.Message, http.StatusText(status))), hint)
}
