package connection

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// place is the destination that a credential may be sent to.
type place struct {
	origin   string // one origin, or two with a blank between them if events come from elsewhere
	resource string
	issuer   string
}

// site holds the settings of a server that determine which credentials fit it.
type site struct {
	url, eventsURL   string
	provider, kind   storage.Provider
	resource, issuer string
}

func siteOf(e *storage.DirectoryEntry) site {
	return site{e.URL, e.EventsURL, e.Provider, KindOf(e), e.OAuth.Resource, e.OAuth.Issuer}
}

// sent returns the resource for OAuth requests. It is the place's resource, or "" when the entry leaves it out.
func (p place) sent(e *storage.DirectoryEntry) string {
	if e.Options.ResourceOff {
		return ""
	}
	return p.resource
}

// placeOf returns the place of a server's credentials. known is the discovered data about the server, and may be empty.
func placeOf(s site, known storage.OAuthEndpoints) (place, error) {
	p := place{}
	var err error
	if p.origin, err = origins(s.url, s.eventsURL); err != nil {
		return place{}, err
	}
	if s.provider != storage.ProviderOAuth2 {
		return p, nil
	}
	p.resource, p.issuer = s.resource, s.issuer
	if p.resource == "" {
		p.resource = known.Resource
	}
	if p.issuer == "" {
		p.issuer = known.Issuer
	}
	return p, nil
}

func origins(url, eventsURL string) (string, error) {
	o, err := origin(url)
	if err != nil {
		return "", err
	}
	if eventsURL == "" {
		return o, nil
	}
	events, err := origin(eventsURL)
	if err != nil {
		return "", err
	}
	if events == o {
		return o, nil
	}
	return o + " " + events, nil
}

// origin returns scheme, host and port in one uniform spelling (RFC 6454).
func origin(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%q is not an http or https URL", raw)
	}
	return originOf(u), nil
}

func originOf(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if (scheme == "https" && port == "443") || (scheme == "http" && port == "80") {
		port = ""
	}
	if port != "" {
		return scheme + "://" + net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host
}

// holds reports whether u is at one of the place's origins.
func (p place) holds(u *url.URL) bool {
	// Nearly always there is one origin, in the same spelling as in the address.
	if rest, ok := strings.CutPrefix(p.origin, u.Scheme); ok {
		if host, ok := strings.CutPrefix(rest, "://"); ok && host == u.Host {
			return true
		}
	}
	want := originOf(u)
	for o := range strings.SplitSeq(p.origin, " ") {
		if o == want {
			return true
		}
	}
	return false
}

// keeps reports whether the client of an entry's server stays where it was first used. No user agrees to its tokens, so that
// an administrator who turns the entry elsewhere would get the client's secret, or its tokens. Operators may move theirs.
func keeps(e *storage.DirectoryEntry) bool { return e.OwnServer() && e.Source == storage.SourceCustom }

// homeOf returns the origin of an entry's upstream; where no user agrees, all origins that get its tokens.
func homeOf(e *storage.DirectoryEntry) (string, error) {
	if e.OwnServer() {
		return origins(e.URL, e.EventsURL)
	}
	return origin(e.URL)
}

// redirected reports whether an entry names another upstream or authorization server than the ones where its client was first
// used.
func redirected(s storage.Server, c storage.OAuthClient) bool {
	if !keeps(&s.Entry) {
		return false
	}
	here, err := homeOf(&s.Entry)
	named := s.Entry.OAuth
	return err != nil || here != c.Origin || named.Issuer != "" && strings.TrimSuffix(named.Issuer, "/") != strings.TrimSuffix(c.Issuer, "/") ||
		named.TokenEndpoint != "" && !sameOrigin(named.TokenEndpoint, c.Endpoints.TokenEndpoint)
}
