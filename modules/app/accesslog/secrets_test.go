package accesslog

import (
	"net/url"
	"testing"
)

// TestHide hides in other texts what stood in a request: whole, in its parts, and in other spellings.
func TestHide(t *testing.T) {
	const secret = `S3cret"&+ s3cret`
	for text, want := range map[string]string{
		"":                                     "",
		"nothing":                              "nothing",
		"x " + secret + " y":                   "x REDACTED y",
		"?code=" + url.QueryEscape(secret):     "?code=REDACTED",
		url.QueryEscape("?c=parameter%2Fone!"): "%3Fc%3DREDACTED",
		"parameter/one! and parameter%2Fone!":  "REDACTED and REDACTED",
		"abcdefgh.token and Bearer":            "REDACTED and Bearer",
		"cookie-one and cookie-two":            "REDACTED and REDACTED",
		"set-cookie of /api/oauth/callback":    "REDACTED of /api/oauth/callback",
		"a=short":                              "a=short",
		"user:password":                        "REDACTED",
		"parameter/one!-and-more":              "REDACTED",
	} {
		var known secrets
		known.redactAddress("http://user:password@h/?code=" + url.QueryEscape(secret) + "&key=parameter%2Fone!&token=parameter/one!-and-more")
		known.redactValue("Authorization", "Bearer abcdefgh.token")
		known.redactValue("Cookie", `a=short; b=cookie-one; c="cookie-two"`)
		known.redactValue("Set-Cookie", "a=set-cookie; Path=/api/oauth/callback")
		if got := known.hide(text); got != want {
			t.Errorf("%s became %s, not %s", text, got, want)
		}
	}
}
