package accesslog

import (
	"bytes"
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

const secret = "canary-canary"

// leaky returns a request that has a secret wherever clients put one.
func leaky() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/oauth/callback?code="+secret+"&server=demo", nil)
	r.Header = http.Header{
		"X-Api-Key": {secret}, "X-Password": {"pw"}, "Authorization": {"Bearer " + secret}, "Cookie": {"durward=" + secret}, "Referer": {"https://x/?state=" + secret},
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

// guarded returns servers whose loggers write to the logs, after they were guarded: one with its loggers already, and one that is
// given some later, of the app's.
func guarded(t *testing.T) (servers map[string]*caddyhttp.Server, all, failures *bytes.Buffer) {
	t.Helper()
	logger, all, failures := logs()
	early, late := new(caddyhttp.Server), new(caddyhttp.Server)
	early.Logs, late.Logs = &caddyhttp.ServerLogConfig{ShouldLogCredentials: true}, &caddyhttp.ServerLogConfig{ShouldLogCredentials: true}
	app := &caddyhttp.App{Servers: map[string]*caddyhttp.Server{"early": early, "late": late}}
	*place(t, app, "logger") = logger
	for _, name := range loggers {
		*place(t, early, name) = logger
	}
	for range 2 { // as for two handlers
		if err := guardApp(app); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range loggers {
		*place(t, late, name) = (*place(t, app, "logger")).Named(name)
	}
	return app.Servers, all, failures
}

// loggers are those of a server.
var loggers = []string{"accessLogger", "errorLogger"}

func place(t *testing.T, owner any, name string) **zap.Logger {
	t.Helper()
	logger, err := loggerOf(owner, name)
	if err != nil {
		t.Fatalf("with the Caddy of go.mod: %v", err)
	}
	return logger
}

// TestGuard logs a request as Caddy does: no secret of it is written, whatever the configuration says, and everything else is.
func TestGuard(t *testing.T) {
	for _, which := range []string{"early", "late"} {
		for _, name := range loggers {
			t.Run(which+"/"+name, func(t *testing.T) {
				servers, all, failures := guarded(t)
				logAsCaddy(servers[which], *place(t, servers[which], name))
				if n := strings.Count(failures.String(), "\n"); n != 1 {
					t.Errorf("%d lines of an error: %s", n, failures)
				}
				text := all.String()
				if strings.Contains(text+failures.String(), secret) {
					t.Errorf("a secret is written: %s", text)
				}
				for _, want := range []string{
					`"uri":"/api/oauth/callback?code=REDACTED&server=demo"`, `"User-Agent":["curl"]`, `"status":302`, `"Content-Type":["text/html"]`,
					`"X-Api-Key":["REDACTED"]`, `"https://x/?state=REDACTED"`, `"https://c/?code=REDACTED"`, `"caller":"accesslog/accesslog_test.go`, `x","caller"`,
					`"added":"a REDACTED b"`, `"msg":"REDACTED failed"`, `"error":"by REDACTED"`, `"other":"by nothing"`, `"short":"pw"`,
				} {
					if !strings.Contains(text, want) {
						t.Errorf("%s is missing in %s", want, text)
					}
				}
				if n := strings.Count(text, "\n"); n != 2 {
					t.Errorf("%d lines: %s", n, text)
				}
			})
		}
	}
}

// logAsCaddy writes an access and an error.
func logAsCaddy(server *caddyhttp.Server, logger *zap.Logger) {
	credentials := server.Logs.ShouldLogCredentials
	log := logger.WithLazy(zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: leaky(), ShouldLogCredentials: credentials})).Named("x")
	answer := http.Header{"Location": {"https://c/?code=" + secret}, "Set-Cookie": {secret + "; Path=/"}, "Content-Type": {"text/html"}}
	log.Info("handled request", zap.Any("added", "a "+secret+" b"), zap.String("short", "pw"),
		zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: answer, ShouldLogCredentials: true}), zap.Int("status", 302))
	log.Error(secret+" failed", zap.Error(errors.New("by "+secret)), zap.NamedError("other", errors.New("by nothing")))
}

// TestGuardChangesNoRequest checks that the handlers that come after the log's copy see what the client sent.
func TestGuardChangesNoRequest(t *testing.T) {
	r := leaky()
	redacted := new(secrets).redactRequest(caddyhttp.LoggableHTTPRequest{Request: r})
	if !reflect.DeepEqual(r.Header, leaky().Header) || r.RequestURI != leaky().RequestURI || redacted.RequestURI == r.RequestURI {
		t.Errorf("%v became %v", leaky(), r)
	}
	if redacted := new(secrets).redactRequest(caddyhttp.LoggableHTTPRequest{}); redacted.Request != nil {
		t.Error("a request was made")
	}
}

// TestGuardUnknown guards an app and a server of a Caddy that has other loggers, servers without logs, and a handler outside of every
// server.
func TestGuardUnknown(t *testing.T) {
	if err := replace(new(caddyhttp.Server), "logger_"); !errors.Is(err, errUnknownCaddy) {
		t.Errorf("a field that is not there: %v", err)
	}
	if err := replace(new(caddyhttp.App), "HTTPPort"); !errors.Is(err, errUnknownCaddy) {
		t.Errorf("a field of another type: %v", err)
	}
	if err := Guard(caddy.Context{Context: t.Context()}); err != nil {
		t.Error(err)
	}
	server := new(caddyhttp.Server)
	if err := guardApp(&caddyhttp.App{Servers: map[string]*caddyhttp.Server{"": server}}); err != nil || !reflect.DeepEqual(server, new(caddyhttp.Server)) {
		t.Errorf("a server without logs: %v", err)
	}
}
