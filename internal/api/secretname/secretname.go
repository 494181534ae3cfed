// Package secretname tells by their names which members of a text hold secrets.
package secretname

import (
	"slices"
	"strings"
	"unicode"
)

// names lists members that hold secrets in any place, as Plain writes them.
var names = []string{
	"authorization", "password", "passwd", "secret", "clientsecret", "token", "accesstoken", "refreshtoken", "apikey",
	"privatekey", "credential", "cookie",
}

// endings lists the ends of secrets' names in requests to the API. In arguments of tools an issue has a key, and an
// answer a code.
var endings = append(slices.Clone(names), "code", "key", "passphrase", "pwd", "verifier", "assertion")

// Plain returns one spelling for all ways to write a name: access_token, accessToken and Access-Token are one.
func Plain(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || unicode.IsSpace(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// Is reports whether a plain name is that of a secret.
func Is(plain string) bool { return slices.Contains(names, plain) }

// Like reports whether a name, however it is written, ends like a secret's: github_token and X-Api-Keys do. A name
// such as max_tokens does not: it counts a model's tokens.
func Like(name string) bool {
	plain := Plain(name)
	if one, several := strings.CutSuffix(plain, "s"); several && (plain == "tokens" || !strings.HasSuffix(plain, "tokens")) {
		plain = one
	}
	return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(plain, ending) })
}

// Within reports whether a text mentions a secret's name, as JSON, forms and headers may.
func Within(text string) bool {
	plain := Plain(text)
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(plain, name) })
}
