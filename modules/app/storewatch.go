package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/storewatch"
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
