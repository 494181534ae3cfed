package app

import (
	"net/http"
	"runtime/debug"

	"go.uber.org/zap"
)

// Recover, deferred by the first of our handlers that a request meets, turns a panic of any of them into a plain 500: the
// process lives, other requests do not notice, and the stack goes to the log without the panic's value, which could be a
// secret.
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
		panic(http.ErrAbortHandler) // the answer has begun: only cutting it off says that it is broken
	}
	WriteInternalError(w)
}
