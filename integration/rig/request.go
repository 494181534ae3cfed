package rig

import (
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

// CallTimeout bounds a call, ten times and more what a loaded machine needs.
const CallTimeout = 60 * time.Second

// NewRequest makes a request to host:port for one of the nodes behind publicURL. A body that is no string is written as
// JSON. The header's pairs are name, value.
func NewRequest(ctx context.Context, publicURL, address, method, path, token string, body any, header ...string) (*http.Request, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = strings.NewReader(string(encoded))
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, content)
	if err != nil {
		return nil, err
	}
	request.Host = strings.TrimPrefix(publicURL, "http://")
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

// Number is a number of the environment, which a make target sets; short is for CI.
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

// Eventually waits until something holds.
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
