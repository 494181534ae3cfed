package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	// issuerPath is the path of the development identity provider on a gateway in development mode.
	issuerPath = "/dev/idp"
	// metadataPath is the path of the gateway's own metadata (RFC 8414 section 3).
	metadataPath = "/.well-known/oauth-authorization-server"

	maxDocument = 1 << 20
)

type metadata struct {
	Issuer                string `json:"issuer"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"`
}

// ErrNotDevelopment says that the server at the address has no development identity provider.
var ErrNotDevelopment = errors.New("it answers, but it is not a gateway in development mode")

// UnreachableError says that nothing answers.
type UnreachableError struct {
	Gateway string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot connect to %s: %v", e.Gateway, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Find reads the metadata of the gateway at an origin such as http://127.0.0.1:8080, and of its identity provider. Errors:
// *UnreachableError, ErrNotDevelopment.
func Find(ctx context.Context, client *http.Client, gateway string) (*Gateway, error) {
	provider, err := fetch(ctx, client, gateway, issuerPath+"/.well-known/openid-configuration")
	switch {
	case err != nil:
		return nil, err
	case provider.Issuer == "":
		return nil, fmt.Errorf("%s: %w", gateway, ErrNotDevelopment)
	case provider.Issuer != gateway+issuerPath:
		return nil, fmt.Errorf("the gateway at %s calls itself %q; use that address", gateway, strings.TrimSuffix(provider.Issuer, issuerPath))
	}
	found, err := fetch(ctx, client, gateway, metadataPath)
	switch {
	case err != nil:
		return nil, err
	case found.Issuer == "":
		return nil, fmt.Errorf("clients do not log in at the gateway at %s: is `authorization_server off` in its Caddyfile?", gateway)
	}
	// The requests below go to these addresses: they must be the gateway's own.
	if found.Issuer != gateway || !strings.HasPrefix(found.AuthorizationEndpoint, gateway+"/") || !strings.HasPrefix(found.TokenEndpoint, gateway+"/") {
		return nil, fmt.Errorf("the gateway at %s sends clients to %q", gateway, found.Issuer)
	}
	return &Gateway{client: client, issuer: provider.Issuer, metadata: found}, nil
}

// fetch reads metadata at a path of the gateway; it is empty when there is none. Errors: *UnreachableError.
func fetch(ctx context.Context, client *http.Client, gateway, path string) (metadata, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+path, nil)
	if err != nil {
		return metadata{}, fmt.Errorf("looking for the gateway: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return metadata{}, &UnreachableError{Gateway: gateway, Err: causeOf(err)}
	}
	defer response.Body.Close()
	var found metadata
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, maxDocument)).Decode(&found) != nil {
		return metadata{}, nil
	}
	return found, nil
}

func causeOf(err error) error {
	var failure *url.Error
	if errors.As(err, &failure) {
		return failure.Err
	}
	return err
}
