package integration

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// demoScreens are the screens of an organization that list something. Refused tokens and jobs are kept in no month of data.
var demoScreens = []string{
	"/console/organization", "/console/organization/tools", "/console/organization/servers", "/console/organization/servers/wiki", "/console/organization/servers/wiki?tab=tools",
	"/console/organization/servers/payments?tab=connections", "/console/organization/servers/wiki?tab=policies", "/console/organization/policies", "/console/organization/agents",
	"/console/organization/people", "/console/organization/audit", "/console/organization/audit?decision=deny", "/console/organization/audit?kind=approval",
	"/console/organization/audit?kind=credential", "/console/organization/audit?kind=admin", "/console/organization/audit?kind=login",
	"/console/organization/models", "/console/organization/models?tab=smart", "/console/organization/models?tab=providers", "/console/organization/limits",
	"/console/organization/budgets", "/console/organization/usage?days=30", "/console/organization/usage?of=requests&days=7", "/console/organization/keys", "/console/approvals?tab=others",
}

// demoScreensOfAlice are those of a user.
var demoScreensOfAlice = []string{
	"/console", "/console/servers", "/console/servers/wiki?tab=use", "/console/servers/wiki?tab=calls", "/console/approvals", "/console/approvals?tab=decided", "/console/activity",
	"/console/activity?decision=deny", "/console/activity?decision=ask", "/console/keys",
}

// demoCounts holds the numbers of what a gateway has, by address.
type demoCounts map[string]int

// TestDevDemoData checks that --demo-data shows something on every screen that lists something, once: a second start adds
// nothing, and goes on saying that the data is made. What it made is consistent: the policies would decide the same again, the
// books agree with the audit log, and the log can be verified.
func TestDevDemoData(t *testing.T) {
	t.Parallel()
	home := newDevHome(t)
	d := home.start(t, "--demo-data")
	from := url.QueryEscape(time.Now().AddDate(0, 0, -40).UTC().Format(time.RFC3339))
	first := d.countDemo(t, from)
	for what, n := range first {
		if n == 0 {
			t.Errorf("%s is empty", what)
		}
	}
	d.checkDemo(t, from)
	l := startLooker(t, d.url)
	for user, screens := range map[string][]string{"admin@example.test": demoScreens, clientUser: demoScreensOfAlice} {
		l.do("login", "user", user, "path", "/console/keys")
		for _, path := range screens {
			l.do("screen", "path", path, "scheme", "light", "quick", os.Getenv("DURWARD_CONSOLE") != "all")
			l.do("filled")
		}
	}
	l.do("until", "text", "durward with demo data")
	if code := d.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	d = home.start(t)
	if diff := cmp.Diff(first, d.countDemo(t, from)); diff != "" {
		t.Errorf("after a second start (-first +second):\n%s", diff)
	}
	if page := d.logsIn(t, "/console").get(t, "/console"); !strings.Contains(page, "durward with demo data") {
		t.Errorf("after a second start nothing says that the data is made: %s", page)
	}
	if code := d.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// demoLists are lists of the administrator's, each with a name for the member that has its number.
var demoLists = map[string]string{
	"/api/servers": "", "/api/server-directory?search=demo": "", "/api/agents": "", "/api/users?limit=100": "data", "/api/v2/policies?status=ACTIVE": "", "/api/v2/policies?status=DRAFT": "",
	"/api/v2/policies?status=INACTIVE": "", "/api/tools?state=changed": "data", "/api/audit?kind=call&decision=allow": "", "/api/audit?kind=call&tool=medium": "",
	"/api/audit?kind=approval": "", "/api/audit?decision=deny": "", "/api/llm-gateway/admin/api-keys": "array", "/api/llm-gateway/admin/rate-limits": "array",
	"/api/llm-gateway/admin/budgets": "array", "/api/llm-gateway/admin/model-mappings": "array", "/api/llm-gateway/admin/smart-models": "array",
}

// countDemo counts what the administrator sees since a time.
func (d *dev) countDemo(t *testing.T, from string) demoCounts {
	t.Helper()
	admin, counts := d.tokenOf(t, "admin@example.test"), demoCounts{}
	for path, kind := range demoLists {
		asked := path
		if strings.HasPrefix(path, "/api/audit?") {
			asked += "&from=" + from
		}
		status, body := d.api(t, admin, http.MethodGet, asked)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		var list []any
		var page struct {
			Data       []any
			Pagination struct{ Total int }
		}
		err := json.Unmarshal([]byte(body), &page)
		if kind == "array" {
			err = json.Unmarshal([]byte(body), &list)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		counts[path] = max(page.Pagination.Total, len(list))
		if kind == "data" {
			counts[path] = len(page.Data)
		}
	}
	return counts
}

// checkDemo checks that the gateway's own parts agree about the data.
func (d *dev) checkDemo(t *testing.T, from string) {
	t.Helper()
	admin := d.tokenOf(t, "admin@example.test")
	var sums struct {
		Data []struct{ Requests int }
	}
	status, body := d.api(t, admin, http.MethodGet, "/api/llm-gateway/admin/usage?from="+from)
	if err := json.Unmarshal([]byte(body), &sums); err != nil || status != http.StatusOK || len(sums.Data) == 0 {
		t.Fatalf("usage: %d %s: %v", status, body, err)
	}
	var page struct {
		Data       []struct{ Detail map[string]any }
		Pagination struct{ Total int }
	}
	recorded := 0
	for _, alias := range []string{"small", "medium", "large", "embed", "weekly"} {
		_, body = d.api(t, admin, http.MethodGet, "/api/audit?kind=call&outcome=ok&from="+from+"&tool="+alias)
		if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Data) == 0 || page.Data[0].Detail["demo_data"] != true {
			t.Fatalf("the calls of %s: %v %s", alias, err, body)
		}
		recorded += page.Pagination.Total
	}
	if recorded != sums.Data[0].Requests {
		t.Errorf("the books have %d requests, and the audit log %d", sums.Data[0].Requests, recorded)
	}
	for _, policy := range d.policyRoutes(t) {
		id := policy[strings.LastIndexByte(policy, '/')+1:]
		_, body := d.api(t, admin, http.MethodGet, "/api/v2/policies/"+id)
		active := strings.Contains(body, `"status":"ACTIVE"`)
		status, body := d.asked(t, admin, http.MethodPost, "/api/v2/policies/"+id+"/replay", `{}`)
		var job struct{ ID string }
		if err := json.Unmarshal([]byte(body), &job); err != nil || status != http.StatusCreated {
			t.Fatalf("replaying %s: %d %s: %v", id, status, body, err)
		}
		d.process.poll(t, "the end of the replay", func() bool {
			_, body = d.api(t, admin, http.MethodGet, "/api/jobs/"+job.ID)
			return strings.Contains(body, `"state":"done"`)
		})
		if active && !strings.Contains(body, `"newly_denied":0,"newly_allowed":0,"newly_asking":0`) {
			t.Errorf("the policy %s would decide otherwise today: %s", id, body)
		}
	}
	key, err := os.ReadFile(d.home.file("data", "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	verify := exec.CommandContext(t.Context(), durward(t), "audit", "verify", "--data", d.home.file("data"), "--master-key", "{env.DURWARD_TEST_KEY}")
	verify.Env = append(d.home.environment(), "DURWARD_TEST_KEY="+strings.TrimSpace(string(key)))
	if output, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(output), "the audit log is whole") {
		t.Errorf("verifying: %v\n%s", err, output)
	}
}

// TestScreenshots makes the pictures of the README. `make screenshots` keeps them, in the directory DURWARD_SCREENSHOTS.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	directory := os.Getenv("DURWARD_SCREENSHOTS")
	if directory == "" {
		directory = t.TempDir()
	}
	d := newDevHome(t).start(t, "--demo-data")
	l := startLooker(t, d.url)
	l.do("login", "user", "admin@example.test", "path", "/console/keys")
	var found struct{ Data []struct{ ID string } }
	if _, body := d.api(t, d.tokenOf(t, "admin@example.test"), http.MethodGet, "/api/v2/policies?search=no%20customer%20is%20deleted"); json.Unmarshal([]byte(body), &found) != nil || len(found.Data) != 1 {
		t.Fatal(body)
	}
	for name, path := range map[string]string{
		"overview": "/console/organization", "audit": "/console/organization/audit?kind=call&server=" + d.slugID(t, "payments"), "policy": "/console/organization/policies/" + found.Data[0].ID,
	} {
		picture := filepath.Join(directory, name+".png")
		l.do("shot", "path", path, "picture", picture)
		if info, err := os.Stat(picture); err != nil || info.Size() > maxScreenshot {
			t.Errorf("%s: %v, or more than %d bytes", picture, err, maxScreenshot)
		}
	}
	d.process.stop(t)
}

// maxScreenshot is the largest size of a picture in the README.
const maxScreenshot = 150 << 10

// slugID returns the id of a server.
func (d *dev) slugID(t *testing.T, slug string) string {
	t.Helper()
	var server struct{ ID string }
	if _, body := d.api(t, d.tokenOf(t, "admin@example.test"), http.MethodGet, "/api/servers/by-slug/"+slug); json.Unmarshal([]byte(body), &server) != nil || server.ID == "" {
		t.Fatal(body)
	}
	return server.ID
}
