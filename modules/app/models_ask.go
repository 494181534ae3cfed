package app

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/smart"
)

// ErrNoRuntime: no site of the configuration serves models, so there is nobody to ask one.
var ErrNoRuntime = errors.New("the configuration has no durward_llm, which calls models")

// ModelAsker has the model of an alias of the caller's organization answer a prompt, as smart.Asker says. What it used
// counts against the tokens of the caller, not as a request of theirs. The alias may lead to fallbacks, and never to a smart
// model.
type ModelAsker func(ctx context.Context, call *Call, alias string, prompt smart.Prompt) (answer string, err error)

// asking is who calls models for other handlers.
type asking struct {
	asker atomic.Pointer[ModelAsker]
}

// ProvideModels is called by durward_llm when it is provisioned: other handlers ask models through it. The last one stays,
// when there are several; all do the same.
func (a *App) ProvideModels(ask ModelAsker) {
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	a.core.ProvideModels(ask)
}

// ProvideModels sets who is asked.
func (c *Core) ProvideModels(ask ModelAsker) { c.asker.Store(&ask) }

// AskModel has a model answer a prompt on the account of who makes the call. It fails with ErrNoRuntime when nobody serves
// models.
func (c *Core) AskModel(ctx context.Context, call *Call, alias string, prompt smart.Prompt) (string, error) {
	ask := c.asker.Load()
	if ask == nil {
		return "", ErrNoRuntime
	}
	return (*ask)(ctx, call, alias, prompt)
}
