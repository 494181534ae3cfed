package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/strictjson"
)

const (
	clientInfo = `{"name":"durward","version":"1"}`
	requestID  = "1"
	// maxEvents bounds the events that are read until the one with the answer.
	maxEvents = 100
)

var jsonLimits = strictjson.Limits{MaxBytes: maxAnswer, MaxDepth: 64}

// reply holds a server's answer to a message.
type reply struct {
	status  int
	header  http.Header
	message strictjson.Value // the JSON-RPC answer; zero: there is none
	found   bool
	page    bool // it is HTML
	json    bool // it is JSON, but no JSON-RPC answer
}

// ask sends a request and reads its answer. params are the members of its params.
func (s *probing) ask(ctx context.Context, method, params string) (reply, error) {
	if jsonrpc.Modern(s.version) {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":` + quoted(s.version) + `,"io.modelcontextprotocol/clientInfo":` + clientInfo +
			`,"io.modelcontextprotocol/clientCapabilities":{}}`
		params = strings.Trim(params+","+meta, ",")
	}
	body := `{"jsonrpc":"2.0","id":` + requestID + `,"method":"` + method + `","params":{` + params + `}}`
	response, err := s.send(ctx, http.MethodPost, method, body)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	return readReply(response)
}

// notify sends a notification. Its result does not matter.
func (s *probing) notify(ctx context.Context, method string) {
	if response, err := s.send(ctx, http.MethodPost, method, `{"jsonrpc":"2.0","method":"`+method+`"}`); err == nil {
		_ = response.Body.Close()
	}
}

// leave ends the session, so that no trace of the probe is left at the server.
func (s *probing) leave(ctx context.Context) {
	if s.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	if response, err := s.send(ctx, http.MethodDelete, "", ""); err == nil {
		_ = response.Body.Close()
	}
}

func (s *probing) send(ctx context.Context, verb, method, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, verb, s.url.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "durward")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if verb == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.version != "" {
		r.Header.Set(jsonrpc.HeaderProtocolVersion, s.version)
	}
	if jsonrpc.Modern(s.version) {
		r.Header.Set(jsonrpc.HeaderMethod, method)
	}
	if s.session != "" {
		r.Header.Set(jsonrpc.HeaderSessionID, s.session)
	}
	if err := s.authorize(r); err != nil {
		return nil, err
	}
	return s.client.Do(r)
}

// authorize puts the user's credential on a request.
func (s *probing) authorize(r *http.Request) error {
	if s.target.Apply == nil {
		return nil
	}
	carrier := http1.Request{Method: r.Method, URL: r.URL}
	if err := s.target.Apply(&carrier); err != nil {
		return err
	}
	r.URL = carrier.URL
	for _, f := range carrier.Fields {
		r.Header.Set(f.Name, f.Value)
	}
	return nil
}

// readReply reads an answer up to the message that answers the request.
func readReply(response *http.Response) (reply, error) {
	a := reply{status: response.StatusCode, header: response.Header}
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case kind == "text/event-stream":
		return a.fromEvents(response.Body)
	case kind == "text/html", kind == "application/xhtml+xml":
		a.page = true
		return a, nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return a, err
	}
	a.take(body)
	if !a.found {
		a.json = strictjson.Check(body, jsonLimits) == nil
		a.page = bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(body)), []byte("<!doctype html"))
	}
	return a, nil
}

func (a reply) fromEvents(body io.Reader) (reply, error) {
	events := sse.NewReader(body, maxAnswer)
	for range maxEvents {
		event, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return a, nil
		case err != nil:
			return a, err
		}
		if event.HasData {
			a.take(event.Data)
		}
		if a.found {
			return a, nil
		}
	}
	return a, nil
}

// take keeps a message when it answers the request.
func (a *reply) take(text []byte) {
	v, err := strictjson.Parse(bytes.Clone(text), jsonLimits)
	if err != nil || v.Kind() != strictjson.Object {
		return
	}
	if version, ok := v.Get("jsonrpc"); !ok || version.Kind() != strictjson.String || version.Str() != "2.0" {
		return
	}
	_, result := v.Get("result")
	_, failure := v.Get("error")
	if result || failure {
		a.message, a.found = v, true
	}
}

// result returns a member of the answer's result.
func (a *reply) result(name string) (strictjson.Value, bool) {
	if !a.found {
		return strictjson.Value{}, false
	}
	result, ok := a.message.Get("result")
	if !ok || result.Kind() != strictjson.Object {
		return strictjson.Value{}, false
	}
	return result.Get(name)
}

// text returns a member of the result that is a string; "" when it is none.
func (a *reply) text(name string) string {
	if v, ok := a.result(name); ok && v.Kind() == strictjson.String {
		return v.Str()
	}
	return ""
}

func (a *reply) texts(name string) []string {
	v, ok := a.result(name)
	if !ok || v.Kind() != strictjson.Array {
		return nil
	}
	var all []string
	for _, e := range v.Elems() {
		if e.Kind() == strictjson.String {
			all = append(all, e.Str())
		}
	}
	return all
}

func (a *reply) length(name string) (int, bool) {
	v, ok := a.result(name)
	if !ok || v.Kind() != strictjson.Array {
		return 0, false
	}
	return v.Len(), true
}

// has reports whether a member of the result is an object that has a given member.
func (a *reply) has(name, member string) bool {
	v, ok := a.result(name)
	if !ok || v.Kind() != strictjson.Object {
		return false
	}
	_, ok = v.Get(member)
	return ok
}

// code returns the code of the answer's error; "" when it has none.
func (a *reply) code() string {
	if !a.found {
		return ""
	}
	failure, ok := a.message.Get("error")
	if !ok || failure.Kind() != strictjson.Object {
		return ""
	}
	code, ok := failure.Get("code")
	if !ok || code.Kind() != strictjson.Number {
		return ""
	}
	if _, err := strconv.Atoi(code.Num()); err != nil {
		return ""
	}
	return code.Num()
}

func (a *reply) tells4xx() bool { return a.status >= 400 && a.status < 500 }

func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a text can always be encoded
	return string(encoded)
}
