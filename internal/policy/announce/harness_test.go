package announce

import (
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer    = "https://id.example.test"
	public    = "https://gate.example.test"
	bound     = 60 * time.Second
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the specification's example
	secretToo = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// loopback allows the receivers of tests.
var loopback = netguard.New(netguard.Policy{
	HTTP: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
})

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is an organization with a server, alice, who calls, and bob, a lead.
type world struct {
	t          *testing.T
	store      storage.Store
	clock      *clock
	guard      *netguard.Guard
	org        string
	alice, bob storage.User
	server     storage.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: sqlitetest.Open(t), clock: &clock{now: noon}, guard: loopback, org: uuid.NewString()}
	if _, err := w.store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuer, ID: w.org}, noon); err != nil {
		t.Fatal(err)
	}
	w.alice, w.bob = w.user("alice", "alice@example.test"), w.user("bob", "bob@example.test", "leads")
	entry := storage.DirectoryEntry{
		ID: uuid.NewString(), OrganizationID: w.org, Name: "Notes", Slug: "notes", URL: "https://mcp.example.com/", Protocol: storage.ProtocolMCP,
		Provider: storage.ProviderNone, Source: storage.SourceCustom, CreatedAt: noon, UpdatedAt: noon,
	}
	w.server = storage.Server{
		ID: uuid.NewString(), OrganizationID: w.org, Name: "Notes", Slug: "notes", DirectoryID: entry.ID, Status: storage.ServerActive, CreatedAt: noon, UpdatedAt: noon,
	}
	if err := errors.Join(w.store.CreateDirectoryEntry(t.Context(), entry), w.store.CreateServer(t.Context(), w.server)); err != nil {
		t.Fatal(err)
	}
	return w
}

// user makes a user whose newest token named groups.
func (w *world) user(subject, email string, groups ...string) storage.User {
	w.t.Helper()
	u, err := w.store.ResolveUser(w.t.Context(), storage.UserClaim{
		OrganizationID: w.org, Issuer: issuer, Subject: subject, DerivedID: uuid.NewString(), Kind: storage.UserPerson, Email: email, Groups: groups, IssuedAt: noon,
	}, noon)
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

// sender makes a sender that is not started.
func (w *world) sender(receivers ...Receiver) *Sender {
	w.t.Helper()
	s := New(Options{
		Receivers: receivers, Store: w.store, Guard: w.guard, Page: func(id string) string { return public + "/approvals/" + id },
		Said: func(*storage.Approval) (approval.Said, error) {
			return approval.Said{Arguments: []byte(`{"id":1}`)}, nil
		},
		Log: slog.New(slog.DiscardHandler), Now: w.clock.Now,
	})
	w.t.Cleanup(s.Close)
	return s
}

// hold holds a call of alice's, on which leads decide, and announces it through a sender.
func (w *world) hold(s *Sender, tool string) storage.Approval {
	w.t.Helper()
	now := w.clock.Now()
	a, err := w.store.CreateApproval(storage.WithAnnouncing(w.t.Context(), s.Announcements), storage.Approval{
		ID: uuid.NewString(), OrganizationID: w.org, UserID: w.alice.ID, Client: "agent", ServerID: w.server.ID, Tool: tool, Binding: []byte(uuid.NewString()),
		PolicyID: "p", Rule: "ask", Approvers: [][]string{{"group:leads"}}, Channel: storage.ChannelOutOfBand, Status: storage.ApprovalPending,
		CreatedAt: now, ExpiresAt: now.Add(approval.DecideFor),
	}, storage.AskLimits{})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// decide lets bob decide on a call.
func (w *world) decide(s *Sender, a storage.Approval, approve bool) {
	w.t.Helper()
	_, err := w.store.DecideApproval(storage.WithAnnouncing(w.t.Context(), s.Announcements), w.org, a.ID, storage.ApprovalDecision{
		Approve: approve, UserID: w.bob.ID, Via: storage.ChannelOutOfBand, At: w.clock.Now(), ExpiresAt: w.clock.Now().Add(approval.UseFor),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// drain sends what is due until nothing more is.
func (w *world) drain(s *Sender) {
	w.t.Helper()
	for i := range s.receivers {
		for more := true; more; {
			var err error
			if more, err = s.sendDue(w.t.Context(), &s.receivers[i]); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// log returns the log of deliveries, oldest first, without the rows that wait for the end of calls.
func (w *world) log() (all []storage.Announcement) {
	w.t.Helper()
	found, err := w.store.Announcements(w.t.Context(), storage.AnnouncementFilter{OrganizationID: w.org, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := len(found) - 1; i >= 0; i-- {
		if found[i].Event != storage.EventExpired || found[i].State != storage.AnnouncementWaiting {
			all = append(all, found[i])
		}
	}
	return all
}

// got is a request that a receiver got.
type got struct {
	header http.Header
	body   []byte
}

// inbox is a receiver that keeps its requests, and answers with the statuses that it is given, then with 204.
type inbox struct {
	*httptest.Server
	mu       sync.Mutex
	requests []got
	answers  []int
}

func newInbox(t *testing.T, answers ...int) *inbox {
	t.Helper()
	in := &inbox{answers: answers}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		in.mu.Lock()
		defer in.mu.Unlock()
		in.requests = append(in.requests, got{r.Header, body})
		status := http.StatusNoContent
		if len(in.answers) > 0 {
			status, in.answers = in.answers[0], in.answers[1:]
		}
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) all() []got {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]got(nil), in.requests...)
}

// receiver returns a receiver at an address.
func receiver(t *testing.T, kind Kind, address string) Receiver {
	t.Helper()
	r, err := NewReceiver(kind, seal.NewSecret(address), loopback.CheckURL)
	if err != nil {
		t.Fatal(err)
	}
	if kind == Webhook {
		for _, text := range []string{secret, secretToo} {
			key, err := ParseKey(seal.NewSecret(text))
			if err != nil {
				t.Fatal(err)
			}
			r.Keys = append(r.Keys, key)
		}
	}
	return r
}

func base64Of(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
