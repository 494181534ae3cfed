package demodata

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// days is the length of the month that is made.
const days = 30

// Place holds the organization to be filled, and the parts of the gateway that fill it.
type Place struct {
	// At returns the store and the audit log as of a clock.
	At func(now func() time.Time) (storage.Store, *record.Recorder)
	// Keyring seals the arguments of held calls, and makes digests of keys.
	Keyring *seal.Keyring
	Broker  *connection.Broker
	// Configured holds the models of the configuration, and Prices their prices.
	Configured storage.ConfiguredModels
	Prices     *metering.Prices

	Organization, Issuer string
	// UserID returns the id of a user whom the identity provider knows.
	UserID func(email string) string
	// URL is the address of the demo third party, at which all made servers are.
	URL string
	Now time.Time
}

// filler makes the data. Its clock is moved through the month.
type filler struct {
	Place
	store   storage.Store
	records *record.Recorder
	engine  *approval.Engine
	meter   *metering.Meter
	trail   *audit.Trail
	clock   time.Time
	random  *rand.Rand

	users   map[string]user // by email
	agents  map[string]string
	servers map[string]*madeServer
	keys    []madeKey
}

// user is a person with their id.
type user struct {
	person
	id string
}

// Fill makes the data, unless the organization was filled before: then it does nothing, also when somebody has deleted some of
// it. The same day gives the same data, but for ids.
func Fill(ctx context.Context, p Place) error {
	f := &filler{
		Place: p, users: make(map[string]user), agents: make(map[string]string), servers: make(map[string]*madeServer),
	}
	p.Now = p.Now.UTC()
	today := p.Now.Truncate(24 * time.Hour)
	f.random = rand.New(rand.NewPCG(uint64(today.Unix()), days)) //nolint:gosec // it must give the same data again
	f.clock = today.AddDate(0, 0, -days).Add(8 * time.Hour)
	now := func() time.Time { return f.clock }
	f.store, f.records = p.At(now)
	if filled, err := f.filled(ctx); filled || err != nil {
		return err
	}
	var err error
	if f.trail, err = f.records.Open(); err != nil { //nolint:contextcheck // what is opened outlives the filling
		return err
	}
	f.engine = approval.New(approval.Options{Store: f.store, Vault: p.Keyring, Bell: new(approval.Bell), Now: now})
	if err := f.openBooks(now); err != nil {
		return err
	}
	defer f.meter.Close() //nolint:contextcheck // it bounds its last visit to the store itself
	for _, step := range []func(context.Context) error{f.makePeople, f.makeAgents, f.makeServers, f.makePolicies, f.makeKeys, f.makeBounds, f.pass, f.makeUrgent} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("making demo data: %w", err)
		}
	}
	if err := f.meter.Flush(ctx); err != nil {
		return fmt.Errorf("making demo data: %w", err)
	}
	return nil
}

// filled reports whether the organization was filled before, or its filling was begun. The agent is the first made object; it
// can be deleted, which a policy cannot.
func (f *filler) filled(ctx context.Context) (bool, error) {
	_, err := f.store.Agent(ctx, f.Organization, f.id("agent", agents[0].id))
	if errors.Is(err, storage.ErrNotFound) {
		_, err = f.store.Policy(ctx, f.Organization, f.id("policy", policies[0].name))
	}
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// id names a made object, the same at each start.
func (f *filler) id(kind, name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:durward:demo-data/"+f.Organization+"/"+kind+"/"+name)).String()
}

// write runs a write of the administrator's, and records it as the API does.
func (f *filler) write(ctx context.Context, event, id, name string, write func(ctx context.Context) error) error {
	ctx, entry, err := f.records.With(ctx, f.Organization, storage.AuditEntry{
		Event: event, UserID: f.users[people[0].email].id, Client: "durward", Outcome: "ok", Detail: map[string]any{"id": id, "name": name, mark: true},
	})
	if err != nil {
		return err
	}
	if err := write(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", entry.Event, name, err)
	}
	f.clock = f.clock.Add(time.Minute)
	return nil
}

// event is something that happens at a time of the month.
type event struct {
	at time.Time
	do func(ctx context.Context) error
}

// pass lets the month pass, until now.
func (f *filler) pass(ctx context.Context) error {
	first := f.clock.Truncate(24*time.Hour).AddDate(0, 0, 1)
	for day := range days {
		for _, e := range f.day(first.AddDate(0, 0, day)) {
			if e.at.After(f.Now) {
				return nil
			}
			f.clock = e.at
			if err := e.do(ctx); err != nil {
				return fmt.Errorf("what happens at %s: %w", e.at.Format(time.DateTime), err)
			}
		}
	}
	return nil
}

// day returns what happens on a day, in order.
func (f *filler) day(midnight time.Time) (events []event) {
	working := midnight.Weekday() != time.Saturday && midnight.Weekday() != time.Sunday
	share := 12 // of a hundred, on a day off
	if working {
		share = 80 + f.random.IntN(40)
	}
	for range 70 * share / 100 {
		h := f.habit()
		events = append(events, event{f.hour(midnight, false), func(ctx context.Context) error { return f.call(ctx, h) }})
	}
	for i, k := range keys {
		part := share
		if k.night {
			part = 100
		}
		for range k.daily * part / 100 {
			events = append(events, event{f.hour(midnight, k.night), func(ctx context.Context) error { return f.ask(ctx, f.keys[i]) }})
		}
	}
	if working {
		for _, p := range people {
			events = append(events, event{midnight.Add(6*time.Hour + time.Duration(f.random.Int64N(int64(3*time.Hour)))), func(ctx context.Context) error { return f.login(ctx, p.email) }})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	return events
}

// hour returns a time of the day: most work is done before and after noon.
func (f *filler) hour(midnight time.Time, night bool) time.Time {
	if night {
		return midnight.Add(2*time.Hour + time.Duration(f.random.Int64N(int64(40*time.Minute))))
	}
	middle := 10*time.Hour + 15*time.Minute
	if f.random.IntN(100) < 45 {
		middle = 14*time.Hour + 30*time.Minute
	}
	spread := time.Duration(f.random.NormFloat64() * float64(75*time.Minute))
	return midnight.Add(min(max(middle+spread, 6*time.Hour), 21*time.Hour))
}

func (f *filler) habit() habit {
	all := 0
	for _, h := range habits {
		all += h.weight
	}
	left := f.random.IntN(all)
	for _, h := range habits {
		if left -= h.weight; left < 0 {
			return h
		}
	}
	return habits[0]
}

// login lets somebody log in with a browser, which is the proof of their roles for decisions on the calls of others.
func (f *filler) login(ctx context.Context, email string) error {
	u := f.users[email]
	if err := f.store.PutSessionFacts(ctx, f.Organization, u.id, storage.SessionFacts{Roles: u.roles, Groups: u.groups, At: f.clock}); err != nil {
		return fmt.Errorf("logging in %s: %w", email, err)
	}
	return f.records.Event(ctx, f.Organization, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "login", UserID: u.id, Client: "durward", Outcome: "ok", Detail: map[string]any{mark: true},
	})
}

// took returns a believable duration of a request.
func (f *filler) took(typical time.Duration) time.Duration {
	return time.Duration(float64(typical) * (0.4 + f.random.ExpFloat64())).Round(time.Microsecond)
}
