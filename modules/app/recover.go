package app

import (
	"net/http"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
)

// Recover, deferred by the first handler of the gateway that a request meets, turns a panic in any of them into a plain
// 500. The process lives and other requests do not notice. The log gets the stack without the panic's value, which
// could be a secret.
func Recover(w http.ResponseWriter, logger *zap.Logger) {
	value := recover()
	if value == nil {
		return
	}
	if value == http.ErrAbortHandler { //nolint:errorlint // net/http compares the value itself
		panic(value)
	}
	logger.Error("a handler panicked", zap.ByteString("stack", debug.Stack()))
	if w.Header().Get("Content-Type") != "" {
		panic(http.ErrAbortHandler) // the answer has begun: the only way to mark it broken is to cut it off
	}
	gateway.WriteInternalError(w)
}
