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
	// DecideFor is how long a human has to decide, and UseFor how long their yes is good then.
	DecideFor = 10 * time.Minute
	UseFor    = 10 * time.Minute
	// MaxPending is how many calls a user and client may have waiting: more would be nodded through (attack M16).
	MaxPending = 20
	// MaxAsked is how many calls a user and client may have asked about within AskedWithin, decided ones included: a client
	// that declines by itself asks as fast as it can.
	MaxAsked    = 120
	AskedWithin = 10 * time.Minute
	// MaxArguments is how long the arguments of a held call may be, and what it says beside them: nobody reads more before
	// they approve it, and what is held is kept.
	MaxArguments = 64 << 10
	// rereadEvery is how late a decision that another process took may be seen.
	rereadEvery = time.Second
)

var (
	// ErrClient: the decision came with a token that may not decide: of the client that made the call, of one that is not
	// among the approval clients, or of a machine.
	ErrClient = errors.New("this client may not decide on held calls")
	// ErrTooLarge: the call's arguments are longer than MaxArguments.
	ErrTooLarge = errors.New("the call is too large to be held")
	// ErrChannel: the call may be decided out of band only.
	ErrChannel = errors.New("this call may be decided out of band only")
)

// Vault seals what is stored; *seal.Keyring is one.
type Vault interface {
	Seal(plaintext []byte, ad seal.AD) ([]byte, error)
	Open(sealed []byte, ad seal.AD) ([]byte, error)
}

// Store keeps approvals and holds for every node.
type Store interface {
	storage.Approvals
	storage.Holds
}

// Options are what an engine works with. All are required but Now.
type Options struct {
	Store Store
	Vault Vault
	// Bell is shared by all engines of the process.
	Bell *Bell
	// Clients are the external ids of those with which users decide out of band.
	Clients []string
	Now     func() time.Time // nil: time.Now
}

// Engine asks for approvals, waits for them and uses them up. It is safe for concurrent use and holds nothing that a
// restart would lose.
type Engine struct {
	store   Store
	vault   Vault
	bell    *Bell
	clients []string
	now     func() time.Time
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{store: o.Store, vault: o.Vault, bell: o.Bell, clients: o.Clients, now: o.Now}
}

// Request returns the approval that exactly this call has, pending or approved, and makes a pending one when there is
// none. storage.ErrTooManyPending and storage.ErrTooManyAsked when the user has as many for this client as they may,
// ErrTooLarge when nobody could read what they approve.
func (e *Engine) Request(ctx context.Context, c *Call) (storage.Approval, error) {
	if len(c.Arguments)+len(c.Beside) > MaxArguments {
		return storage.Approval{}, ErrTooLarge
	}
	return e.create(ctx, c, storage.AskLimits{Pending: MaxPending, Asked: MaxAsked, Since: e.now().UTC().Add(-AskedWithin)})
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
		PolicyID: c.PolicyID, PolicyRevision: c.PolicyRevision, Rule: c.Rule, Channel: c.Channel,
		Status: storage.ApprovalPending, CreatedAt: now, ExpiresAt: now.Add(DecideFor),
	}
	if a.SealedArguments, err = e.vault.Seal(c.said(), place(&a)); err != nil {
		return storage.Approval{}, fmt.Errorf("sealing arguments: %w", err)
	}
	return e.store.CreateApproval(ctx, a, limits)
}

// place is where an approval's arguments are kept.
func place(a *storage.Approval) seal.AD {
	return seal.ApprovalPlace(a.OrganizationID, a.UserID, a.ID)
}

// Said is what the call says, for the human who decides; zero when there is nothing to decide and nothing to make any more.
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

// Approval reads one. storage.ErrNotFound when the organization has none of that id.
func (e *Engine) Approval(ctx context.Context, organization, id string) (storage.Approval, error) {
	return e.store.Approval(ctx, organization, id, e.now())
}

// Approvals lists them, newest first. f.Now is set here.
func (e *Engine) Approvals(ctx context.Context, f storage.ApprovalFilter) (storage.Page[storage.Approval], error) {
	f.Now = e.now()
	return e.store.Approvals(ctx, f)
}

// Wait returns the approval once it is not pending any more, or to be decided elsewhere than asked says: by what happened
// here or in another process on the same store, or because it expired. It fails when ctx ends or the store does; the
// approval stays as it is. storage.ErrTooManyPending when as many calls of this process wait for the same word as may.
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

// Decider is who says a word, and with what.
type Decider struct {
	OrganizationID, UserID string
	Client                 string // external id of the client whose token it is
	Browser                bool   // there is no token: a browser's session on the gateway's own page
	Machine                bool   // there is no person
}

// MayDecide reports whether the decider's client may decide out of band at all. ErrClient when not.
func (e *Engine) MayDecide(d Decider) error {
	if d.Machine || !d.Browser && (d.Client == "" || !slices.Contains(e.clients, d.Client)) {
		return ErrClient
	}
	return nil
}

// Decide records a word that came out of band: through the API or the page. storage.ErrNotFound when the approval is
// unknown or another user's, ErrClient, and a ConflictError on status when it is decided or over.
func (e *Engine) Decide(ctx context.Context, d Decider, id string, approve bool) (storage.Approval, error) {
	a, err := e.Approval(ctx, d.OrganizationID, id)
	if err != nil {
		return storage.Approval{}, err
	}
	if a.UserID != d.UserID {
		return storage.Approval{}, storage.ErrNotFound
	}
	if err := e.MayDecide(d); err != nil {
		return storage.Approval{}, err
	}
	client := d.Client
	if d.Browser {
		client = ""
	} else if client == a.Client {
		return storage.Approval{}, ErrClient // even when it is listed: nobody approves their own calls
	}
	return e.decide(ctx, &a, approve, storage.ChannelOutOfBand, client, e.now().UTC())
}

// DecideInBand records the word that the client which made the call brought from its user. The caller has made sure that
// it was asked. A no needs no channel: nobody gains by it. Errors as of Decide, and ErrChannel.
func (e *Engine) DecideInBand(ctx context.Context, organization, user, id string, approve bool) (storage.Approval, error) {
	a, err := e.Approval(ctx, organization, id)
	if err != nil {
		return storage.Approval{}, err
	}
	if a.UserID != user {
		return storage.Approval{}, storage.ErrNotFound
	}
	if approve && a.Channel != storage.ChannelInBand {
		return storage.Approval{}, ErrChannel
	}
	return e.decide(ctx, &a, approve, storage.ChannelInBand, a.Client, e.now().UTC())
}

// Divert sends the decision out of band: the client that was to ask its user has said that it cannot. That is no word of
// the user's. What is decided by then stays so. storage.ErrNotFound when the approval is unknown or another user's.
func (e *Engine) Divert(ctx context.Context, organization, user, id string) (storage.Approval, error) {
	a, err := e.store.DivertApproval(ctx, organization, user, id, e.now().UTC())
	if err == nil {
		e.bell.ring(id)
	}
	return a, err
}

func (e *Engine) decide(ctx context.Context, a *storage.Approval, approve bool, via storage.ApprovalChannel, client string, now time.Time) (storage.Approval, error) {
	decided, err := e.store.DecideApproval(ctx, a.OrganizationID, a.ID, storage.ApprovalDecision{
		Approve: approve, UserID: a.UserID, Via: via, Client: client, At: now, ExpiresAt: now.Add(UseFor),
	})
	if err != nil {
		return storage.Approval{}, err
	}
	e.bell.ring(a.ID)
	return decided, nil
}

// Take uses up the approval of that id for exactly this call: of concurrent takers one gets it. storage.ErrNotFound when
// it is not approved, over, used, or for another call.
func (e *Engine) Take(ctx context.Context, c *Call, id string) (storage.Approval, error) {
	taken, err := e.store.TakeApproval(ctx, c.OrganizationID, c.UserID, id, c.Binding(), e.now().UTC())
	if err == nil {
		e.bell.ring(id) // others that wait with the same approval have to ask again
	}
	return taken, err
}

// Prolong gives a call whose approval was used the right to one more round: the upstream asked for something before it
// does anything. It returns the id of the approval for that round, and the round, which the call's next binding needs.
func (e *Engine) Prolong(ctx context.Context, used *storage.Approval, c *Call) (id, round string, err error) {
	random, err := uuid.NewRandom()
	if err != nil {
		return "", "", fmt.Errorf("making an id: %w", err)
	}
	next := *c
	next.Round = random.String()
	// A round is no further question to the user: it is decided when it is made, and does not count.
	a, err := e.create(ctx, &next, storage.AskLimits{})
	if err != nil {
		return "", "", err
	}
	if _, err := e.decide(ctx, &a, true, used.DecidedVia, used.DecidedClient, a.CreatedAt); err != nil {
		return "", "", err
	}
	return a.ID, next.Round, nil
}
