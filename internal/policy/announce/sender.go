package announce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/storage"
)

// Times and limits of deliveries.
const (
	// lookEvery is the time after which a sender looks for announcements of other nodes.
	lookEvery = 3 * time.Second
	// deadline bounds one attempt. lease is the time for which one node alone may make it.
	deadline  = 15 * time.Second
	lease     = deadline + 15*time.Second
	firstWait = time.Second
	lastWait  = time.Hour
	batch     = 32
	share     = 8 // of one organization in a batch
	atOnce    = 4 // attempts with one receiver
	// shownError is the length of an error in the log of deliveries, in bytes.
	shownError = 300
)

// Store keeps announcements, and the names in them.
type Store interface {
	storage.Announcements
	Approval(ctx context.Context, organization, id string, now time.Time) (storage.Approval, error)
	User(ctx context.Context, organization, id string) (storage.User, error)
	Server(ctx context.Context, organization, id string) (storage.Server, error)
	Agent(ctx context.Context, organization, id string) (storage.Agent, error)
}

// Options holds the dependencies of a sender. All but Count are required.
type Options struct {
	Receivers []Receiver
	Store     Store
	Guard     *netguard.Guard
	// Page returns the address of the page on which a call is decided.
	Page func(approvalID string) string
	// Said opens the arguments of a held call.
	Said func(*storage.Approval) (approval.Said, error)
	// Count is told the result of each attempt: delivered, failed or given_up.
	Count func(kind Kind, result string)
	Log   *slog.Logger
	Now   func() time.Time
}

// Sender sends announcements to receivers. It is safe for concurrent use.
type Sender struct {
	receivers []Receiver
	store     Store
	client    *http.Client
	page      func(string) string
	said      func(*storage.Approval) (approval.Said, error)
	count     func(Kind, string)
	log       *slog.Logger
	now       func() time.Time

	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup
	wake []chan struct{} // of each receiver
}

// New makes a sender, which sends nothing before Start.
func New(o Options) *Sender {
	s := &Sender{
		receivers: o.Receivers, store: o.Store, client: o.Guard.FetchClient(deadline, maxAnswer), page: o.Page, said: o.Said, count: o.Count,
		log: o.Log, now: o.Now,
	}
	if s.count == nil {
		s.count = func(Kind, string) {}
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	for range s.receivers {
		s.wake = append(s.wake, make(chan struct{}, 1))
	}
	return s
}

// Start begins to send, in the background, what waits and what comes. It must be called once.
func (s *Sender) Start() {
	for i := range s.receivers {
		s.work.Go(func() { s.keepSending(&s.receivers[i], s.wake[i]) })
	}
}

// Close ends sending. An attempt that it cuts off is made again by another node, or by the next process.
func (s *Sender) Close() {
	s.end()
	s.work.Wait()
}

// Wake makes the sender look for announcements at once.
func (s *Sender) Wake() {
	for _, wake := range s.wake {
		select {
		case wake <- struct{}{}:
		default: // it looks anyway
		}
	}
}

func (s *Sender) keepSending(r *Receiver, wake <-chan struct{}) {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		more, err := s.sendDue(s.ctx, r)
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("looking for announcements", "receiver", r.Name, "error", err.Error())
		case more:
			continue
		}
		select {
		case <-s.ctx.Done():
			return
		case <-wake:
		case <-again.C:
		}
	}
}

// sendDue sends the announcements to a receiver that are due. more reports whether there may be others.
func (s *Sender) sendDue(ctx context.Context, r *Receiver) (more bool, err error) {
	due, err := s.store.DueAnnouncements(ctx, r.Name, s.now().UTC(), batch, share)
	if err != nil {
		return false, err
	}
	sending := new(errgroup.Group)
	sending.SetLimit(atOnce)
	var moved sync.Once
	for _, a := range due {
		sending.Go(func() error {
			if s.attempt(ctx, r, a) {
				moved.Do(func() { more = true })
			}
			return nil
		})
	}
	return more, sending.Wait()
}

// attempt tries to send an announcement once, unless another node does. It reports whether the announcement has ended, so
// that a later one of its call is due.
func (s *Sender) attempt(ctx context.Context, r *Receiver, a storage.Announcement) (ended bool) {
	until := s.now().UTC().Add(lease)
	if err := s.store.ClaimAnnouncement(ctx, a, until); err != nil {
		if !errors.Is(err, storage.ErrNotFound) && ctx.Err() == nil {
			s.log.Warn("claiming an announcement", "receiver", r.Name, "error", err.Error())
		}
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, deadline)
	more, err := s.send(bounded, r, &a)
	cancel()
	if err != nil && ctx.Err() != nil {
		return false // it was cut off, and says nothing about the receiver
	}
	s.note(r, &a, err)
	if err := s.store.TriedAnnouncement(context.WithoutCancel(ctx), until, a, more); err != nil && !errors.Is(err, storage.ErrNotFound) {
		s.log.Warn("an announcement will be sent again", "receiver", r.Name, "error", err.Error())
		return false
	}
	return a.State != storage.AnnouncementWaiting
}

// note changes an announcement by the result of an attempt. The wait before the next one is as long as the time since the
// announcement was due: 1 s, 2 s, 4 s, and so on.
func (s *Sender) note(r *Receiver, a *storage.Announcement, err error) {
	now := s.now().UTC()
	a.Attempts++
	if err == nil {
		a.State, a.EndedAt, a.LastError = storage.AnnouncementDelivered, now, ""
		s.count(r.Kind, "delivered")
		return
	}
	a.LastError = shownErrorOf(err)
	log := s.log.With("receiver", r.Name, "organization", a.OrganizationID, "approval", a.ApprovalID, "event", a.Event, "attempts", a.Attempts, "error", loggedErrorOf(err))
	since := now.Sub(a.CreatedAt)
	if errors.Is(err, errGone) || errors.Is(err, errNever) || since >= storage.AnnouncementLifetime {
		a.State, a.EndedAt = storage.AnnouncementFailed, now
		s.count(r.Kind, "given_up")
		log.Error("an announcement is given up")
		return
	}
	if a.Event == storage.EventExpired {
		since = firstWait << min(a.Attempts, 12) // it was made long before it was due
	}
	a.NextAt = now.Add(min(max(since, firstWait), lastWait))
	s.count(r.Kind, "failed")
	log.Warn("announcing a held call; it is tried again")
}

// errNever says that an announcement can never be sent.
var errNever = errors.New("it cannot be sent")

// send sends an announcement. more are announcements that take its place.
func (s *Sender) send(ctx context.Context, r *Receiver, a *storage.Announcement) (more []storage.Announcement, err error) {
	f, err := readFacts(a)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNever, err)
	}
	if r.Kind == Email && a.Recipient == "" {
		return s.mails(ctx, r, a, &f)
	}
	t, err := s.tell(ctx, r, f)
	if err != nil {
		return nil, err
	}
	if r.Kind == Email {
		return nil, r.Mailer.Send(ctx, mailTo(a.Recipient, a, t))
	}
	return nil, s.post(ctx, r, a, t)
}

// tell looks up the names in an announcement. An object that is gone is named by its id.
func (s *Sender) tell(ctx context.Context, r *Receiver, f facts) (*Told, error) {
	t := &Told{facts: f, User: f.UserID, Server: f.ServerID, URL: s.page(f.ID)}
	user, err := s.store.User(ctx, f.OrganizationID, f.UserID)
	if err == nil {
		t.User = nameOfUser(&user)
	}
	missing := err
	if server, err := s.store.Server(ctx, f.OrganizationID, f.ServerID); err == nil {
		t.Server = server.Slug
	} else {
		missing = errors.Join(missing, err)
	}
	if f.AgentID != "" {
		agent, err := s.store.Agent(ctx, f.OrganizationID, f.AgentID)
		t.Agent = agent.Application.Name
		missing = errors.Join(missing, err)
	}
	if f.DecidedBy != "" {
		t.DecidedBy = f.DecidedBy
		user, err := s.store.User(ctx, f.OrganizationID, f.DecidedBy)
		if err == nil {
			t.DecidedBy = nameOfUser(&user)
		}
		missing = errors.Join(missing, err)
	}
	if missing != nil && errors.Is(missing, storage.ErrUnavailable) {
		return nil, errors.New("the store cannot be read")
	}
	if r.Arguments {
		t.Arguments, err = s.arguments(ctx, &f)
	}
	return t, err
}

// arguments returns the arguments of a call while they are kept, nil afterwards.
func (s *Sender) arguments(ctx context.Context, f *facts) ([]byte, error) {
	a, err := s.store.Approval(ctx, f.OrganizationID, f.ID, s.now())
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.New("the store cannot be read")
	}
	said, err := s.said(&a)
	return said.Arguments, err
}

// nameOfUser returns a user's name for people.
func nameOfUser(u *storage.User) string {
	switch {
	case u.Email != "":
		return u.Email
	case u.Name != "":
		return u.Name
	}
	return u.Subject
}

// loggedErrorOf returns an error for the operator's log. Texts in it may be a receiver's.
func loggedErrorOf(err error) string {
	text, _ := visible.Beginning(err.Error(), shownError)
	return text
}
