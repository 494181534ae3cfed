package app

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/ops/storehealth"
	"github.com/durward-gateway/durward/storage"
)

// storeFailing is 1 while the store fails requests.
var storeFailing = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "durward", Name: "store_failing",
	Help: "1 while requests are refused because the store is away, out of time, full or read-only."})

// tellOfStore returns a function that logs the state of a store, once for all requests that are refused because of it.
func tellOfStore(logger func() *zap.Logger) func(storehealth.Told) {
	return func(told storehealth.Told) {
		lasts, refused := zap.Duration("for", told.Lasted), zap.Int("refused", told.Refused)
		if told.Err == nil {
			storeFailing.Set(0)
			logger().Info("the store serves again", lasts, refused)
			return
		}
		storeFailing.Set(1)
		logger().Error("the store does not serve, and requests that need it are refused", zap.String("reason", reasonOf(told.Err)), lasts, refused, zap.Error(told.Err))
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
