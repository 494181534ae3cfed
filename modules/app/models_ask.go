package app

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/llm/smart"
)

// ErrNoRuntime reports that no site of the configuration serves models, so no model can be asked.
var ErrNoRuntime = errors.New("the configuration has no durward_llm, which calls models")

// ModelAsker lets the model of an alias of the caller's organization answer a prompt, as smart.Asker describes. The
// tokens count for the caller; the request does not. The alias may lead to fallbacks, and never to a smart model.
type ModelAsker func(ctx context.Context, call *Call, alias string, prompt smart.Prompt) (answer string, err error)

// asking holds the function that calls models for other handlers.
type asking struct {
	asker atomic.Pointer[ModelAsker]
}

// ProvideModels is called by durward_llm when it is provisioned: other handlers ask models through it. When there are
// several handlers, the last one stays; all do the same.
func (a *App) ProvideModels(ask ModelAsker) {
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	a.core.ProvideModels(ask)
}

// ProvideModels sets the function that asks models.
func (c *Core) ProvideModels(ask ModelAsker) { c.asker.Store(&ask) }

// AskModel has a model answer a prompt on the account of the call's caller. It fails with ErrNoRuntime when no site
// serves models.
func (c *Core) AskModel(ctx context.Context, call *Call, alias string, prompt smart.Prompt) (string, error) {
	ask := c.asker.Load()
	if ask == nil {
		return "", ErrNoRuntime
	}
	return (*ask)(ctx, call, alias, prompt)
}
