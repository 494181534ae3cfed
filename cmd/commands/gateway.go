package commands

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// defaultGateway is the address of `durward dev` unless another one is given.
const defaultGateway = "http://127.0.0.1:8080"

// parseGateway reads the address of a gateway and returns its origin.
func parseGateway(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("--url %q is not the address of a gateway, such as %s", text, defaultGateway)
	}
	return u.Scheme + "://" + u.Host, nil
}

// newClient makes a client for the gateway and its parts. All of them are on this machine, so no proxy is used.
// Redirects are not followed, because they would take the token along.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
