// Package accesslog keeps secrets out of what Caddy logs of requests, whatever its configuration says: clients send API keys in
// X-Api-Key, and authorization servers send codes in the address of the callback.
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

// loggers are the fields of caddyhttp.Server that hold the loggers of requests.
var loggers = []string{"accessLogger", "errorLogger"}

// Guard has the server of a handler that is being provisioned log its requests without their secrets. Caddy copies a request for
// its log before any handler sees it, and has no hook for what it writes. So the server's loggers are replaced. A Caddy whose
// server has no such loggers is refused: nobody would notice what it writes.
func Guard(ctx caddy.Context) error {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return nil // a handler outside of every server
	}
	if server.Logs != nil {
		server.Logs.ShouldLogCredentials = false
	}
	for _, name := range loggers {
		logger, err := loggerOf(server, name)
		if err != nil {
			return fmt.Errorf("keeping secrets out of the access log: %w", err)
		}
		if *logger == nil {
			continue // nothing is logged there
		}
		if _, done := (*logger).Core().(*core); !done {
			*logger = (*logger).WithOptions(zap.WrapCore(newCore))
		}
	}
	return nil
}

var errUnknownCaddy = errors.New("this version of Caddy is not known")

// loggerOf returns the place of a logger in a server.
func loggerOf(server *caddyhttp.Server, name string) (**zap.Logger, error) {
	field := reflect.ValueOf(server).Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[*zap.Logger]() {
		return nil, fmt.Errorf("%w: its server has no %s", errUnknownCaddy, name)
	}
	return (**zap.Logger)(unsafe.Pointer(field.UnsafeAddr())), nil // #nosec G103 -- the type was looked at
}
