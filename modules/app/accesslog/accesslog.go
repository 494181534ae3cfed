// Package accesslog keeps secrets out of the requests that Caddy logs, whatever its configuration says. Clients send
// API keys in X-Api-Key, and authorization servers send codes in the address of the callback.
package accesslog

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// Guard makes the servers of a handler that is being provisioned log their requests without secrets. This includes
// servers without the gateway that clients reach first, such as the one that redirects from http to https. Caddy copies
// a request for its log before any handler sees it, and has no hook for the text it writes. So Guard replaces the
// loggers of the servers, and the logger from which later servers get theirs. A Caddy without such loggers is refused:
// nobody would notice the secrets it writes.
func Guard(ctx caddy.Context) error {
	for _, module := range ctx.Modules() {
		app, ok := module.(*caddyhttp.App)
		if !ok {
			continue
		}
		if err := guardApp(app); err != nil {
			return fmt.Errorf("keeping secrets out of the access log: %w", err)
		}
	}
	return nil
}

func guardApp(app *caddyhttp.App) error {
	if err := replace(app, "logger"); err != nil {
		return err
	}
	for _, server := range app.Servers {
		if server.Logs != nil { // for handlers with logs of their own
			server.Logs.ShouldLogCredentials = false
		}
		if err := errors.Join(replace(server, "accessLogger"), replace(server, "errorLogger")); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a redacting logger in the place of a logger.
func replace(owner any, name string) error {
	logger, err := loggerOf(owner, name)
	if err != nil {
		return err
	}
	if *logger == nil {
		return nil // nothing is logged there, or not yet
	}
	if _, done := (*logger).Core().(*core); !done {
		*logger = (*logger).WithOptions(zap.WrapCore(newCore))
	}
	return nil
}

var errUnknownCaddy = errors.New("this version of Caddy is not known")

// loggerOf returns the place of a logger in a server or app.
func loggerOf(owner any, name string) (**zap.Logger, error) {
	in := reflect.ValueOf(owner).Elem()
	field := in.FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[*zap.Logger]() {
		return nil, fmt.Errorf("%w: its %s has no %s", errUnknownCaddy, in.Type(), name)
	}
	return (**zap.Logger)(unsafe.Pointer(field.UnsafeAddr())), nil // #nosec G103 -- the type was looked at
}
