package app

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// auditDirectory is the directory of the journals, inside the data directory.
const auditDirectory = "audit"

// newRecorder makes the recorder without its keys, which need the data keys.
func (a *App) newRecorder() *record.Recorder {
	rules := a.Audit.WithDefaults()
	dir := cmp.Or(a.dataDirectory(), LocalDirectory())
	return record.New(
		record.Settings{BestEffort: rules.BestEffort, SyncAlways: rules.Sync == settings.SyncAlways, Arguments: rules.Arguments, Redact: rules.Redact},
		record.Place{Dir: filepath.Join(dir, auditDirectory), Store: a.resources.store, Log: a.slogger, Now: time.Now}, a.resources.trail)
}

// LocalDirectory returns the directory for local files of the gateway, when its store is not on a local disk itself.
func LocalDirectory() string { return filepath.Join(caddy.AppDataDir(), "durward") }

// auditSinks makes the receivers of copies that the configuration names.
func (a *App) auditSinks() []audit.Sink {
	var sinks []audit.Sink
	for _, s := range a.Audit.WithDefaults().Sinks {
		if s.Kind == "file" {
			sinks = append(sinks, audit.NewFileSink(s.Path))
			continue
		}
		sinks = append(sinks, &logSink{a.logger.Named("audit")})
	}
	return sinks
}

// logSink writes records to Caddy's logger.
type logSink struct{ logger *zap.Logger }

// Name implements audit.Sink.
func (*logSink) Name() string { return "log" }

// Write implements audit.Sink.
func (s *logSink) Write(_ context.Context, records []format.Exported) error {
	for _, r := range records {
		s.logger.Info("record", zap.String("organization_id", r.Organization), zap.String("node", r.Node), zap.String("segment", r.Segment),
			zap.Int64("sequence", r.Sequence), zap.String("hash", r.Hash), zap.Any("entry", r.Entry))
	}
	return nil
}

// Close implements audit.Sink.
func (*logSink) Close() error { return nil }

// Interface guards
var _ audit.Sink = (*logSink)(nil)
