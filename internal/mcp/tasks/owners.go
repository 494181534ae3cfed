package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/storage"
)

const (
	// grace is added to the lifetime of a task that its server sends: some servers count from the task's end.
	grace = 24 * time.Hour
	// believed is the time for which the store is not asked again about a task that it has. After it, the id may belong
	// to another task, created at another node.
	believed = time.Second
	// sweepEvery is the interval at which tasks that are over are dropped.
	sweepEvery = time.Hour
)

// Store stores the owners of tasks for every node, and over restarts.
type Store interface {
	AddTask(ctx context.Context, t storage.Task) error
	Tasks(ctx context.Context, of storage.TaskOwner, now time.Time) ([]storage.Task, error)
	ForgetTasks(ctx context.Context, now time.Time) error
}

// Owners knows who created which task, from the store and from the calls that this process has seen. It is safe for
// concurrent use.
type Owners struct {
	Store Store
	Now   func() time.Time
	book  book
	// pause limits the tries of a store that is away, for clients that ask again and again.
	pause pause
}

// Created is a task that a server says it has created.
type Created struct {
	ID string
	// At comes from the server's clock; zero: not known.
	At time.Time
	// TTL is the time for which the server keeps the task; negative: for ever.
	TTL time.Duration
}

// Created records that a call of who created a task. It returns when every node knows this, because the client may ask
// any of them about its task next. After an error only this process knows; it tries again when it is asked for the
// task. When a task is recorded late and its id already belongs to a newer one, the id stays with the newer one.
func (o *Owners) Created(ctx context.Context, who session.Binding, c Created) error {
	digest, ok := digestOf(c.ID)
	if !ok {
		return nil
	}
	now := o.Now().UTC()
	e := entry{who: who, digest: digest, created: c.At, expires: now.Add(lifetime(c.TTL))}
	if e.created.IsZero() {
		e.created = now
	}
	e.created = e.created.Truncate(time.Microsecond) // the store has this precision
	if !o.book.add(e) {
		return nil
	}
	err := o.keep(ctx, &e)
	if errors.Is(err, storage.ErrConflict) {
		return nil
	}
	return err
}

// lifetime returns the time for which a task is remembered.
func lifetime(ttl time.Duration) time.Duration {
	if ttl < 0 || ttl > storage.TaskLifetime-grace {
		return storage.TaskLifetime
	}
	return ttl + grace
}

// keep writes a task to the store. A task that the store refuses, because its id belongs to a newer one or its server
// is gone, is dropped.
func (o *Owners) keep(ctx context.Context, e *entry) error {
	now := o.Now().UTC()
	err := o.Store.AddTask(ctx, storage.Task{TaskOwner: ownerOf(e.who), Digest: e.digest, CreatedAt: e.created, ExpiresAt: e.expires})
	refused := errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrNotFound)
	if refused {
		o.book.forget(e)
	}
	if err != nil {
		if !refused {
			o.pause.failed(ctx, now)
		}
		return fmt.Errorf("remembering a task: %w", err)
	}
	o.pause.over()
	e.stored = now
	o.book.add(*e)
	return nil
}

// Owns reports whether who created the task. While the store is away, it uses the tasks that this process has seen.
func (o *Owners) Owns(ctx context.Context, who session.Binding, id string) (bool, error) {
	digest, ok := digestOf(id)
	if !ok {
		return false, nil
	}
	now := o.Now().UTC()
	e, known := o.book.find(who, digest, now)
	switch {
	case known && now.Before(e.stored.Add(believed)):
		return true, nil
	case known && !o.pause.mayTry(now):
		return true, nil
	case known && e.stored.IsZero():
		err := o.keep(ctx, &e) // Created has reported the error, and this process still knows the task
		if !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound) {
			return true, nil
		}
		known = false
	}
	owns, err := o.Of(ctx, who)
	if err != nil && known {
		return true, nil
	}
	return owns(id), err
}

// Of returns a function that tells which tasks belong to who, after one look at the store. After an error it uses the
// tasks that this process has seen.
func (o *Owners) Of(ctx context.Context, who session.Binding) (owns func(id string) bool, err error) {
	now := o.Now().UTC()
	stored, err := o.Store.Tasks(ctx, ownerOf(who), now)
	if err != nil {
		o.pause.failed(ctx, now)
		err = fmt.Errorf("reading whose a task is: %w", err)
	} else {
		o.pause.over()
		has := make([]entry, len(stored))
		for i, t := range stored {
			has[i] = entry{who: who, digest: t.Digest, created: t.CreatedAt, expires: t.ExpiresAt, stored: now}
		}
		o.book.told(who, now, has)
	}
	return func(id string) bool {
		digest, ok := digestOf(id)
		if !ok {
			return false
		}
		_, known := o.book.find(who, digest, now)
		return known || slices.ContainsFunc(stored, func(t storage.Task) bool { return t.Digest == digest })
	}, err
}

// Forget drops the tasks of a user that this process has seen. It is for a user whose tasks the store has just forgotten:
// a task that was never stored would otherwise be stored again.
func (o *Owners) Forget(organization, user string) { o.book.forgetUser(person{organization, user}) }

// KeepSweeping drops tasks that are over, in memory and in the store, until ctx ends. failed is called with errors.
func (o *Owners) KeepSweeping(ctx context.Context, failed func(error)) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			now := o.Now().UTC()
			o.book.sweep(now)
			if err := o.Store.ForgetTasks(ctx, now); err != nil && ctx.Err() == nil {
				failed(fmt.Errorf("forgetting tasks that are over: %w", err))
			}
		}
	}
}

// digestOf returns the stored form of an id: ids come from upstreams and may be long. ok is false for ids that are not
// stored.
func digestOf(id string) (digest string, ok bool) {
	if id == "" || len(id) > maxID {
		return "", false
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:]), true
}

func ownerOf(who session.Binding) storage.TaskOwner {
	owner := storage.TaskOwner{OrganizationID: who.Organization, ServerID: who.Server, UserID: who.User}
	if who.Agent != "" {
		owner.Agent = who.Issuer + " " + who.Agent
	}
	return owner
}
