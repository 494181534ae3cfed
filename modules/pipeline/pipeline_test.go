package pipeline

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
)

func provisioned(t *testing.T, handlers ...string) (*Handler, error) {
	t.Helper()
	h := new(Handler)
	for _, raw := range handlers {
		h.HandlersRaw = append(h.HandlersRaw, json.RawMessage(raw))
	}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	t.Cleanup(cancel)
	return h, h.Provision(ctx)
}

func request() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), nil)
}

var outer = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { panic("the request left the pipeline") })

func TestPipelineRunsItsHandlersInOrder(t *testing.T) {
	h, err := provisioned(t,
		`{"handler":"headers","response":{"set":{"X-Step":["one"]}}}`,
		`{"handler":"headers","response":{"add":{"X-Step":["two"]}}}`,
		`{"handler":"static_response","status_code":201,"body":"three"}`)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if err := h.ServeHTTP(w, request(), outer); err != nil {
		t.Fatal(err)
	}
	if got := w.Header()["X-Step"]; w.Code != 201 || w.Body.String() != "three" || len(got) != 2 || got[0] != "one" {
		t.Errorf("got %d %q, X-Step %v", w.Code, w.Body, got)
	}
}

func TestPipelineAnswersWhatItsHandlersPassOn(t *testing.T) {
	h, err := provisioned(t, `{"handler":"headers"}`)
	if err != nil {
		t.Fatal(err)
	}
	var refused caddyhttp.HandlerError
	if err := h.ServeHTTP(httptest.NewRecorder(), request(), outer); !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound {
		t.Errorf("got %v, want 404", err)
	}
}

func TestPipelineNeedsHandlers(t *testing.T) {
	for _, handlers := range [][]string{nil, {`{"handler":"no_such_handler"}`}} {
		if _, err := provisioned(t, handlers...); err == nil {
			t.Errorf("%v is taken", handlers)
		}
	}
}

type pass struct{}

func (pass) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return next.ServeHTTP(w, r)
}

func TestPipelineAllocatesNothing(t *testing.T) {
	h := &Handler{first: &link{pass{}, &link{pass{}, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })}}}
	w, r := httptest.NewRecorder(), request()
	if n := testing.AllocsPerRun(100, func() { _ = h.ServeHTTP(w, r, outer) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
