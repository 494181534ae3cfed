package accesslog

import (
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// core passes on entries with their requests and headers redacted.
type core struct {
	zapcore.Core
	secrets secrets // of the request
}

func newCore(c zapcore.Core) zapcore.Core { return &core{Core: c} }

// With adds fields to all entries that follow. Caddy passes the request to With.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	known := slices.Clip(c.secrets)
	return &core{c.Core.With(known.redactFields(fields)), known}
}

// Check adds this core to an entry that any core within writes.
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	within := c.Core.Check(entry, nil)
	if within == nil {
		return checked
	}
	return checked.AddCore(entry, &written{c.Core, within, c.secrets})
}

// written is a core whose entry was checked already. When there are several logs, only those that accept the entry
// write it.
type written struct {
	zapcore.Core
	entry   *zapcore.CheckedEntry
	secrets secrets
}

// Write writes the entry, whose origin is known by now. The answer's headers and the fields that the configuration adds
// are passed to Write.
func (w *written) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	known := slices.Clip(w.secrets)
	redacted := known.redactFields(fields)
	w.entry.Entry = entry
	w.entry.Message = known.hide(entry.Message)
	w.entry.Write(redacted...)
	return nil
}

// redactFields returns fields without the secrets of requests and headers. The given fields belong to others and stay
// unchanged.
func (s *secrets) redactFields(fields []zapcore.Field) []zapcore.Field {
	redacted := make([]zapcore.Field, len(fields))
	for i, field := range fields {
		switch value := field.Interface.(type) {
		case caddyhttp.LoggableHTTPRequest:
			field.Interface = s.redactRequest(value)
		case caddyhttp.LoggableHTTPHeader:
			field.Interface = caddyhttp.LoggableHTTPHeader{Header: s.redactHeader(value.Header)}
		}
		redacted[i] = field
	}
	for i, field := range redacted { // all secrets are known by now
		redacted[i] = s.hideIn(field)
	}
	return redacted
}

// hideIn hides secrets in the text of a field, for example a field of log_append.
func (s *secrets) hideIn(field zapcore.Field) zapcore.Field {
	switch field.Type { //nolint:exhaustive // the others have no text of a request
	case zapcore.StringType:
		field.String = s.hide(field.String)
	case zapcore.ErrorType:
		if failure, ok := field.Interface.(error); ok && s.within(failure.Error()) {
			return zap.String(field.Key, s.hide(failure.Error()))
		}
	}
	return field
}

func (s *secrets) redactRequest(logged caddyhttp.LoggableHTTPRequest) caddyhttp.LoggableHTTPRequest {
	if logged.Request == nil {
		return logged
	}
	r := *logged.Request
	r.RequestURI = s.redactAddress(r.RequestURI)
	r.Header = s.redactHeader(r.Header)
	return caddyhttp.LoggableHTTPRequest{Request: &r}
}

func (s *secrets) redactHeader(header http.Header) http.Header {
	redacted := make(http.Header, len(header))
	for name, values := range header {
		shown := make([]string, len(values))
		for i, value := range values {
			shown[i] = s.redactValue(name, value)
		}
		redacted[name] = shown
	}
	return redacted
}
