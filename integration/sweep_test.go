package integration

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sweep knows all secrets of a run and finds them, however they are written, where they may not be.
type sweep struct {
	mu    sync.Mutex
	known map[string]string // kind by secret
	// traces are the ways to write the secrets, by their first bytes.
	traces  map[[8]byte][]trace
	answers []sentAnswer
}

// trace is a part of a secret, written in some way.
type trace struct {
	kind, way string
	text      []byte
}

// sentAnswer is the answer of the gateway to a request, with the kinds of secrets that it may hold.
type sentAnswer struct {
	request string
	whole   []byte
	meant   []string
}

// lastMeans notes that the last answer may hold secrets of a kind.
func (s *sweep) lastMeans(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := &s.answers[len(s.answers)-1]
	last.meant = append(last.meant, kind)
}

func newSweep() *sweep { return &sweep{known: map[string]string{}, traces: map[[8]byte][]trace{}} }

// awkward are visible characters that addresses, JSON and headers treat each in its own way.
const awkward = `"<&%+/\~`

// draw makes a secret and remembers it.
func (s *sweep) draw(kind string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	secret := make([]byte, 40)
	for i := range secret {
		secret[i] = letters[rand.IntN(len(letters))]
	}
	drawn := string(secret[:20]) + awkward + string(secret[20:])
	if kind == "authorization code" || kind == "upstream session id" { // they have a narrower alphabet
		drawn = string(secret)
	}
	s.add(kind, drawn)
	return drawn
}

// add remembers a secret.
func (s *sweep) add(kind, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.known[secret]; known || secret == "" {
		return
	}
	s.known[secret] = kind
	for way, text := range writings(secret) {
		first := [8]byte(text)
		s.traces[first] = append(s.traces[first], trace{kind, way, text})
	}
}

// writings returns the ways to write a secret. Its beginning and its end are searched for: cut values count too, and
// their characters are written alike in addresses and in JSON.
func writings(secret string) map[string][]byte {
	all := map[string][]byte{}
	part := min(20, len(secret)/2)
	for name, text := range map[string]string{"beginning": secret[:part], "end": secret[len(secret)-part:]} {
		all[name] = []byte(text)
		all[name+", hex"] = []byte(hex.EncodeToString([]byte(text)))
		all[name+", HEX"] = []byte(strings.ToUpper(hex.EncodeToString([]byte(text))))
		for offset := range 3 {
			all[fmt.Sprint(name, ", base64 ", offset)] = base64At(base64.RawStdEncoding, text, offset)
			all[fmt.Sprint(name, ", base64url ", offset)] = base64At(base64.RawURLEncoding, text, offset)
		}
	}
	return all
}

// base64At returns the form of a secret inside the base64 of a longer text, in which it begins offset bytes after a
// multiple of three. Characters that depend on its neighbours are left out.
func base64At(encoding *base64.Encoding, secret string, offset int) []byte {
	encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
	from, to := []int{0, 2, 3}[offset], len(encoded)
	if (offset+len(secret))%3 != 0 {
		to--
	}
	return []byte(encoded[from:to])
}

// find lists the secrets in a text, except for those of the kinds that are meant to be there, each as "kind (way)".
func (s *sweep) find(text []byte, meant ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]bool{}
	for i := range max(0, len(text)-7) {
		for _, t := range s.traces[[8]byte(text[i:])] {
			if bytes.HasPrefix(text[i:], t.text) && !slices.Contains(meant, t.kind) {
				found[t.kind+" ("+t.way+")"] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// kinds lists the kinds of secrets that were drawn.
func (s *sweep) kinds() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(s.known)))
}

// recorder sends requests, keeps the answers and learns the callers' tokens.
type recorder struct {
	sweep *sweep
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The whole answer is read before it is passed on, unless it is a stream.
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer "); ok {
		r.sweep.add("caller's token", token[strings.LastIndexByte(token, '.')+1:]) // its signature: the rest is no secret
	}
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	var whole bytes.Buffer
	_ = response.Header.Write(&whole)
	a := sentAnswer{request: request.Method + " " + request.URL.Path}
	if strings.HasSuffix(a.request, "/connect") || strings.HasPrefix(a.request, "POST /mcp/") {
		a.meant = []string{"state"} // it is part of auth_url, and of where a lost connection is made anew
	}
	if strings.HasSuffix(a.request, "/api/oauth/callback") {
		a.meant = []string{"undo token"} // it is part of the page
	}
	if response.Header.Get("Content-Type") == "text/event-stream" {
		response.Body = &recordedBody{ReadCloser: response.Body, recorder: r, answer: a, whole: whole}
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	whole.Write(body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	a.whole = whole.Bytes()
	r.keep(a)
	return response, nil
}

func (r *recorder) keep(a sentAnswer) {
	r.sweep.mu.Lock()
	defer r.sweep.mu.Unlock()
	r.sweep.answers = append(r.sweep.answers, a)
}

// recordedBody keeps a stream when it is closed.
type recordedBody struct {
	io.ReadCloser
	recorder *recorder
	answer   sentAnswer
	whole    bytes.Buffer
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.whole.Write(p[:n])
	return n, err
}

func (b *recordedBody) Close() error {
	b.answer.whole = b.whole.Bytes()
	b.recorder.keep(b.answer)
	return b.ReadCloser.Close()
}

// TestSweepFinds checks that the sweep finds a secret however it is written, and nothing where there is none.
func TestSweepFinds(t *testing.T) {
	s := newSweep()
	secret := s.draw("secret")
	quoted, _ := json.Marshal(map[string]string{"v": "x" + secret})
	var readable bytes.Buffer
	encoder := json.NewEncoder(&readable)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode("y" + secret)
	texts := map[string]string{
		"raw": "a" + secret + "b", "JSON for HTML": string(quoted), "JSON": readable.String(), "hex": fmt.Sprintf("%x", "q"+secret),
		"HEX": fmt.Sprintf("%X", "q"+secret), "query": url.Values{"v": {secret}}.Encode(), "path": (&url.URL{Path: "/" + secret}).EscapedPath(),
		"cut at the end": secret[:28], "cut at the beginning": secret[20:],
	}
	for before := range 3 {
		for after := range 3 {
			padded := []byte(strings.Repeat("-", before) + secret + strings.Repeat("-", after))
			texts[fmt.Sprintf("base64 %d %d", before, after)] = base64.StdEncoding.EncodeToString(padded)
			texts[fmt.Sprintf("base64url %d %d", before, after)] = base64.RawURLEncoding.EncodeToString(padded)
		}
	}
	for way, text := range texts {
		if found := s.find([]byte("noise before\n" + text + "\nnoise after")); len(found) == 0 {
			t.Errorf("the secret is not found in %s: %s", way, text)
		}
	}
	if found := s.find([]byte(newSweep().draw("other"))); len(found) != 0 {
		t.Errorf("found %v where there is none", found)
	}
	if found := s.find([]byte(secret), "secret"); len(found) != 0 {
		t.Errorf("found %v where it is meant to be", found)
	}
}
