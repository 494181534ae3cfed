package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// This is the second pass of the conformance suites: a policy that grants a part of the reference server, and the
// results of the suites under it.
const (
	filteredPolicy   = "conformance/filtered.policy.json"
	filteredExpected = "conformance/filtered.expected"
)

// withheld lists the requests of the suites that the policy refuses: method, name, and the argument if the refusal
// depends on it.
var withheld = []string{
	"tools/call __transient_tool_for_list_changed", // which the server adds to its own list
	"tools/call json_schema_2020_12_tool",
	"tools/call test_image_content",
	"tools/call test_input_required_result_multi_round",
	"tools/call test_input_required_result_multiple_inputs",
	"tools/call test_multiple_content_types",
	"tools/call test_reconnection",
	"tools/call test_sampling Test prompt for sampling",
	"tools/call test_trigger_prompt_change",
	"tools/call test_x_mcp_header test-value",
	"resources/read test://static-binary",
	"resources/read test://watched-resource",
	"resources/subscribe test://watched-resource",
	"resources/unsubscribe test://watched-resource",
	"prompts/get __transient_prompt_for_list_changed",
	"prompts/get test_prompt_with_arguments testValue1",
	"prompts/get test_prompt_with_image",
}

// TestConformanceFiltered checks that under a policy that grants a part, the official suites find what we expect: what
// is refused is refused as docs/policies.md says, and everything else is as at the reference server itself. Nothing of
// what is refused reaches that server.
func TestConformanceFiltered(t *testing.T) {
	t.Parallel()
	runs := max(1, conformanceRuns(t)/5)
	tools := conformanceTools(t)
	g := startGateway(t, settings{})
	var rules []map[string]any
	content, err := os.ReadFile(filteredPolicy)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &rules); err != nil {
		t.Fatal(err)
	}
	for _, suite := range []struct{ name, mode, version string }{
		{"legacy", "stateful", "2025-06-18"}, {"2025-11-25", "stateful", "2025-11-25"}, {"2026-07-28", "stateless", "2026-07-28"},
	} {
		t.Run(suite.name, func(t *testing.T) {
			t.Parallel()
			reference := serveReference(t, tools, suite.mode)
			results := t.TempDir()
			direct := filepath.Join(results, "direct")
			runSuite(t, tools, suite.name, reference, direct, "")
			up := recordTraffic(t, reference)
			s := g.bareServer(up.url, nil)
			g.govern(s, rules...)
			for run := range runs {
				out := filepath.Join(results, "run"+strconv.Itoa(run))
				runSuite(t, tools, suite.name, g.url+s.path, out, g.token(alice))
				compareChecks(t, direct, out, filteredExpected, suite.name)
			}
			up.judge(t)
			visible := slices.DeleteFunc(listed(t, reference, "", suite.version), func(what string) bool { return slices.Contains(withheld, what) })
			if diff := cmp.Diff(visible, listed(t, g.url+s.path, g.token(alice), suite.version)); diff != "" {
				t.Errorf("the lists show (-expected +shown):\n%s", diff)
			}
		})
	}
}

// traffic is a server in front of the reference server that keeps the passing messages.
type traffic struct {
	url string

	mu   sync.Mutex
	came map[string]int // how often, by method, name and the argument that a rule reads
}

func recordTraffic(t *testing.T, reference string) *traffic {
	t.Helper()
	target, err := url.Parse(reference)
	if err != nil {
		t.Fatal(err)
	}
	kept := &http.Transport{MaxIdleConnsPerHost: 32}
	t.Cleanup(kept.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, ""
		},
		Transport:     kept,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	u := &traffic{came: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender went away
		}
		u.note(body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	u.url = server.URL + target.Path
	return u
}

func (u *traffic) note(body []byte) {
	var message struct {
		Method string `json:"method"`
		Params struct {
			Name      string `json:"name"`
			URI       string `json:"uri"`
			Arguments struct {
				Prompt, Region, Arg1 string
			} `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &message) != nil {
		return // nothing that is judged: those messages are objects
	}
	p := message.Params
	u.mu.Lock()
	defer u.mu.Unlock()
	u.came[strings.TrimSpace(message.Method+" "+p.Name+p.URI+" "+p.Arguments.Prompt+p.Arguments.Region+p.Arguments.Arg1)]++
}

// judge fails the test for everything withheld that arrived.
func (u *traffic) judge(t *testing.T) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, what := range withheld {
		if n := u.came[what]; n != 0 {
			t.Errorf("%q reached the server %d times", what, n)
		}
	}
	if len(u.came) < len(withheld) {
		t.Errorf("only %v reached the server", u.came)
	}
}

// listed returns the entries that a client of a protocol version finds in the lists of a server, with the methods that
// use them.
func listed(t *testing.T, address, token, version string) (all []string) {
	t.Helper()
	client := connectMCP(t, address, token, version, nil)
	ctx := within(t, callTimeout)
	for tool, err := range client.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "tools/call "+tool.Name)
	}
	for resource, err := range client.Resources(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "resources/read "+resource.URI)
	}
	for template, err := range client.ResourceTemplates(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "resources/templates "+template.URITemplate)
	}
	for prompt, err := range client.Prompts(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "prompts/get "+prompt.Name)
	}
	return all
}
