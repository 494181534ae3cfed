package taskbook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/mcpsession"
	"github.com/durward-gateway/durward/storage"
)

// Store keeps whose tasks are whose for every node, and over restarts.
type Store interface {
	AddTask(ctx context.Context, t storage.Task) error
	Tasks(ctx context.Context, of storage.TaskOwner, now time.Time) (digests []string, err error)
}

// Owners knows who created which task. What this process has seen is in memory, everything else in the store. It is safe for
// concurrent use.
type Owners struct {
	Store Store
	Now   func() time.Time
	book  book
}

// Created notes that a call of who's created a task. It returns when every node knows: the client may ask any of them about its
// task next. After an error this process alone knows, and tries again when it is asked for the task.
func (o *Owners) Created(ctx context.Context, who mcpsession.Binding, id string) error {
	digest, ok := digestOf(id)
	if !ok {
		return nil
	}
	if _, stored := o.book.has(who, digest); stored {
		return nil
	}
	o.book.add(who, digest, false)
	return o.keep(ctx, who, digest)
}

// keep brings a task to the store.
func (o *Owners) keep(ctx context.Context, who mcpsession.Binding, digest string) error {
	now := o.Now().UTC()
	err := o.Store.AddTask(ctx, storage.Task{TaskOwner: ownerOf(who), Digest: digest, CreatedAt: now, ExpiresAt: now.Add(storage.TaskLifetime)})
	if err != nil {
		return fmt.Errorf("remembering a task: %w", err)
	}
	o.book.add(who, digest, true)
	return nil
}

// Owns reports whether who created the task.
func (o *Owners) Owns(ctx context.Context, who mcpsession.Binding, id string) (bool, error) {
	digest, ok := digestOf(id)
	if !ok {
		return false, nil
	}
	if known, stored := o.book.has(who, digest); known {
		if !stored {
			_ = o.keep(ctx, who, digest) // Created has told, and this process knows it all the same
		}
		return true, nil
	}
	owns, err := o.Of(ctx, who)
	return owns(id), err
}

// Of returns what tells which tasks are who's, by one look at the store. After an error it knows those that this process has seen.
func (o *Owners) Of(ctx context.Context, who mcpsession.Binding) (owns func(id string) bool, err error) {
	stored, err := o.Store.Tasks(ctx, ownerOf(who), o.Now().UTC())
	if err != nil {
		err = fmt.Errorf("reading whose a task is: %w", err)
	}
	for _, digest := range stored {
		o.book.add(who, digest, true)
	}
	return func(id string) bool {
		digest, ok := digestOf(id)
		known, _ := o.book.has(who, digest)
		return ok && (known || slices.Contains(stored, digest))
	}, err
}

// digestOf is an id as it is kept: ids are upstreams' and may be long. It is not ok for what no task is remembered by.
func digestOf(id string) (digest string, ok bool) {
	if id == "" || len(id) > maxID {
		return "", false
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:]), true
}

func ownerOf(who mcpsession.Binding) storage.TaskOwner {
	return storage.TaskOwner{OrganizationID: who.Organization, ServerID: who.Server, UserID: who.User, Agent: who.Agent}
}
