package accesslog

import "testing"

func TestRedactAddress(t *testing.T) {
	for address, want := range map[string]string{
		"":                                  "",
		"/mcp/demo":                         "/mcp/demo",
		"/a?code=x&state=y&iss=z":           "/a?code=REDACTED&state=REDACTED&iss=z",
		"/a?x=1&code=x":                     "/a?x=1&code=REDACTED",
		"/a?CODE=x&Access-Token=y":          "/a?CODE=REDACTED&Access-Token=REDACTED",
		"/a?c%6Fde=x&access%5Ftoken=y":      "/a?c%6Fde=REDACTED&access%5Ftoken=REDACTED",
		"/a?%zz=x":                          "/a?%zz=REDACTED",
		"/login?return=%2Fa%23id_token%3Dx": "/login?return=%2Fa%23id_token%3DREDACTED",
		"/login?return=%2Fa%3Fstate%3Dx%26y%3D1&b=2": "/login?return=%2Fa%3Fstate%3DREDACTED%26y%3D1&b=2",
		"/a?code":                            "/a?code",
		"/a?code=":                           "/a?code=",
		"/a?code=x;state=y":                  "/a?code=REDACTED;state=REDACTED",
		"/a?code=a=b":                        "/a?code=REDACTED",
		"/a?code=x?state=y":                  "/a?code=REDACTED?state=REDACTED",
		"/a#access_token=x&token_type=b":     "/a#access_token=REDACTED&token_type=REDACTED",
		"/a?limit=5#id_token=x":              "/a?limit=5#id_token=REDACTED",
		"/a?error_description=alice&error=e": "/a?error_description=REDACTED&error=e",
		"/a?id_token_hint=x&api_key=y&key=z": "/a?id_token_hint=REDACTED&api_key=REDACTED&key=REDACTED",
		"/a?client_assertion=x&client_id=y":  "/a?client_assertion=REDACTED&client_id=y",
		"/a?cursor=x&server=y":               "/a?cursor=x&server=y",
		"http://u:p@h/a?code=x":              "http://REDACTED@h/a?code=REDACTED",
		"http://u:p@x@h":                     "http://REDACTED@h",
		"http://h/a@b?at=c@d":                "http://h/a@b?at=c@d",
		"/a?to=http://u:p@h/":                "/a?to=http://u:p@h/",
		"?":                                  "?",
		"?&&code=x&":                         "?&&code=REDACTED&",
	} {
		if got := new(secrets).redactAddress(address); got != want {
			t.Errorf("%s became %s, not %s", address, got, want)
		}
	}
}
