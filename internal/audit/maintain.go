package audit

import (
	"fmt"
	"time"
)

// syncTo returns when all bytes that were written up to mark are on the disk. Callers that wait during another sync share
// the next one.
func (j *Journal) syncTo(mark int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	current, target, failure, unsure := j.segment.file, j.written, j.failure, j.unsure
	j.mu.Unlock()
	switch {
	case unsure.has(mark):
		return unsure.cause
	case j.synced.Load() >= mark:
		return nil
	case failure != nil:
		return failure
	}
	if err := current.Sync(); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		signal(j.rotation)
		return j.noteUnsynced(err)
	}
	j.synced.Store(target)
	return nil
}

// noteUnsynced notes that a sync has failed. Records since the last sync may be gone, even if a second sync succeeds,
// because the kernel reports a failed write only once. The segment ends. The journal's lock is held.
func (j *Journal) noteUnsynced(err error) error {
	j.options.Log.Error("the audit journal cannot be synced", "error", err.Error())
	if j.failure == nil {
		j.failure = fmt.Errorf("syncing: %w", err)
	}
	return j.failure
}

// unsure is the range of written bytes that the abandoned segments may have lost. It includes all bytes between those
// segments, so a caller that asks very late for bytes in between gets an error without need.
type unsure struct {
	from, to int64
	cause    error // of the last failure
}

func (u *unsure) add(from, to int64, cause error) {
	if u.cause == nil {
		u.from = from
	}
	u.to, u.cause = to, cause
}

// has reports whether a record that ends at mark is in the range.
func (u unsure) has(mark int64) bool { return u.from < mark && mark <= u.to }

// write writes the records that may wait.
func (j *Journal) write() {
	for {
		select {
		case <-j.stop:
			return
		case <-j.wake:
		}
		<-time.After(laterDelay) // Close waits for it too
		j.mu.Lock()
		err := j.flushAll()
		j.mu.Unlock()
		if err != nil {
			signal(j.wake)
		}
	}
}

// maintain syncs, makes checkpoints and begins new segments.
func (j *Journal) maintain() {
	tick := time.NewTicker(SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-j.rotation:
		case <-tick.C:
		}
		_ = j.syncTo(j.writtenSoFar()) // noted there
		if err := j.advance(); err != nil {
			j.options.Log.Error("the audit journal cannot go on", "error", err.Error())
			// A full disk is not tried twenty times a second.
			select {
			case <-j.stop:
				return
			case <-time.After(time.Second):
			}
		}
	}
}

// advance writes the checkpoint, or begins the segment, that is due.
func (j *Journal) advance() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notice()
	now := j.options.Now()
	full := j.full() || (len(j.segment.chains) > 0 && now.Sub(j.segment.began) >= j.options.SegmentAge)
	switch {
	case full || j.failure != nil || j.segment.ended:
		return j.rotate()
	case (j.segment.moved || len(j.stored) > 0) && now.Sub(j.last.at) >= j.options.CheckpointEvery:
		return j.checkpoint(false)
	}
	return nil
}
