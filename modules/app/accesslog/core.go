package accesslog

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"
)

// core passes on entries with their requests and headers redacted.
type core struct{ zapcore.Core }

func newCore(c zapcore.Core) zapcore.Core { return &core{c} }

// With adds fields to all entries that follow. The request comes this way.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.Core.With(redactFields(fields))}
}

// Check adds this core to an entry that any core within writes.
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	within := c.Core.Check(entry, nil)
	if within == nil {
		return checked
	}
	return checked.AddCore(entry, &written{c.Core, within})
}

// written is a core whose entry was checked already: of several logs only those write that take the entry.
type written struct {
	zapcore.Core
	entry *zapcore.CheckedEntry
}

// Write writes the entry, which knows by now where it comes from. The answer's headers come this way.
func (w *written) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	w.entry.Entry = entry
	w.entry.Write(redactFields(fields)...)
	return nil
}

// redactFields returns fields without the secrets of requests and headers. The fields themselves are others' and stay as they are.
func redactFields(fields []zapcore.Field) []zapcore.Field {
	redacted := make([]zapcore.Field, len(fields))
	for i, field := range fields {
		switch value := field.Interface.(type) {
		case caddyhttp.LoggableHTTPRequest:
			field.Interface = redactRequest(value)
		case caddyhttp.LoggableHTTPHeader:
			field.Interface = caddyhttp.LoggableHTTPHeader{Header: redactHeader(value.Header)}
		}
		redacted[i] = field
	}
	return redacted
}

func redactRequest(logged caddyhttp.LoggableHTTPRequest) caddyhttp.LoggableHTTPRequest {
	if logged.Request == nil {
		return logged
	}
	r := *logged.Request
	r.RequestURI = redactAddress(r.RequestURI)
	r.Header = redactHeader(r.Header)
	return caddyhttp.LoggableHTTPRequest{Request: &r}
}

func redactHeader(header http.Header) http.Header {
	redacted := make(http.Header, len(header))
	for name, values := range header {
		shown := make([]string, len(values))
		for i, value := range values {
			shown[i] = redactValue(name, value)
		}
		redacted[name] = shown
	}
	return redacted
}
