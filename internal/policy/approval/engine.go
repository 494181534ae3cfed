package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const (
	// DecideFor is the time that a human has to decide. UseFor is the time that a yes is good for after that.
	DecideFor = 10 * time.Minute
	UseFor    = 10 * time.Minute
	// MaxPending is the number of waiting calls for one user and client. A user would approve more of them unread
	// (attack M16).
	MaxPending = 20
	// MaxAsked is the number of calls that a user and client may have asked about within AskedWithin, decided ones
	// included. A client that declines by itself could otherwise ask as fast as it can.
	MaxAsked    = 120
	AskedWithin = 10 * time.Minute
	// MaxArguments is the greatest length in bytes of the arguments of a held call, and also of its other members.
	// Nobody reads more before they approve it, and held calls are stored.
	MaxArguments = 64 << 10
	// rereadEvery is the greatest delay after which a decision in another process is noticed.
	rereadEvery = time.Second
)

var (
	// ErrClient says that the decision came with a token that may not decide. It is a token of the client that made the
	// call, of a client that is not among the approval clients, or of a machine.
	ErrClient = errors.New("this client may not decide on held calls")
	// ErrTooLarge says that the call's arguments are longer than MaxArguments.
	ErrTooLarge = errors.New("the call is too large to be held")
	// ErrCaller says that the user who made the call would decide on it, which is up to others.
	ErrCaller = errors.New("other people than the caller decide on this call")
	// ErrChannel says that the call may be decided out of band only.
	ErrChannel = errors.New("this call may be decided out of band only")
)

// Vault seals stored data; *seal.Keyring is one.
type Vault interface {
	Seal(plaintext []byte, ad seal.AD) ([]byte, error)
	Open(sealed []byte, ad seal.AD) ([]byte, error)
}

// Store keeps approvals and holds for every node.
type Store interface {
	storage.Approvals
	storage.Holds
	// User and SessionFacts tell the roles and groups of people who decide on calls of others, see storage.Identities.
	User(ctx context.Context, organization, id string) (storage.User, error)
	SessionFacts(ctx context.Context, organization, userID string) (storage.SessionFacts, error)
}

// Options holds the dependencies of an engine. All are required except Now.
type Options struct {
	Store Store
	Vault Vault
	// Bell is shared by all engines of the process.
	Bell *Bell
	// Clients holds the external ids of the clients with which users decide out of band.
	Clients []string
	// Announcer tells others about held calls; nil: nobody is told.
	Announcer Announcer
	// Groups returns the groups of a person of whom their token or login said some; nil: these.
	Groups func(ctx context.Context, organization, userID string, said []string) ([]string, error)
	Now    func() time.Time // nil: time.Now
}

// Announcer tells others about held calls.
type Announcer interface {
	// Announcements is a storage.Announcing.
	Announcements(a storage.Approval) []storage.Announcement
	// Wake says that there may be announcements to be sent.
	Wake()
}

// Engine asks for approvals, waits for them and uses them up. It is safe for concurrent use and holds no state that a
// restart would lose.
type Engine struct {
	store   Store
	vault   Vault
	bell    *Bell
	clients []string
	tell    Announcer // nil: nobody
	groups  func(ctx context.Context, organization, userID string, said []string) ([]string, error)
	now     func() time.Time
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Groups == nil {
		o.Groups = func(_ context.Context, _, _ string, said []string) ([]string, error) { return said, nil }
	}
	return &Engine{groups: o.Groups, store: o.Store, vault: o.Vault, bell: o.Bell, clients: o.Clients, tell: o.Announcer, now: o.Now}
}

// Request returns the approval of exactly this call, pending or approved, and makes a pending one when there is none.
// It returns storage.ErrTooManyPending or storage.ErrTooManyAsked when the user has the maximum for this client, and
// ErrTooLarge when the call is too long for a human to read.
func (e *Engine) Request(ctx context.Context, c *Call) (storage.Approval, error) {
	if len(c.Arguments)+len(c.Beside) > MaxArguments {
		return storage.Approval{}, ErrTooLarge
	}
	ctx, told := e.announcing(ctx)
	defer told()
	return e.create(ctx, c, storage.AskLimits{Pending: MaxPending, Asked: MaxAsked, Since: e.now().UTC().Add(-AskedWithin)})
}

// announcing returns a context under which writes of approvals are announced, and the function to call after them.
func (e *Engine) announcing(ctx context.Context) (_ context.Context, told func()) {
	if e.tell == nil {
		return ctx, func() {}
	}
	return storage.WithAnnouncing(ctx, e.tell.Announcements), e.tell.Wake
}

func (e *Engine) create(ctx context.Context, c *Call, limits storage.AskLimits) (storage.Approval, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return storage.Approval{}, fmt.Errorf("making an id: %w", err)
	}
	now := e.now().UTC()
	a := storage.Approval{
		ID: id.String(), OrganizationID: c.OrganizationID, UserID: c.UserID, AgentID: c.AgentID, Client: c.Client,
		ServerID: c.ServerID, Tool: c.Tool, Binding: c.Binding(), ArgumentsDigest: Digest(c.Arguments),
		PolicyID: c.PolicyID, PolicyRevision: c.PolicyRevision, Rule: c.Rule, Approvers: c.Approvers, Channel: c.Channel,
		Status: storage.ApprovalPending, CreatedAt: now, ExpiresAt: now.Add(DecideFor),
	}
	if a.SealedArguments, err = e.vault.Seal(c.said(), place(&a)); err != nil {
		return storage.Approval{}, fmt.Errorf("sealing arguments: %w", err)
	}
	return e.store.CreateApproval(ctx, a, limits)
}

// place returns the storage place of an approval's arguments.
func place(a *storage.Approval) seal.AD {
	return seal.ApprovalPlace(a.OrganizationID, a.UserID, a.ID)
}

// Said returns the content of the call for the human who decides. It is zero when there is nothing left to decide and
// no call left to make.
func (e *Engine) Said(a *storage.Approval) (Said, error) {
	if a.Status != storage.ApprovalPending && a.Status != storage.ApprovalApproved {
		return Said{}, nil
	}
	text, err := e.vault.Open(a.SealedArguments, place(a))
	if err != nil {
		return Said{}, fmt.Errorf("opening the arguments of approval %s: %w", a.ID, err)
	}
	arguments, beside, _ := bytes.Cut(text, []byte{betweenSaid})
	return Said{Arguments: arguments, Beside: beside}, nil
}

// Approval reads one approval. It returns storage.ErrNotFound when the organization has none with that id.
func (e *Engine) Approval(ctx context.Context, organization, id string) (storage.Approval, error) {
	return e.store.Approval(ctx, organization, id, e.now())
}

// Approvals lists approvals, newest first. It sets f.Now.
func (e *Engine) Approvals(ctx context.Context, f storage.ApprovalFilter) (storage.Page[storage.Approval], error) {
	f.Now = e.now()
	return e.store.Approvals(ctx, f)
}

// Wait returns the approval once it is no longer pending, or must be decided in another channel than asked says. The
// cause may be an event here or in another process on the same store, or the expiry of the approval. Wait fails when
// ctx ends or the store does; the approval stays unchanged. It returns storage.ErrTooManyPending when the maximum
// number of calls of this process already wait for the same decision.
func (e *Engine) Wait(ctx context.Context, asked *storage.Approval) (storage.Approval, error) {
	organization, id := asked.OrganizationID, asked.ID
	rung, stop, ok := e.bell.listen(id)
	if !ok {
		return storage.Approval{}, storage.ErrTooManyPending
	}
	defer stop()
	again := time.NewTicker(rereadEvery)
	defer again.Stop()
	for {
		switch status, channel, err := e.store.ApprovalStatus(ctx, organization, id, e.now()); {
		case err != nil:
			return storage.Approval{}, err
		case status != storage.ApprovalPending, channel != asked.Channel:
			return e.Approval(ctx, organization, id)
		}
		select {
		case <-ctx.Done():
			return storage.Approval{}, context.Cause(ctx)
		case <-rung:
		case <-again.C:
		}
	}
}

// Decider identifies the person who decides, and the means.
type Decider struct {
	OrganizationID, UserID string
	Client                 string // external id of the client that the token belongs to
	Browser                bool   // there is no token: the decision comes from a browser session on the gateway's own page
	Machine                bool   // there is no person
	Key                    bool   // there is no token, but an API key
	// Roles and Groups hold the known names of a token, as they were at FactsAt. Those of a browser session are looked up.
	Roles, Groups []string
	FactsAt       time.Time
}

// MayDecide checks whether the decider's client may decide out of band at all. It returns ErrClient when not.
func (e *Engine) MayDecide(d Decider) error {
	if d.Machine || !d.Browser && (d.Client == "" || !slices.Contains(e.clients, d.Client)) {
		return ErrClient
	}
	return nil
}

// Decide records a decision that came out of band, through the API or the page. It returns storage.ErrNotFound when the
// approval is unknown, or neither the decider's own nor one on which they decide for others. Other errors are ErrCaller,
// ErrClient, and a ConflictError on status when it is decided or over.
func (e *Engine) Decide(ctx context.Context, d Decider, id string, approve bool) (storage.Approval, error) {
	a, err := e.Approval(ctx, d.OrganizationID, id)
	if err != nil {
		return storage.Approval{}, err
	}
	if err := e.concerns(ctx, d, &a); err != nil {
		return storage.Approval{}, err
	}
	if err := e.MayDecide(d); err != nil {
		return storage.Approval{}, err
	}
	client := d.Client
	if d.Browser {
		client = ""
	} else if client == a.Client {
		return storage.Approval{}, ErrClient // even when it is listed: no client approves its own calls
	}
	ctx, told := e.announcing(ctx)
	defer told()
	return e.decide(ctx, &a, storage.ApprovalDecision{
		Approve: approve, UserID: d.UserID, Via: storage.ChannelOutOfBand, Client: client, At: e.now().UTC(),
	})
}

// concerns returns nil when the approval waits for the decider's word.
func (e *Engine) concerns(ctx context.Context, d Decider, a *storage.Approval) error {
	switch own := a.UserID == d.UserID; {
	case own && len(a.Approvers) > 0:
		return ErrCaller
	case own:
		return nil
	case len(a.Approvers) == 0:
		return storage.ErrNotFound
	}
	standing, err := e.Standing(ctx, d)
	if err != nil {
		return err
	}
	if !standing.Decides(a.OrganizationID, a.UserID, a.Approvers) {
		return storage.ErrNotFound
	}
	return nil
}

// DecideInBand records the decision that the calling client brought from its user. The caller must have checked that
// the question was asked. A no needs no channel, because nobody gains from it. On a call that others decide, the user's
// client says neither. The errors are those of Decide, and ErrChannel.
func (e *Engine) DecideInBand(ctx context.Context, organization, user, id string, approve bool) (storage.Approval, error) {
	a, err := e.Approval(ctx, organization, id)
	if err != nil {
		return storage.Approval{}, err
	}
	if a.UserID != user {
		return storage.Approval{}, storage.ErrNotFound
	}
	if len(a.Approvers) > 0 || approve && a.Channel != storage.ChannelInBand {
		return storage.Approval{}, ErrChannel
	}
	ctx, told := e.announcing(ctx)
	defer told()
	return e.decide(ctx, &a, storage.ApprovalDecision{
		Approve: approve, UserID: user, Via: storage.ChannelInBand, Client: a.Client, At: e.now().UTC(),
	})
}

// Divert moves the decision out of band, because the client that should ask its user said that it cannot. That is no
// decision of the user. An approval that is decided by then stays so. It returns storage.ErrNotFound when the approval
// is unknown or another user's.
func (e *Engine) Divert(ctx context.Context, organization, user, id string) (storage.Approval, error) {
	a, err := e.store.DivertApproval(ctx, organization, user, id, e.now().UTC())
	if err == nil {
		e.bell.ring(id)
	}
	return a, err
}

func (e *Engine) decide(ctx context.Context, a *storage.Approval, d storage.ApprovalDecision) (storage.Approval, error) {
	d.ExpiresAt = d.At.Add(UseFor)
	decided, err := e.store.DecideApproval(ctx, a.OrganizationID, a.ID, d)
	if err != nil {
		return storage.Approval{}, err
	}
	e.bell.ring(a.ID)
	return decided, nil
}
