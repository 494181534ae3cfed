package authserver

import (
	"net/url"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// editors holds the private-use schemes of MCP clients that do not follow RFC 8252 section 7.1: they have no dot.
var editors = []string{"cursor", "vscode", "vscode-insiders", "windsurf"}

// ParseRedirect reads a redirect URI: https anywhere, http on this machine, or a private-use scheme, which a program on
// this machine has registered (RFC 8252 section 7.1). It has no fragment, no user, and only characters that no two parsers
// read differently. A private-use scheme has a dot or is one of editors: javascript:, data: and file: are no redirects.
func ParseRedirect(s string) (*url.URL, bool) {
	if s == "" || len(s) > maxText || strings.ContainsFunc(s, func(c rune) bool { return c <= 0x20 || c >= 0x7f || strings.ContainsRune("\\\"<>^`{|}#", c) }) {
		return nil, false
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Opaque != "" || strings.ContainsFunc(u.Host, func(c rune) bool { return !isHostCharacter(c) }) {
		return nil, false
	}
	switch u.Scheme {
	case "https":
		return u, u.Hostname() != ""
	case "http":
		return u, loopback.IsHost(u.Host)
	}
	// A query could be a command to the program that opens the address: it is told of a refusal there.
	return u, IsPrivate(u) && u.RawQuery == "" && !u.ForceQuery
}

// isHostCharacter reports whether a host may have a character, once its escapes are decoded: names of other scripts look like
// others' names to the user who is asked, and browsers take some of their characters for dots. Such a name is written with xn--.
func isHostCharacter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._:[]", c)
}

// IsPrivate reports whether a redirect URI has a private-use scheme.
func IsPrivate(u *url.URL) bool {
	return strings.Contains(u.Scheme, ".") || slices.Contains(editors, u.Scheme)
}

// Allows reports whether a code may be sent to a redirect URI of the client. The match is exact, except that a public
// client's loopback redirect may name another port: native applications get theirs when they start (RFC 8252 section 7.3).
func (c *Client) Allows(redirect string) bool {
	u, ok := ParseRedirect(redirect)
	if !ok {
		return false
	}
	if slices.Contains(c.RedirectURIs, redirect) {
		return true
	}
	return u.Scheme == "http" && c.Public() && slices.ContainsFunc(c.RedirectURIs, func(registered string) bool {
		r, ok := ParseRedirect(registered)
		return ok && r.Scheme == "http" && r.Hostname() == u.Hostname() && r.EscapedPath() == u.EscapedPath() && r.RawQuery == u.RawQuery
	})
}

// AnswerURI returns the redirect URI with the members of an answer to an authorization request.
func AnswerURI(redirect string, answer url.Values) string {
	separator := "?"
	if strings.Contains(redirect, "?") {
		separator = "&"
	}
	return redirect + separator + answer.Encode()
}

// FormSources returns the sources of a form-action policy that lets a form lead to a redirect URI. Browsers apply the policy
// to redirects as well, and a client may send its user on to any other of its hosts, so only the scheme is bound. An IPv6
// address cannot be written in a policy: there the form may lead anywhere.
func FormSources(redirect string) string {
	u, ok := ParseRedirect(redirect)
	if !ok || strings.Contains(u.Host, "[") {
		return "*"
	}
	sources := "'self' https: http://localhost:* http://127.0.0.1:*"
	if IsPrivate(u) {
		return sources + " " + u.Scheme + ":"
	}
	if host := u.Hostname(); u.Scheme == "http" && host != "localhost" && host != "127.0.0.1" {
		sources += " http://" + host + ":*"
	}
	return sources
}

// RedirectOrigin returns the scheme, host and port of a redirect URI. Loopback addresses have no port: a native
// application gets another one each time.
func RedirectOrigin(redirect string) (string, bool) {
	u, ok := ParseRedirect(redirect)
	if !ok {
		return "", false
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	return u.Scheme + "://" + host, true
}
