package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// NewRequest makes a request. A body that is neither text nor bytes is written as JSON. The header's pairs are name, value.
func NewRequest(ctx context.Context, method, url, token string, body any, header ...string) (*http.Request, error) {
	content, err := requestBody(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return request, nil
}

// NewNodeRequest makes a request as NewRequest does, but sends it to host:port of one of the nodes behind publicURL.
// The TLS of an https address may end elsewhere.
func NewNodeRequest(ctx context.Context, publicURL, address, method, path, token string, body any, header ...string) (*http.Request, error) {
	request, err := NewRequest(ctx, method, "http://"+address+path, token, body, header...)
	if err != nil {
		return nil, err
	}
	_, request.Host, _ = strings.Cut(publicURL, "://")
	return request, nil
}

func requestBody(body any) (io.Reader, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return bytes.NewReader(b), nil
	case string:
		return strings.NewReader(b), nil
	}
	encoded, err := json.Marshal(body)
	return bytes.NewReader(encoded), err
}

// Number returns a number of the environment, which a make target sets; short is the default, for CI.
func Number(t testing.TB, variable string, short int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number from 1 on", variable, text)
	}
	return n
}

// Eventually waits until holds returns true.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(CallTimeout)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-ticker.C:
		}
	}
}

// LeadsToConnect reports whether the gateway answered a call itself, with the page on which the user connects their account.
// By default (`unconnected guide`) it does.
func LeadsToConnect(status int, body []byte) bool {
	return status == http.StatusOK && bytes.Contains(body, []byte(`"isError":true`)) && bytes.Contains(body, []byte("/connect/"))
}
