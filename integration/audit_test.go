package integration

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// auditRow is an event of the audit log in the API.
type auditRow struct {
	ID              string          `json:"id"`
	Kind            string          `json:"kind"`
	Event           string          `json:"event"`
	UserID          string          `json:"user_id"`
	Client          string          `json:"client"`
	Session         string          `json:"session"`
	ServerID        string          `json:"mcp_server_id"`
	Server          string          `json:"server"`
	Method          string          `json:"method"`
	Tool            string          `json:"tool"`
	Decision        string          `json:"decision"`
	Rule            string          `json:"rule"`
	PolicyID        string          `json:"policy_id"`
	PolicyRevision  int             `json:"policy_revision"`
	ArgumentsDigest string          `json:"arguments_digest"`
	Arguments       json.RawMessage `json:"arguments"`
	Outcome         string          `json:"outcome"`
	DurationMS      float64         `json:"duration_ms"`
	UpstreamStatus  int             `json:"upstream_status"`
	Detail          map[string]any  `json:"detail"`
}

// audit reads a page of the audit log.
func (g *gateway) audit(token string, filter url.Values) (rows []auditRow, total int) {
	g.t.Helper()
	var page struct {
		Data       []auditRow
		Pagination struct{ Total int }
	}
	g.api(token, http.MethodGet, "/api/audit?"+filter.Encode(), nil).decode(g.t, &page)
	return page.Data, page.Pagination.Total
}

// verifyAudit runs durward audit verify on the gateway's directory.
func (g *gateway) verifyAudit() (output string, code int) {
	g.t.Helper()
	output, err := g.run(append([]string{"audit", "verify", "--master-key", "{env.DURWARD_TEST_KEY}"}, g.source()...)...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return output, code
}

func (g *gateway) mustVerifyAudit() {
	g.t.Helper()
	if output, code := g.verifyAudit(); code != 0 || !strings.Contains(output, "the audit log is whole") {
		g.t.Errorf("verifying: status %d\n%s", code, output)
	}
}

func toolCallWith(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// TestAudit checks that an allowed, a denied and an unconnected call, a write, refused ones and a refused token are in
// the log, with what led to them; only an administrator of the organization reads it; it is whole, beside a running
// gateway and after it.
func TestAudit(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "audit {\n sink file sink.ndjson\n sink log\n arguments on\n redact iban\n }"})
	party := newThirdParty(t)
	s := g.bareServer(party.url()+"/open", nil)
	g.govern(s, granting("*"), denying("tools/call:drop"))
	token := g.token(alice)
	session := g.initialize(token, s)
	const arguments = `{"to":"bob","iban":"DE89","nested":[{"Password":"hunter2","amount":1.50}]}`
	g.send(http.MethodPost, s.path, token, toolCallWith("pay", arguments), append(mcpHeader(session), "X-Tracking-Session-Id", "trace-me")...).want(t, http.StatusOK)
	g.mcp(token, s, session, toolCallWith("drop", `{}`)).want(t, http.StatusOK)
	g.send(http.MethodPost, s.path, "not.a.token", toolCallWith("pay", "{}")).want(t, http.StatusUnauthorized)
	g.send(http.MethodDelete, "/api/servers/"+s.ID, token, nil).want(t, http.StatusForbidden)
	g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_secret": "a-secret-of-a-client", "client_id": "some-client-id"})

	rows, _ := g.audit(g.token(admin), url.Values{"tool": {"pay"}, "kind": {"call"}})
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	sum := sha256.Sum256([]byte(arguments))
	paid := rows[0]
	if paid.Decision != "allow" || paid.Outcome != "ok" || paid.UpstreamStatus != 200 || paid.DurationMS <= 0 || paid.Rule == "" || paid.PolicyRevision != 1 ||
		paid.PolicyID == "" || paid.Session != "trace-me" || paid.Client != "test-client" || paid.Server != s.Slug || paid.ServerID != s.ID ||
		paid.Method != "tools/call" || paid.ArgumentsDigest != hex.EncodeToString(sum[:]) || paid.UserID == "" {
		t.Errorf("%+v", paid)
	}
	const kept = `{"iban":"REDACTED","nested":[{"Password":"REDACTED","amount":1.50}],"to":"bob"}`
	if string(paid.Arguments) != kept {
		t.Errorf("kept %s", paid.Arguments)
	}
	if rows, _ := g.audit(g.token(admin), url.Values{"decision": {"deny"}}); len(rows) != 1 || rows[0].Tool != "drop" || rows[0].Outcome != "denied" || rows[0].Rule == "" {
		t.Errorf("%+v", rows)
	}
	if rows, _ := g.audit(g.token(admin), url.Values{"kind": {"admin"}, "outcome": {"refused"}}); len(rows) != 1 || rows[0].Event != "server.delete" || rows[0].Detail["status"] != 403.0 {
		t.Errorf("%+v", rows)
	}
	rows, _ = g.audit(g.token(admin), url.Values{"kind": {"admin"}})
	if len(rows) < 5 || rows[0].Event != "server.update" || fmt.Sprint(rows[0].Detail["fields"]) != "[client_id client_secret]" {
		t.Errorf("%+v", rows)
	}
	first, total := g.audit(g.token(admin), url.Values{"limit": {"1"}})
	second, _ := g.audit(g.token(admin), url.Values{"limit": {"1"}, "page": {"2"}})
	if total < 8 || len(first) != 1 || len(second) != 1 || first[0].ID == second[0].ID {
		t.Errorf("of %d: %+v, %+v", total, first, second)
	}
	if rows, _ := g.audit(g.token(admin), url.Values{"to": {"2020-01-01T00:00:00Z"}}); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
	g.send(http.MethodGet, "/api/audit?from=yesterday&user_id=x", g.token(admin), nil).want(t, http.StatusUnprocessableEntity)
	g.send(http.MethodGet, "/api/audit", token, nil).want(t, http.StatusForbidden)
	g.send(http.MethodGet, "/api/audit/export", token, nil).want(t, http.StatusForbidden)
	// O01: another organization sees nothing of it.
	stranger := g.token(admin.with(claims{"org_id": "0190ffff-0000-7000-8000-000000000077", "sub": "0190ffff-0000-7000-8000-000000000078"}))
	if rows, total := g.audit(stranger, nil); len(rows) > 0 || total > 0 {
		t.Errorf("another organization's log: %+v", rows)
	}
	export := g.api(g.token(admin), http.MethodGet, "/api/audit/export", nil)
	chains := checkChains(t, export.body)
	if chains < 2 || bytes.Contains(export.body, []byte("a-secret-of-a-client")) || bytes.Contains(export.body, []byte("hunter2")) {
		t.Errorf("%d chains", chains)
	}
	g.mustVerifyAudit()
	g.stop(t)
	g.mustVerifyAudit()
	sink, err := os.ReadFile(filepath.Join(g.directory, "sink.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"token.refused"`, `"tool":"pay"`, `"call":"` + paid.ID + `"`, `"server.update"`} {
		if !bytes.Contains(sink, []byte(want)) {
			t.Errorf("%s is not in the file", want)
		}
	}
	logged := slices.ContainsFunc(strings.Split(g.output.String(), "\n"), func(line string) bool {
		return strings.Contains(line, `"logger":"durward.audit"`) && strings.Contains(line, `"tool":"pay"`)
	})
	if !logged {
		t.Error("Caddy's logger has no record of the call")
	}
	everything, err := g.run(append([]string{"audit", "export"}, g.source()...)...)
	if err != nil || checkChains(t, []byte(everything)) < chains+1 || !strings.Contains(everything, `"token.refused"`) {
		t.Errorf("%v: %s", err, tail(everything, 1_000))
	}
	// Somebody edits the log in the database.
	g.tamper(`"event":"server.update"`, `"event":"server.updatf"`)
	if output, code := g.verifyAudit(); code != 2 || !strings.Contains(output, "the record or its hash was changed") ||
		!strings.Contains(output, "\nError: the audit log is not what was written: ") || strings.Contains(output, `"level"`) {
		t.Errorf("status %d\n%s", code, output)
	}
}

// checkChains computes the hashes of exported records as docs/audit-format.md says, and returns the number of chains.
func checkChains(t *testing.T, exported []byte) int {
	t.Helper()
	type head struct {
		sequence int64
		hash     string
	}
	heads := make(map[string]head)
	lines := bufio.NewScanner(bytes.NewReader(exported))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Organization string `json:"organization_id"`
			Node         string
			Segment      string
			Sequence     int64
			Previous     string
			Hash         string
			Entry        json.RawMessage
			Text         string
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		name := r.Organization + " " + r.Node + " " + r.Segment
		before, known := heads[name]
		if !known {
			before.hash = strings.Repeat("0", 64)
		}
		if r.Sequence != before.sequence+1 || r.Previous != before.hash {
			t.Errorf("%s: record %d follows %d", name, r.Sequence, before.sequence)
		}
		previous, err := hex.DecodeString(r.Previous)
		if err != nil {
			t.Fatal(err)
		}
		chain := slices.Concat(field(r.Organization), field(r.Node), field(r.Segment))
		hashed := slices.Concat(previous, chain, field(string(r.Entry)), bigEndian(int(r.Sequence)))
		if r.Text != "" {
			if r.Sequence == 1 {
				start := sha256.Sum256(append([]byte("durward audit chain\x00"), chain...))
				previous = start[:]
			}
			hashed = slices.Concat(previous, []byte{2}, bigEndian(int(r.Sequence)), []byte(r.Text))
		}
		if at := strings.LastIndex(r.Text, `,"0":`); strings.HasPrefix(r.Text, `{"I":"`) && at > 0 {
			shared := sha256.Sum256([]byte(r.Text[at+len(`,"0":`) : len(r.Text)-1]))
			hashed = slices.Concat(previous, []byte{3}, bigEndian(int(r.Sequence)), shared[:], []byte(r.Text[:at]))
		}
		if sum := sha256.Sum256(hashed); hex.EncodeToString(sum[:]) != r.Hash {
			t.Errorf("%s: the hash of record %d is another", name, r.Sequence)
		}
		heads[name] = head{r.Sequence, r.Hash}
	}
	return len(heads)
}

func field(text string) []byte { return append(bigEndian(len(text)), text...) }

func bigEndian(n int) []byte {
	return []byte{byte(n >> 56), byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// TestAuditCrash checks that every call that was answered, or reached the third party, is in the log after kill -9; the
// log is whole after the restart (Z-F01, Z-X01).
func TestAuditCrash(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	party := newThirdParty(t)
	s := g.createServer(party.url()+"/open", nil)
	token := g.token(alice)
	session := g.initialize(token, s)
	var mu sync.Mutex
	answered := make(map[string]bool)
	for cycle := range 4 {
		stop := make(chan struct{})
		enough := make(chan struct{}, 1<<16)
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				client := newClient(t)
				for n := 0; ; n++ {
					tag := fmt.Sprintf("c%d-w%d-n%d", cycle, worker, n)
					request, err := http.NewRequest(http.MethodPost, g.url+s.path, strings.NewReader(toolCallWith("echo", `{"n":1}`)))
					if err != nil {
						return
					}
					header := append(mcpHeader(session), "Authorization", "Bearer "+token, "Content-Type", "application/json", "X-Tag-Session-Id", tag, "Baggage", tag)
					for i := 0; i < len(header); i += 2 {
						request.Header.Set(header[i], header[i+1])
					}
					response, err := client.Do(request)
					if err != nil {
						return
					}
					_, err = io.ReadAll(response.Body)
					_ = response.Body.Close() // read whole, or its error is known
					if err != nil || response.StatusCode != http.StatusOK {
						return
					}
					mu.Lock()
					answered[tag] = true
					mu.Unlock()
					enough <- struct{}{}
				}
			})
		}
		go func() { all.Wait(); close(stop) }()
		for range 100 + rand.IntN(200) {
			select {
			case <-enough:
			case <-stop:
				t.Fatal("the gateway does not answer")
			}
		}
		g.kill()
		<-stop
		g.restart()
		g.mustVerifyAudit()
	}
	everything, err := g.run(append([]string{"audit", "export"}, g.source()...)...)
	if err != nil {
		t.Fatal(err)
	}
	for tag := range answered {
		if !strings.Contains(everything, `"session":"`+tag+`"`) {
			t.Errorf("the call %s was answered and is not recorded", tag)
		}
	}
	party.mu.Lock()
	defer party.mu.Unlock()
	arrived := 0
	for _, header := range party.seen {
		tag := header.Get("Baggage")
		if tag == "" {
			continue // no call of these
		}
		if arrived++; !strings.Contains(everything, `"session":"`+tag+`"`) {
			t.Errorf("the call %s reached the third party and is not recorded", tag)
		}
	}
	if arrived < len(answered) {
		t.Errorf("%d calls reached the third party, and %d were answered", arrived, len(answered))
	}
	t.Logf("%d calls answered, %d reached the third party", len(answered), arrived)
}
