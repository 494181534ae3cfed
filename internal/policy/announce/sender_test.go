package announce

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// TestStandardWebhooks checks what a receiver gets with the verifier of the standard's authors.
func TestStandardWebhooks(t *testing.T) {
	w, in := newWorld(t), newInbox(t)
	s := w.sender(receiver(t, Webhook, in.URL+"/hook?x=1"))
	w.clock.now = time.Now() // the verifier compares with its own clock
	a := w.hold(s, "delete_issue")
	w.drain(s)
	w.decide(s, a, true)
	w.drain(s)
	requests := in.all()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, request := range requests {
		for _, text := range []string{secret, secretToo} {
			verifier, err := standardwebhooks.NewWebhook(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.Verify(request.body, request.header); err != nil {
				t.Errorf("request %d: %v: %v", i, err, request.header)
			}
			if err := verifier.Verify(append([]byte(" "), request.body...), request.header); err == nil {
				t.Error("another body is verified")
			}
		}
		other, err := standardwebhooks.NewWebhook("whsec_" + base64Of(32))
		if err != nil {
			t.Fatal(err)
		}
		if other.Verify(request.body, request.header) == nil {
			t.Error("another secret verifies")
		}
		var body struct {
			Type      string
			Timestamp time.Time
			Data      map[string]any
		}
		if err := json.Unmarshal(request.body, &body); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"id": a.ID, "tool": "delete_issue", "user": "alice@example.test", "user_id": w.alice.ID, "mcp_server": "notes", "mcp_server_id": w.server.ID,
			"organization_id": w.org, "rule": "ask", "client": "agent", "url": public + "/approvals/" + a.ID, "status": []string{"pending", "approved"}[i],
		}
		for name, value := range want {
			if body.Data[name] != value {
				t.Errorf("request %d: %s is %v, want %v", i, name, body.Data[name], value)
			}
		}
		if body.Type != []string{"approval.held", "approval.decided"}[i] || body.Timestamp.Before(noon) || strings.Contains(string(request.body), "arguments") {
			t.Errorf("%s", request.body)
		}
		if i == 1 && (body.Data["decided_by"] != w.bob.ID || body.Data["decided_by_name"] != "bob@example.test") {
			t.Errorf("%s", request.body)
		}
	}
	if requests[0].header.Get("webhook-id") == requests[1].header.Get("webhook-id") {
		t.Error("two announcements have one id")
	}
}

// TestArguments checks that arguments are told only to a receiver that asks for them.
func TestArguments(t *testing.T) {
	w, in := newWorld(t), newInbox(t)
	r := receiver(t, Webhook, in.URL)
	r.Arguments = true
	s := w.sender(r)
	w.hold(s, "delete_issue")
	w.drain(s)
	if requests := in.all(); len(requests) != 1 || !strings.Contains(string(requests[0].body), `"arguments":{"id":1}`) {
		t.Errorf("%v", requests)
	}
}

// TestRetries checks that a receiver is tried again, at growing distances, with the same id, and in the order of the call's
// events.
func TestRetries(t *testing.T) {
	w, in := newWorld(t), newInbox(t, 500, 302, 429)
	s := w.sender(receiver(t, Webhook, in.URL))
	a := w.hold(s, "delete_issue")
	w.decide(s, a, false)
	for _, wait := range []time.Duration{0, time.Second, time.Second, 2 * time.Second, 4 * time.Second} {
		w.clock.add(wait)
		w.drain(s)
	}
	var events []string
	ids := map[string]bool{}
	for _, request := range in.all() {
		var body struct{ Type string }
		if err := json.Unmarshal(request.body, &body); err != nil {
			t.Fatal(err)
		}
		events = append(events, body.Type)
		ids[request.header.Get("webhook-id")] = true
	}
	if !slices.Equal(events, []string{"approval.held", "approval.held", "approval.held", "approval.held", "approval.decided"}) || len(ids) != 2 {
		t.Errorf("%v, %d ids", events, len(ids))
	}
	log := w.log()
	if len(log) != 2 || log[0].Attempts != 4 || log[0].State != storage.AnnouncementDelivered || log[0].LastError != "" || log[1].Attempts != 1 {
		t.Errorf("%+v", log)
	}
}

// TestGivenUp checks that a receiver that never answers well is given up after a day, one that is gone at once, and that the
// next event of the call is tried then.
func TestGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		days   bool
	}{"it fails": {500, true}, "it is gone": {410, false}} {
		w, in := newWorld(t), newInbox(t, slices.Repeat([]int{tc.status}, 100)...)
		s := w.sender(receiver(t, Webhook, in.URL))
		a := w.hold(s, "delete_issue")
		w.decide(s, a, true)
		for range 40 {
			w.drain(s)
			if tc.days {
				w.clock.add(time.Hour)
			}
		}
		log := w.log()
		if len(log) != 2 || log[0].State != storage.AnnouncementFailed || log[1].State != storage.AnnouncementFailed || !strings.Contains(log[0].LastError, "answers") {
			t.Errorf("%s: %+v", name, log)
		}
		if n := len(in.all()); tc.days != (n > 20) {
			t.Errorf("%s: %d attempts", name, n)
		}
	}
}

// TestExpired checks that a call that nobody decided is announced as over, and one that was decided is not.
func TestExpired(t *testing.T) {
	w, in := newWorld(t), newInbox(t)
	s := w.sender(receiver(t, Webhook, in.URL))
	decided, over := w.hold(s, "a"), w.hold(s, "b")
	w.decide(s, decided, true)
	w.drain(s)
	w.clock.add(11 * time.Minute)
	w.drain(s)
	var events []string
	for _, request := range in.all() {
		var body struct {
			Type string
			Data struct{ ID, Status string }
		}
		if err := json.Unmarshal(request.body, &body); err != nil {
			t.Fatal(err)
		}
		if body.Data.ID == over.ID {
			events = append(events, body.Type+" "+body.Data.Status)
		} else if body.Type == storage.EventExpired {
			t.Error("a decided call expires")
		}
	}
	if !slices.Equal(events, []string{"approval.held pending", "approval.expired expired"}) {
		t.Errorf("%v", events)
	}
}

// TestNotAnnounced checks that a call about which its own client asks the user is not announced.
func TestNotAnnounced(t *testing.T) {
	w, in := newWorld(t), newInbox(t)
	s := w.sender(receiver(t, Webhook, in.URL))
	if got := s.Announcements(storage.Approval{Status: storage.ApprovalPending, Channel: storage.ChannelInBand}); got != nil {
		t.Errorf("%v", got)
	}
}

// TestTwoNodes checks that of two nodes one sends.
func TestTwoNodes(t *testing.T) {
	w, in := newWorld(t), newInbox(t)
	nodes := []*Sender{w.sender(receiver(t, Webhook, in.URL)), w.sender(receiver(t, Webhook, in.URL))}
	for range 20 {
		w.hold(nodes[0], "delete_issue")
	}
	var all sync.WaitGroup
	for _, s := range nodes {
		all.Go(func() {
			for more := true; more; {
				more, _ = s.sendDue(t.Context(), &s.receivers[0])
			}
		})
	}
	all.Wait()
	w.drain(nodes[0])
	if n := len(in.all()); n != 20 {
		t.Errorf("%d requests for 20 calls", n)
	}
}

// TestCutOff checks that another process sends again what one did not finish, and that being cut off is no failure.
func TestCutOff(t *testing.T) {
	w := newWorld(t)
	came, goOn := make(chan struct{}, 1), make(chan struct{})
	var requests atomic.Int32
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			came <- struct{}{}
			select {
			case <-goOn:
			case <-r.Context().Done():
			}
		}
	}))
	defer slow.Close()
	defer close(goOn)
	s := w.sender(receiver(t, Webhook, slow.URL))
	w.hold(s, "delete_issue")
	s.Start()
	s.Wake()
	select {
	case <-came:
	case <-time.After(bound):
		t.Fatal("nothing was sent")
	}
	s.Close()
	if log := w.log(); len(log) != 1 || log[0].Attempts != 0 || log[0].State != storage.AnnouncementWaiting {
		t.Fatalf("%+v", log)
	}
	next := w.sender(receiver(t, Webhook, slow.URL))
	w.drain(next)
	if n := requests.Load(); n != 1 {
		t.Fatalf("it was sent %d times while the claim stands", n)
	}
	w.clock.add(lease)
	w.drain(next)
	if log := w.log(); log[0].State != storage.AnnouncementDelivered || requests.Load() != 2 {
		t.Errorf("%+v", log)
	}
}

// TestPoison checks that a receiver that never answers delays no other.
func TestPoison(t *testing.T) {
	w := newWorld(t)
	end := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer hangs.Close()
	defer close(end)
	came := make(chan struct{}, 100)
	works := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came <- struct{}{} }))
	defer works.Close()
	s := w.sender(receiver(t, Webhook, hangs.URL), receiver(t, Webhook, works.URL))
	for range 20 {
		w.hold(s, "delete_issue")
	}
	s.Start()
	for range 20 {
		select {
		case <-came:
		case <-time.After(bound):
			t.Fatal("the other receiver waits")
		}
	}
	s.Close()
}

// inside resolves every name to an address of the inside.
type inside struct{}

func (inside) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
}

// TestInside checks that no address of the inside is reached: not by its number, not by a name, not by a redirect.
func TestInside(t *testing.T) {
	strict := netguard.New(netguard.Policy{}, netguard.WithResolver(inside{}))
	for _, address := range []string{"https://169.254.169.254/latest", "https://127.0.0.1/", "http://hooks.example.com/", "https://[::1]/", "ftp://hooks.example.com/", "https://2130706433/", "x"} {
		if r, err := NewReceiver(Webhook, seal.NewSecret(address), strict.CheckURL); err == nil {
			t.Errorf("%s is a receiver: %s", address, r.Name)
		}
	}
	w := newWorld(t)
	w.guard = strict
	r, err := NewReceiver(Slack, seal.NewSecret("https://hooks.example.com/services/T000/SECRET"), strict.CheckURL)
	if err != nil {
		t.Fatal(err)
	}
	s := w.sender(r)
	w.hold(s, "delete_issue")
	w.drain(s)
	log := w.log()
	if len(log) != 1 || log[0].Attempts != 1 || log[0].LastError == "" || strings.Contains(log[0].LastError, "SECRET") || strings.Contains(log[0].LastError, "169.254") || strings.Contains(r.Name, "SECRET") {
		t.Errorf("%+v", log)
	}
}

func TestKeys(t *testing.T) {
	for text, good := range map[string]bool{
		secret: true, base64Of(24): true, "whsec_" + base64Of(64): true, "whsec_" + base64Of(23): false, "whsec_" + base64Of(65): false,
		"": false, "whsec_": false, "secret": false, "whsec_" + strings.TrimRight(base64Of(32), "="): false,
	} {
		if _, err := ParseKey(seal.NewSecret(text)); (err == nil) != good || err != nil && len(text) > len("whsec_")+2 && strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
