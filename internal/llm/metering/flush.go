package metering

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// enter waits for the visit: the exclusive right to move data between the store and memory.
func (m *Meter) enter(ctx context.Context) error {
	select {
	case m.visit <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Meter) leave() { <-m.visit }

// Flush sends everything recorded so far to the store.
func (m *Meter) Flush(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return fmt.Errorf("flushing usage: %w", err)
	}
	defer m.leave()
	return m.flush(ctx)
}

// flush does the work of Flush for a caller that holds the visit.
func (m *Meter) flush(ctx context.Context) error {
	for more := true; more; {
		more = m.cut()
		if err := m.send(ctx); err != nil {
			return fmt.Errorf("flushing usage: %w", err)
		}
	}
	return nil
}

// cut makes batches from the recorded data, and stores them where they outlive the process. It reports whether more is
// left for after these are sent. That happens without such a place, and when very many batches wait: the rest is then
// added up in fewer rows. The caller holds the visit.
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

// keep writes the batches that are only in memory into the spool, in order. Another process that finds a batch there
// may send it, and the store then takes the batches before it for sent. So a batch must not be in the spool before its
// predecessors are.
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

// send sends the batches that were cut, in order, and those that an earlier process has left. A batch is always sent
// unchanged: a failed attempt may have been committed, and under its number the batch counts once. The caller holds the
// visit.
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

// setAside saves the part of a batch that the store could not keep, in a place where operators find it. Everything else
// goes on.
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

// adopt takes over the batches in the spool that do not belong to this Meter.
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

// Start begins to send data to the store, first the data that an earlier process has left. Without Start this begins
// with the first call.
func (m *Meter) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start()
}

// start runs the goroutine that flushes. The caller holds the lock.
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
		case m.Stats().Batches > before: // the store is slow, not away
			pause = 1
		default:
			pause = min(2*pause, longestPause)
			m.log().Warn("usage waits: the store does not take it", "error", err, "rows", m.Stats().Rows, "again_in", time.Duration(pause)*flushEvery)
		}
	}
}

// save does a round without the store.
func (m *Meter) save() {
	if m.enter(m.stopping) == nil {
		m.cut()
		m.leave()
	}
}

// tell passes alerts on. The goroutine does this, not the call, because the receiver may take a while.
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

// round makes one visit of the goroutine to the store.
func (m *Meter) round() error {
	ctx, cancel := context.WithTimeout(m.stopping, storeTimeout)
	defer cancel()
	if err := m.Flush(ctx); err != nil {
		return err
	}
	return m.refresh(ctx)
}

// Close sends the remaining data to the store and ends the Meter. Data that the store does not accept within ten
// seconds stays in Options.Dir for the next process. Without a directory it is lost, and the log says how much. Later
// settlements are sent in the same way at once.
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

// last sends the remaining data to the store, or writes it into Options.Dir, because nothing later will. The call that
// settled may have ended by now. A visit before this one has its own time: otherwise nothing would be cut, and nothing
// kept.
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
