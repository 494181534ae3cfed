package accesslog

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const secret = "canary"

// leaky returns a request that has a secret wherever clients put one.
func leaky() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/oauth/callback?code="+secret+"&server=demo", nil)
	r.Header = http.Header{
		"X-Api-Key": {secret}, "Authorization": {"Bearer " + secret}, "Cookie": {"durward=" + secret}, "Referer": {"https://x/?state=" + secret},
		"User-Agent": {"curl"},
	}
	return r
}

// logs makes a logger of two logs, of which the second takes errors alone.
func logs() (logger *zap.Logger, all, failures *bytes.Buffer) {
	all, failures = new(bytes.Buffer), new(bytes.Buffer)
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewTee(
		zapcore.NewCore(encoder.Clone(), zapcore.AddSync(all), zapcore.DebugLevel),
		zapcore.NewCore(encoder, zapcore.AddSync(failures), zapcore.ErrorLevel),
	), zap.AddCaller()), all, failures
}

// guarded returns a server whose loggers write to the logs, after it was guarded.
func guarded(t *testing.T) (server *caddyhttp.Server, all, failures *bytes.Buffer) {
	t.Helper()
	logger, all, failures := logs()
	server = &caddyhttp.Server{Logs: &caddyhttp.ServerLogConfig{ShouldLogCredentials: true}}
	for _, name := range loggers {
		place, err := loggerOf(server, name)
		if err != nil {
			t.Fatalf("with the Caddy of go.mod: %v", err)
		}
		*place = logger
	}
	ctx := caddy.Context{Context: context.WithValue(t.Context(), caddyhttp.ServerCtxKey, server)}
	for range 2 { // as for two handlers
		if err := Guard(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return server, all, failures
}

// TestGuard logs a request as Caddy does: no secret of it is written, whatever the configuration says, and everything else is.
func TestGuard(t *testing.T) {
	for _, name := range loggers {
		t.Run(name, func(t *testing.T) {
			server, all, failures := guarded(t)
			place, _ := loggerOf(server, name)
			r := leaky()
			log := (*place).WithLazy(zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: r, ShouldLogCredentials: server.Logs.ShouldLogCredentials}))
			answer := http.Header{"Location": {"https://c/?code=" + secret}, "Set-Cookie": {secret}, "Content-Type": {"text/html"}}
			log.Named("x").Info("handled request", zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: answer, ShouldLogCredentials: true}), zap.Int("status", 302))
			if failures.Len() != 0 {
				t.Errorf("the log of errors has %s", failures)
			}
			log.Error("failed")
			if n := strings.Count(failures.String(), "\n"); n != 1 {
				t.Errorf("%d lines of an error: %s", n, failures)
			}
			text := all.String()
			if strings.Contains(text+failures.String(), secret) {
				t.Errorf("a secret is written: %s", text)
			}
			for _, want := range []string{
				`"uri":"/api/oauth/callback?code=REDACTED&server=demo"`, `"User-Agent":["curl"]`, `"status":302`, `"Content-Type":["text/html"]`,
				`"X-Api-Key":["REDACTED"]`, `"https://x/?state=REDACTED"`, `"https://c/?code=REDACTED"`, `"caller":"accesslog/accesslog_test.go`, `"logger":"x"`,
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%s is missing in %s", want, text)
				}
			}
			if n := strings.Count(text, "\n"); n != 2 {
				t.Errorf("%d lines: %s", n, text)
			}
			if r.Header.Get("X-Api-Key") != secret {
				t.Error("the request itself was changed")
			}
		})
	}
}

// TestGuardUnknown guards a server of a Caddy that has other loggers, and a handler outside of every server.
func TestGuardUnknown(t *testing.T) {
	if _, err := loggerOf(new(caddyhttp.Server), "logger_"); !errors.Is(err, errUnknownCaddy) {
		t.Errorf("a field that is not there: %v", err)
	}
	if _, err := loggerOf(new(caddyhttp.Server), "Listen"); !errors.Is(err, errUnknownCaddy) {
		t.Errorf("a field of another type: %v", err)
	}
	if err := Guard(caddy.Context{Context: t.Context()}); err != nil {
		t.Error(err)
	}
	server := new(caddyhttp.Server)
	if err := Guard(caddy.Context{Context: context.WithValue(t.Context(), caddyhttp.ServerCtxKey, server)}); err != nil {
		t.Error(err)
	}
	if place, err := loggerOf(server, "accessLogger"); err != nil || *place != nil || !reflect.DeepEqual(server, new(caddyhttp.Server)) {
		t.Errorf("a server without logs: %v", err)
	}
}
