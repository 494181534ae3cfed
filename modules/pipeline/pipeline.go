// Package pipeline is the handler durward_pipeline, to which the directive `durward` expands. It runs the gateway's
// handlers one after another, as a subroute would, but links them once: a subroute compiles its chain anew for every
// request, which is one allocation in six of a call.
package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler runs handlers one after another. The last one has to answer every request: a request that it passes on is
// answered 404, and no handler after this one sees it.
type Handler struct {
	// The handlers that a request passes, in this order. At least one is required.
	HandlersRaw []json.RawMessage `json:"handle,omitempty" caddy:"namespace=http.handlers inline_key=handler"`

	first caddyhttp.Handler
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_pipeline", New: func() caddy.Module { return new(Handler) }}
}

// Provision loads the handlers and links them.
func (h *Handler) Provision(ctx caddy.Context) error {
	loaded, err := ctx.LoadModule(h, "HandlersRaw")
	if err != nil {
		return fmt.Errorf("loading the pipeline: %w", err)
	}
	handlers := loaded.([]any)
	if len(handlers) == 0 {
		return errors.New("a pipeline needs handlers")
	}
	h.first = caddyhttp.HandlerFunc(nobody)
	for i := len(handlers) - 1; i >= 0; i-- {
		h.first = &link{handlers[i].(caddyhttp.MiddlewareHandler), h.first}
	}
	return nil
}

func nobody(http.ResponseWriter, *http.Request) error {
	return caddyhttp.Error(http.StatusNotFound, nil)
}

// link is a handler with the handler that comes after it.
type link struct {
	caddyhttp.MiddlewareHandler
	next caddyhttp.Handler
}

func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	return l.MiddlewareHandler.ServeHTTP(w, r, l.next)
}

// ServeHTTP runs the pipeline.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	return h.first.ServeHTTP(w, r)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
