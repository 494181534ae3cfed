package app

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/storewatch"
	"github.com/durward-gateway/durward/storage"
)

// storeFailing is 1 while the store fails requests.
var storeFailing = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "durward", Name: "store_failing",
	Help: "1 while requests are refused because the store is away, out of time, full or read-only."})

// tellOfStore puts what is known of a store into the log, once for all requests that are refused for it.
func tellOfStore(logger func() *zap.Logger) func(storewatch.Told) {
	return func(told storewatch.Told) {
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

// LogFailure logs why a request is answered with an error. When it is the store, the log says so once for all requests, and
// of each for debugging only.
func (c *Core) LogFailure(logger *zap.Logger, doing string, err error, fields ...zap.Field) {
	fields = append(fields, zap.Error(err))
	if !c.storeRefuses(err) {
		logger.Error(doing, fields...)
		return
	}
	logger.Debug(doing, fields...)
}

// storeRefuses reports whether it is the store that keeps a request from being served, and has noted that.
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

// LogUnavailable logs why a request is answered with 503: the store is why, or its client has gone.
func LogUnavailable(r *http.Request, logger *zap.Logger, doing string, err error) {
	method := zap.String("method", r.Method)
	if call, ok := CallOf(r); ok && errors.Is(err, storage.ErrUnavailable) {
		call.Core.LogFailure(logger, doing, err, method)
		return
	}
	logger.Debug(doing, method, zap.Error(err))
}
