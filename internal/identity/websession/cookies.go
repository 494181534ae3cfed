package websession

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// These are the names of the gateway's cookies, without the prefix or port that name adds.
const (
	CookieSession = "durward"         // the user who is logged in
	CookieLogin   = "durward-login"   // a login that has begun
	CookieClient  = "durward-client"  // a login that waits for its user to agree to a client
	CookieHeld    = "durward-connect" // an account that is connected once its user has logged in
)

// Cookies sets and reads the gateway's cookies.
type Cookies struct {
	// PublicURL is the gateway's address, without a slash at the end.
	PublicURL string
}

// name returns the name of a cookie in the browser. Browsers take a cookie of the prefix __Host- only from the
// very host that it goes to, over https, for all paths: no neighbouring site can plant one (RFC 6265bis section
// 4.1.3.2). Without https, on a developer's own machine, the port keeps the gateways of one host apart.
func (c Cookies) name(name string) string {
	if c.secure() {
		return "__Host-" + name
	}
	if u, err := url.Parse(c.PublicURL); err == nil && u.Port() != "" {
		name += "-" + u.Port()
	}
	return name
}

func (c Cookies) secure() bool { return strings.HasPrefix(c.PublicURL, "https://") }

// Set sets a cookie that no script reads and no other site's form sends.
func (c Cookies) Set(w http.ResponseWriter, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever it can be: browsers refuse it over plain http, which only loopback has
		Name: c.name(name), Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, Secure: c.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// maxAtOnce is the number of cookies of one kind that a browser keeps for what it does at one time. Each has up to 4 KiB,
// and servers in front of the gateway limit all of them together.
const maxAtOnce = 3

// NameOf returns the name of the cookie of a kind for one of several things that a browser does at one time, such as
// logins in two tabs. key may be anything.
func NameOf(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return kind + "." + hex.EncodeToString(sum[:8])
}

// SetOne sets the cookie of a kind for a key. When the browser has too many others of that kind, it loses one of them.
func (c Cookies) SetOne(w http.ResponseWriter, r *http.Request, kind, key, value string, age time.Duration) {
	own, others := NameOf(kind, key), 0
	begin, end, _ := strings.Cut(c.name(kind+".\x00"), "\x00")
	for _, cookie := range r.Cookies() {
		if !strings.HasPrefix(cookie.Name, begin) || !strings.HasSuffix(cookie.Name, end) {
			continue
		}
		other := kind + "." + strings.TrimSuffix(strings.TrimPrefix(cookie.Name, begin), end)
		if other == own {
			continue
		}
		if others++; others >= maxAtOnce {
			c.Drop(w, other)
		}
	}
	c.Set(w, own, value, age)
}

// Drop takes a cookie out of the browser.
func (c Cookies) Drop(w http.ResponseWriter, name string) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // as in Set
		Name: c.name(name), Path: "/", MaxAge: -1, HttpOnly: true, Secure: c.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// Value returns the value of a cookie; "" when there is none, or when there are several of that name: one of them was
// planted.
func (c Cookies) Value(r *http.Request, name string) string {
	found := r.CookiesNamed(c.name(name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}
