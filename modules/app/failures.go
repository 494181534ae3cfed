package app

import (
	"errors"
	"net/http"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/ops/storehealth"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/readiness"
	"github.com/durward-gateway/durward/storage"
)

// tellOfStore returns a function that logs the state of a store, once for all requests that are refused because of it.
func tellOfStore(logger func() *zap.Logger) func(storehealth.Told) {
	return func(told storehealth.Told) {
		lasts, refused := zap.Duration("for", told.Lasted), zap.Int("refused", told.Refused)
		if told.Err == nil {
			metrics.SetStoreFailing(false)
			logger().Info("the store serves again", lasts, refused)
			return
		}
		metrics.SetStoreFailing(true)
		logger().Error("the store does not serve, and requests that need it are refused", zap.String("reason", readiness.Reason(told.Err)), lasts, refused, zap.Error(told.Err))
	}
}

// LogFailure logs why a request is answered with an error. When the store is the cause, the log has it once for all
// requests, and for each request only at debug level.
func (c *Core) LogFailure(logger *zap.Logger, doing string, err error, fields ...zap.Field) {
	fields = append(fields, zap.Error(err))
	if !c.storeRefuses(err) {
		logger.Error(doing, fields...)
		return
	}
	logger.Debug(doing, fields...)
}

// storeRefuses reports whether the store keeps a request from being served, and notes that.
func (c *Core) storeRefuses(err error) bool {
	if !errors.Is(err, storage.ErrUnavailable) || c.resources == nil {
		return false
	}
	if errors.Is(err, audit.ErrUnavailable) {
		return false // the journal is on this node's disk: the store has no part in it
	}
	c.resources.watch.Refused(err)
	return true
}

// LogUnavailable logs why a request is answered with 503: because of the store, or because its client is gone.
func LogUnavailable(r *http.Request, logger *zap.Logger, doing string, err error) {
	method := zap.String("method", r.Method)
	if call, ok := CallOf(r); ok && errors.Is(err, storage.ErrUnavailable) {
		call.Core.LogFailure(logger, doing, err, method)
		return
	}
	logger.Debug(doing, method, zap.Error(err))
}

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
