package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/durward-gateway/durward/integration/rig"
)

// announced is the body of an announcement.
type announced struct {
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// announcementReceiver is a program that is told about held calls. It checks signatures as the standard's own library does.
type announcementReceiver struct {
	server   *httptest.Server
	verifier *standardwebhooks.Webhook

	mu       sync.Mutex
	away     bool
	tries    map[string]int // by the webhook's id
	accepted []announced
	wrong    []string
}

func newAnnouncementReceiver(t *testing.T, secret string) *announcementReceiver {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	r := &announcementReceiver{verifier: verifier, tries: make(map[string]int)}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// ServeHTTP refuses each announcement once, and all of them while the receiver is away.
func (r *announcementReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	text, err := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	var a announced
	if err == nil {
		err = r.verifier.Verify(text, request.Header)
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		r.wrong = append(r.wrong, err.Error()+": "+string(text))
	}
	id := request.Header.Get("webhook-id")
	if r.tries[id]++; r.tries[id] == 1 || r.away {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.accepted = append(r.accepted, a)
}

func (r *announcementReceiver) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// waitFor waits until the receiver has taken these kinds of announcements, in this order, and returns the last one.
func (r *announcementReceiver) waitFor(t *testing.T, kinds ...string) announced {
	t.Helper()
	var last announced
	rig.Eventually(t, "the announcements "+strings.Join(kinds, ", "), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		var got []string
		for _, a := range r.accepted {
			got = append(got, a.Type)
		}
		if len(r.accepted) > 0 {
			last = r.accepted[len(r.accepted)-1]
		}
		return slices.Equal(kinds, got)
	})
	return last
}

// TestAnnouncements checks that a program is told about a held call and its decision, by webhooks that a library of the
// standard's verifies: again after an error, in order, without arguments, also over a restart while the program is away.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	receiver := newAnnouncementReceiver(t, secret)
	g := startGateway(t, settings{env: []string{"WEBHOOK_SECRET=" + secret}, option: approvalConsole + `
		notify {
			webhook ` + receiver.server.URL + `/held {
				secret {env.WEBHOOK_SECRET}
			}
		}`})
	party := newThirdParty(t)
	s := g.bareServer(party.url()+"/open", bearerEntry())
	g.govern(s, members{"name": "asks", "authorized": true, "actions": []string{"tools/call:pay:approve"}, "approval": "out_of_band"})
	boss, token, console := g.token(admin), g.token(alice), g.consoleToken(alice)
	g.connectBearer(token, s, "a-secret-of-hers")
	pay := func(to string) (approval string) {
		t.Helper()
		g.send(http.MethodPost, s.path, token, toolCallWith("pay", `{"to":"`+to+`"}`), mcpHeader("")...).want(t, http.StatusOK)
		pending := g.object(console, http.MethodGet, "/api/approvals?status=pending", nil)["data"].([]any)
		if len(pending) != 1 {
			t.Fatalf("pending: %v", pending)
		}
		return pending[0].(members)["id"].(string)
	}

	first := pay("canary-of-an-argument")
	held := receiver.waitFor(t, "approval.held")
	text, _ := json.Marshal(held)
	if held.Data["id"] != first || !strings.Contains(string(text), g.url+"/approvals/"+first) || strings.Contains(string(text), "canary") {
		t.Errorf("the receiver is told: %s", text)
	}
	g.api(console, http.MethodPost, "/api/approvals/"+first+"/approve", nil)
	receiver.waitFor(t, "approval.held", "approval.decided")
	g.send(http.MethodPost, s.path, token, toolCallWith("pay", `{"to":"canary-of-an-argument"}`), mcpHeader("")...).want(t, http.StatusOK)

	receiver.setAway(true)
	second := pay("bob")
	g.api(console, http.MethodPost, "/api/approvals/"+second+"/deny", nil)
	g.restart()
	receiver.setAway(false)
	receiver.waitFor(t, "approval.held", "approval.decided", "approval.held", "approval.decided")

	rows := g.object(boss, http.MethodGet, "/api/webhook-deliveries?approval_id="+first, nil)["data"].([]any)
	var log []string
	for _, one := range rows {
		row := one.(members)
		log = append(log, row["event"].(string)+" "+row["state"].(string))
		if attempts := row["attempts"].(float64); attempts < 2 {
			t.Errorf("%v attempts are in the log, and the first one was refused", attempts)
		}
	}
	if diff := cmp.Diff([]string{"approval.decided delivered", "approval.held delivered"}, log); diff != "" {
		t.Errorf("the log of deliveries (-want +got):\n%s", diff)
	}
	g.send(http.MethodGet, "/api/webhook-deliveries", token, nil).want(t, http.StatusForbidden)
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if len(receiver.wrong) > 0 {
		t.Errorf("not verified: %q", receiver.wrong)
	}
}
