package accesslog

import (
	"net/url"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/secretname"
)

const hidden = "REDACTED"

// parameters lists the parameters of addresses that hold secrets or a provider's facts about a person. Parameters whose
// names tell that they are secret need no place in it.
var parameters = []string{"state", "nonce", "ticket", "sig", "signature", "errordescription", "samlresponse", "samlrequest", "request", "jwt", "auth", "loginhint"}

// isSecret reports whether a parameter of an address may hold a secret. In an address, no parameter is a count of
// tokens.
func isSecret(name string) bool {
	plain := secretname.Plain(name)
	return secretname.Like(name) || strings.Contains(plain, "token") || slices.Contains(parameters, plain)
}

// redactValue hides a header's value, or the secrets of an address in it, as in Referer and Location.
func (s *secrets) redactValue(name, value string) string {
	if secretname.Like(name) {
		s.learnHeader(name, value)
		return hidden
	}
	return s.redactAddress(value)
}

// redactAddress hides the values of secret parameters in the query and fragment of an address, and its password. Names
// and order stay: they tell what the request was for.
func (s *secrets) redactAddress(address string) string {
	address = s.redactUser(address)
	at := strings.IndexAny(address, "?#")
	if at < 0 {
		return address
	}
	var redacted strings.Builder
	redacted.WriteString(address[:at])
	for rest := address[at:]; rest != ""; {
		end := strings.IndexAny(rest[1:], "?#&;") + 1
		if end == 0 {
			end = len(rest)
		}
		redacted.WriteString(rest[:1] + s.redactParameter(rest[1:end]))
		rest = rest[end:]
	}
	return redacted.String()
}

func (s *secrets) redactParameter(parameter string) string {
	name, value, given := strings.Cut(parameter, "=")
	if !given || value == "" {
		return parameter
	}
	if plain, err := url.QueryUnescape(name); err == nil && !isSecret(plain) {
		return name + "=" + s.redactInner(value)
	}
	s.learnParameter(value)
	return name + "=" + hidden // also where the name cannot be read
}

// redactInner hides the secrets of an address that is the value of a parameter: the pages of a login pass the client's request
// on that way.
func (s *secrets) redactInner(value string) string {
	inner, err := url.QueryUnescape(value)
	at := strings.IndexAny(inner, "?#")
	if err != nil || at < 0 {
		return value
	}
	redacted := s.redactAddress(inner[at:])
	if redacted == inner[at:] {
		return value
	}
	return url.QueryEscape(inner[:at] + redacted)
}

// redactUser hides the user and password before the host of an absolute address.
func (s *secrets) redactUser(address string) string {
	scheme, rest, absolute := strings.Cut(address, "://")
	if !absolute || strings.ContainsAny(scheme, "/?#") {
		return address
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return address
	}
	s.learn(rest[:at])
	return scheme + "://" + hidden + rest[at:]
}
