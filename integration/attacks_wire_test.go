package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// These are the messages that attacks consist of.
const (
	pingMessage = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	echoCall    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	modernCall  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

const bothKinds = "application/json, text/event-stream"

// answering is an upstream that answers every POST with an empty result, and 405 to everything else.
func answering(t testing.TB) *upstream {
	t.Helper()
	return newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answerTo(w, body, "{}")
	})
}

// answerTo answers the request in a body with that result; a body without a request is accepted.
func answerTo(w http.ResponseWriter, body []byte, result string) {
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(body, &request); err == nil && request.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if request.ID == nil {
		request.ID = json.RawMessage("null")
	}
	answerJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":`+string(request.ID)+`,"result":`+result+`}`)
}

// bearerEntry is a directory entry whose users type a bearer token.
func bearerEntry() map[string]any {
	return map[string]any{"provider": "bearer_token", "requires_auth": true}
}

// connectBearer gives the gateway a caller's bearer token for a server.
func (g *gateway) connectBearer(token string, s server, credential string) {
	g.t.Helper()
	g.api(token, http.MethodPost, "/api/servers/"+s.ID+"/connect", map[string]any{"bearer_token": credential})
}

// exchange writes bytes as they are on a connection of their own and returns the answers, until the gateway closes it.
// One of the requests must make it do so.
func (g *gateway) exchange(raw string) []answer {
	g.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	return g.exchangeOn(connection, raw)
}

// exchangeOn does the work of exchange on a connection, which it closes.
func (g *gateway) exchangeOn(connection net.Conn, raw string) []answer {
	g.t.Helper()
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		g.t.Fatal(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(connection, raw) // the gateway may refuse before it has read everything
	}()
	var answers []answer
	reader := bufio.NewReader(connection)
	for {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			if timeout := (net.Error)(nil); errors.As(err, &timeout) && timeout.Timeout() {
				g.t.Fatalf("the connection stays open after %d answers", len(answers))
			}
			break
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		answers = append(answers, answer{status: response.StatusCode, header: response.Header, body: body})
		if err != nil {
			break
		}
	}
	_ = connection.Close()
	<-written
	return answers
}

// try does the work of send for requests whose answer may break off: it returns the received part and the error.
func (g *gateway) try(method, path, token string, body any) (answer, error) {
	g.t.Helper()
	request, err := rig.NewRequest(context.Background(), method, g.url+path, token, body, "Accept", bothKinds)
	if err != nil {
		g.t.Fatal(err)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: content}, err
}

// rawPost returns a POST to a path as bytes; lines holds further header lines, each with its line end.
func (g *gateway) rawPost(path, token, lines, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: %s\r\n%s\r\n%s",
		path, strings.TrimPrefix(g.url, "http://"), token, bothKinds, lines, body)
}

// lengthLine returns the Content-Length line of a body.
func lengthLine(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

// closing returns a request that ends a connection whose other requests leave it open.
func (g *gateway) closing() string {
	return "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
}

// wantNothing ends the test when the upstream received anything.
func (u *upstream) wantNothing(t testing.TB) {
	t.Helper()
	if got := u.bytes(); got != "" {
		t.Fatalf("the upstream received %q", tail(got, 1_000))
	}
}

// forget drops what the upstream has received, for the next case.
func (u *upstream) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = nil
	u.received.Reset()
}

// wantError ends the test unless the answer is that service error.
func (a answer) wantError(t testing.TB, status int, name string) answer {
	t.Helper()
	a.want(t, status)
	var body struct {
		Error, Message string
	}
	a.decode(t, &body)
	if body.Error != name || body.Message == "" {
		t.Fatalf("status %d, %s instead of the error %s", a.status, a.body, name)
	}
	return a
}

// wantConnect ends the test unless the gateway answers a call itself, with the page on which its user connects.
func (a answer) wantConnect(t testing.TB) answer {
	t.Helper()
	if !rig.LeadsToConnect(a.status, a.body) {
		t.Fatalf("status %d, %s instead of the page on which to connect", a.status, a.body)
	}
	return a
}

// wantRPC ends the test unless the answer is a JSON-RPC error of that code, with the id of the request and the service
// error as its data.
func (a answer) wantRPC(t testing.TB, status, code int, id, name string) answer {
	t.Helper()
	a.want(t, status)
	var body struct {
		JSONRPC string `json:"jsonrpc"`
		ID      any    `json:"id"`
		Error   struct {
			Code    int
			Message string
			Data    struct{ Error, Message string }
		}
	}
	a.decode(t, &body)
	if body.JSONRPC != "2.0" || body.Error.Code != code || fmt.Sprint(body.ID) != id || body.Error.Data.Error != name {
		t.Fatalf("%s instead of code %d, id %s, %s", a.body, code, id, name)
	}
	return a
}

// statuses returns the statuses of several answers.
func statuses(answers []answer) []int {
	var all []int
	for _, a := range answers {
		all = append(all, a.status)
	}
	return slices.Clip(all)
}
