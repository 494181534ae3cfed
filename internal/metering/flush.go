package metering

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// enter waits for the right to move things between the store and memory.
func (m *Meter) enter(ctx context.Context) error {
	select {
	case m.visit <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Meter) leave() { <-m.visit }

// Flush brings to the store what was written down until now.
func (m *Meter) Flush(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return fmt.Errorf("flushing usage: %w", err)
	}
	defer m.leave()
	return m.flush(ctx)
}

// flush does what Flush does, for whoever has the visit.
func (m *Meter) flush(ctx context.Context) error {
	for more := true; more; {
		more = m.cut()
		if err := m.send(ctx); err != nil {
			return fmt.Errorf("flushing usage: %w", err)
		}
	}
	return nil
}

// cut makes batches of what was written down, and puts them where they outlive the process. It reports whether there is
// more for when these are sent: without such a place, and when very many wait, the rest goes on being added up in fewer
// rows. The visit is the caller's.
func (m *Meter) cut() (more bool) {
	defer m.keep()
	for {
		m.mu.Lock()
		if len(m.queue) > 0 && (m.spool.dir == "" || m.book.underway >= maxRows) {
			m.mu.Unlock()
			return true
		}
		b := m.book.cut()
		m.mu.Unlock()
		if b == nil {
			return false
		}
		m.number++
		b.Node, b.Number = m.node, m.number
		m.queue = append(m.queue, b)
		if m.spool.dir != "" {
			m.loose = append(m.loose, b)
		}
	}
}

// keep puts what is in memory alone into the spool, in its order. Whoever finds a batch there may send it, and the store takes
// those before it for sent: so none may be there before they are.
func (m *Meter) keep() {
	for len(m.loose) > 0 {
		if err := m.spool.keep(m.loose[0]); err != nil {
			m.log().Error("usage that is not stored yet is in memory alone", "error", err)
			return
		}
		m.loose = m.loose[1:]
	}
	m.loose = nil
}

// send sends the batches that were cut, in their order, and those that an earlier process has left. A batch is sent as it
// was the first time: nobody knows whether an attempt that failed was committed, and under its number it counts once. The
// visit is the caller's.
func (m *Meter) send(ctx context.Context) error {
	if !m.adopted && m.spool.dir != "" {
		m.adopt()
	}
	m.adopted = true
	for len(m.queue) > 0 {
		b := m.queue[0]
		sent := *b
		sent.SentAt = m.now()
		refused, err := m.store.AddUsage(ctx, sent)
		m.mu.Lock()
		if err != nil {
			m.stats.Failures++
			m.mu.Unlock()
			return err
		}
		m.stats.Batches++
		m.book.underway -= len(b.Usage)
		m.mu.Unlock()
		m.queue = m.queue[1:]
		if len(m.loose) > 0 && m.loose[0] == b {
			m.loose = m.loose[1:]
		}
		if refused != nil {
			m.setAside(b, refused)
		}
		if m.spool.dir == "" {
			continue
		}
		if err := m.spool.drop(b); err != nil {
			m.log().Warn("a batch of usage that is stored cannot be removed", "error", err)
		}
	}
	m.queue = nil
	return nil
}

// setAside keeps what the store could not keep of a batch where operators find it: whatever it is, everything else goes on.
func (m *Meter) setAside(b *storage.UsageBatch, refused *storage.UsageRefused) {
	n := len(refused.Usage) + len(refused.Spends)
	m.mu.Lock()
	m.stats.Aside += int64(n)
	m.mu.Unlock()
	organizations := make(map[string]struct{})
	for _, u := range refused.Usage {
		organizations[u.OrganizationID] = struct{}{}
	}
	for _, s := range refused.Spends {
		organizations[s.OrganizationID] = struct{}{}
	}
	log := m.log().With("rows", n, "organizations", slices.Sorted(maps.Keys(organizations)), "reason", refused.Reason)
	file, err := m.spool.setAside(b, refused)
	switch {
	case err != nil:
		log.Error("usage that the store cannot keep is lost", "error", err)
	case file == "":
		log.Error("usage that the store cannot keep is lost")
	default:
		log.Error("usage that the store cannot keep is set aside", "file", file)
	}
}

// adopt takes over what is in the spool and not of this Meter.
func (m *Meter) adopt() {
	left, err := m.spool.left()
	if err != nil {
		m.log().Error("usage that an earlier process has left is not all readable", "error", err)
	}
	for _, b := range left {
		if b.Node != m.node {
			m.queue = append(m.queue, b)
			m.mu.Lock()
			m.book.underway += len(b.Usage)
			m.mu.Unlock()
		}
	}
}

// Start begins to bring things to the store, those that an earlier process has left first. Without it that begins with the
// first call.
func (m *Meter) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start()
}

// start runs the goroutine that flushes. The lock is held.
func (m *Meter) start() {
	if m.started || m.closed {
		return
	}
	m.started = true
	m.running.Go(m.run)
}

func (m *Meter) run() {
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	pause, since := 1, 0 // in rounds
	for {
		select {
		case <-m.stopping.Done():
			return
		case <-timer.C:
			since++
			timer.Reset(flushEvery)
		case <-m.wake:
		}
		m.tell()
		if since < pause && pause > 1 { // the store is away, and is asked less and less often
			m.save()
			continue
		}
		before := m.Stats().Batches
		err := m.round()
		since = 0
		switch {
		case m.stopping.Err() != nil:
			return
		case err == nil:
			pause = 1
		case m.Stats().Batches > before: // it is slow, not away
			pause = 1
		default:
			pause = min(2*pause, longestPause)
			m.log().Warn("usage waits: the store does not take it", "error", err, "rows", m.Stats().Rows, "again_in", time.Duration(pause)*flushEvery)
		}
	}
}

// save is a round without the store.
func (m *Meter) save() {
	if m.enter(m.stopping) == nil {
		m.cut()
		m.leave()
	}
}

// tell passes alerts on. It is the goroutine that does, not the call: whoever is told may take a while.
func (m *Meter) tell() {
	m.telling.Lock()
	defer m.telling.Unlock()
	m.mu.Lock()
	alerts := m.alerts
	m.alerts = nil
	m.mu.Unlock()
	for _, a := range alerts {
		m.alert(a)
	}
}

// round is one visit of the goroutine to the store.
func (m *Meter) round() error {
	ctx, cancel := context.WithTimeout(m.stopping, storeTimeout)
	defer cancel()
	if err := m.Flush(ctx); err != nil {
		return err
	}
	return m.refresh(ctx)
}

// Close brings what is left to the store and ends the Meter. What the store does not take within ten seconds is left in
// Options.Dir for the next process; without one it is lost, and the log says how much that is. What is settled later goes the
// same way at once.
func (m *Meter) Close() {
	m.mu.Lock()
	already := m.closed
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.running.Wait()
	if already {
		return
	}
	m.tell()
	m.last()
	m.sets.Close()
}

// last brings what is left to the store, or into Options.Dir, where nothing else will. Whoever settled may be gone by now. A visit
// before it has its own time: without that nothing would be cut, and nothing kept.
func (m *Meter) last() {
	apart := context.WithoutCancel(m.stopping)
	waiting, cancel := context.WithTimeout(apart, 2*storeTimeout)
	defer cancel()
	err := m.enter(waiting)
	if err != nil {
		m.log().Error("usage is lost: the store did not answer until the gateway's end", "error", err, "rows", m.Stats().Rows)
		return
	}
	defer m.leave()
	ctx, cancel := context.WithTimeout(apart, storeTimeout)
	defer cancel()
	if err = m.flush(ctx); err == nil {
		return
	}
	if m.spool.dir == "" || len(m.loose) > 0 {
		m.log().Error("usage is lost: the store did not take it until the gateway's end", "error", err, "rows", m.Stats().Rows)
	} else {
		m.log().Warn("usage waits for the next start: the store did not take it until the gateway's end", "error", err, "rows", m.Stats().Rows)
	}
}
