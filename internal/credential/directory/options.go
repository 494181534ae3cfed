package directory

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// Words for options of an entry.
const (
	Auto = "auto"
	Off  = "off"
)

// authMethods lists the values of token_endpoint_auth_method (RFC 7591 section 2).
var authMethods = []string{Auto, "client_secret_basic", "client_secret_post", "none"}

// PrivateKeyJWT is the value for clients that have a key in place of a secret.
const PrivateKeyJWT = "private_key_jwt" // #nosec G101 -- a name

// Bounds of options.
const (
	maxParams     = 20
	maxParamValue = 1024
	MaxTrustedCA  = 64 << 10
)

// reservedParams lists parameters of the authorization request on which the security of the login depends. A user who
// could set one would choose where the code goes, undo its proof key, or, with a request object, replace all the
// others (RFC 9101).
var reservedParams = []string{
	"client_id", "client_secret", "code", "code_challenge", "code_challenge_method", "code_verifier", "error", "iss", "nonce",
	"redirect_uri", "request", "request_uri", "resource", "response_mode", "response_type", "scope", "state",
}

func (c *checker) options(e storage.DirectoryEntry) {
	o := e.Options
	switch {
	case o.AuthMethod == "":
	case e.Provider.Obtained():
		c.enum("token_endpoint_auth_method", o.AuthMethod, append([]string{PrivateKeyJWT}, authMethods...)...)
	default: // clients of users in a browser revoke tokens after their server has changed, for which they need a secret that is kept
		c.enum("token_endpoint_auth_method", o.AuthMethod, authMethods...)
	}
	if len(o.AuthorizationParams) > maxParams {
		c.add("too_long", fmt.Sprintf("Dictionary should have at most %d items", maxParams), "authorization_params")
	}
	for _, name := range slices.Sorted(maps.Keys(o.AuthorizationParams)) {
		switch value := o.AuthorizationParams[name]; {
		case slices.Contains(reservedParams, strings.ToLower(name)):
			c.add("value_error", "Value error, the gateway sets this parameter itself", "authorization_params", name)
		case name == "" || len(name) > maxWord || !isVisible(name, false):
			c.add("value_error", "Value error, not a usable parameter name", "authorization_params", name)
		case len(value) > maxParamValue || !isVisible(value, true):
			c.add("value_error", "Value error, not a usable value", "authorization_params", name)
		}
	}
	if _, err := TrustedCAs(o.TrustedCA); err != nil {
		c.add("value_error", "Value error, "+err.Error(), "trusted_ca")
	}
}

// TrustedCAs reads the certificates of an entry's trusted_ca. It returns nil when there are none.
func TrustedCAs(text string) ([]*x509.Certificate, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > MaxTrustedCA {
		return nil, fmt.Errorf("trusted_ca has more than %d bytes", MaxTrustedCA)
	}
	var all []*x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("trusted_ca holds something else than certificates")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("trusted_ca holds a certificate that cannot be read")
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errors.New("trusted_ca has no certificate in PEM")
	}
	return all, nil
}

// TrustedRoots returns the system's certificate authorities together with those of an entry's trusted_ca. It returns
// nil when trusted_ca is empty.
func TrustedRoots(text string) (*x509.CertPool, error) {
	certificates, err := TrustedCAs(text)
	if err != nil || certificates == nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("reading the system's certificate authorities: %w", err)
	}
	for _, c := range certificates {
		roots.AddCert(c)
	}
	return roots, nil
}
