package connection

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

const maxReturnURL = 2048

// returnURLs is the allow-list of addresses to which a browser may be sent after a connection attempt (CWE-601).
type returnURLs struct {
	prefixes []returnPrefix
	loopback bool // every origin of this machine is allowed too
}

type returnPrefix struct {
	origin string
	path   string // "" or a path without a slash at its end: it allows itself and everything below it
}

// CheckReturnURLs returns the mistake in Config.ReturnURLs, without a broker.
func CheckReturnURLs(entries []string) error {
	_, err := parseReturnURLs(entries, false)
	return err
}

// parseReturnURLs reads the allow-list: origins with an optional path. It allows no wildcards (oauth2-proxy,
// CVE-2021-21291).
func parseReturnURLs(entries []string, loopbackToo bool) (returnURLs, error) {
	list := returnURLs{loopback: loopbackToo}
	for _, e := range entries {
		u, reason := parseReturnURL(e)
		switch {
		case reason != "":
		case u.RawQuery != "" || u.ForceQuery:
			reason = "it has a query"
		case strings.Contains(e, "*"):
			reason = "wildcards are not supported"
		}
		if reason != "" {
			return returnURLs{}, fmt.Errorf("return_url %q: %s", e, reason)
		}
		list.prefixes = append(list.prefixes, returnPrefix{origin: originOf(u), path: strings.TrimRight(u.Path, "/")})
	}
	return list, nil
}

// check returns nil for an allowed address, otherwise a *ReturnURLError.
func (l returnURLs) check(raw string) error {
	u, reason := parseReturnURL(raw)
	if reason != "" {
		return &ReturnURLError{Reason: reason}
	}
	if l.loopback && loopback.IsURL(u) {
		return nil
	}
	o := originOf(u)
	for _, p := range l.prefixes {
		if p.origin == o && (u.Path == p.path || strings.HasPrefix(u.Path, p.path+"/")) {
			return nil
		}
	}
	return &ReturnURLError{Reason: "it is not on the list of addresses to return to"}
}

// CheckReturnURL returns nil if browsers may be sent to the address after an attempt, otherwise a *ReturnURLError.
func (b *Broker) CheckReturnURL(raw string) error { return b.returns.check(raw) }

// parseReturnURL refuses every address that a browser could read differently from us.
func parseReturnURL(raw string) (u *url.URL, reason string) {
	if len(raw) > maxReturnURL {
		return nil, fmt.Sprintf("it is longer than %d characters", maxReturnURL)
	}
	for i := range len(raw) {
		// Browsers drop tabs and line breaks, and read a backslash as a slash: https://good.example\@evil.example.
		if c := raw[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return nil, "it has characters that no URL has"
		}
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, "it is not a URL"
	case u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return nil, "it is not an absolute http or https URL"
	case u.User != nil:
		return nil, "it carries user information"
	case strings.HasSuffix(u.Host, ":") || strings.ContainsAny(u.Hostname(), "%_"):
		return nil, "its host is not a name"
	case strings.Contains(raw, "#"):
		return nil, "it has a fragment"
	}
	if reason := doubtInPath(u); reason != "" {
		return nil, reason
	}
	return u, ""
}

// doubtInPath returns what a browser or the site could read differently in the path of u.
func doubtInPath(u *url.URL) (reason string) {
	// An encoded slash or backslash, and dot segments in any spelling, move the path below another prefix.
	for i := range len(u.Path) {
		if c := u.Path[i]; c < ' ' || c == 0x7f || c == '\\' {
			return "its path has characters that no URL has"
		}
	}
	if escaped := strings.ToLower(u.EscapedPath()); strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%25") {
		return "its path has an encoded slash or percent sign"
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		// Some servers cut off a segment's parameters. They read "..;" as "..".
		if name, _, _ := strings.Cut(segment, ";"); name == "." || name == ".." {
			return "its path has dot segments"
		}
	}
	return ""
}

// WithOutcome adds the outcome of an attempt to a return URL that check has accepted.
func WithOutcome(raw string, ok bool, slug string) string {
	if raw == "" {
		return ""
	}
	status := "error"
	if ok {
		status = "connected"
	}
	sep := "?"
	if strings.Contains(raw, "?") {
		sep = "&"
	}
	return raw + sep + "status=" + status + "&server=" + url.QueryEscape(slug)
}
